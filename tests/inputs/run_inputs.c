/* SPDX-License-Identifier: Apache-2.0 */
/* run_inputs.c: runs a harness on a corpus and on what chance makes of it, without libFuzzer.
 *
 *     input_X TIMES CORPUS                  each line's bytes, in hex, and TIMES changes of them
 *     input_X TIMES FILE.bin                the same with one file's bytes
 *     input_X --unpack CORPUS DIRECTORY     a file for each line, for libFuzzer
 *
 * A line with # is a remark.
 */
#include <fcntl.h>

#include "inputs/inputs.h"

enum { ROOM = 1 << 20 };
static uint8_t input[ROOM], changed[2 * ROOM];
static uint64_t state = 1;
static unsigned long ran;

static size_t draw(size_t below)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return below ? (size_t)(state >> 33) % below : 0;
}

static void run(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size + !size); /* of that size, so that a read behind it is seen by tools */
    if (!copy) exit(99);
    memcpy(copy, data, size);
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
    ran++;
}

static void run_changed(size_t size)
{
    memcpy(changed, input, size);
    for (size_t n = draw(4) + 1; n > 0; n--) {
        if (input_change && draw(3) != 0) {
            size = input_change(changed, size, ROOM, draw);
            continue;
        }
        size_t at = draw(size), part = draw(size - at);
        switch (draw(6)) {
        case 0:
            if (size) changed[at] ^= (uint8_t)(1 << draw(8));
            break;
        case 1:
            if (size) changed[at] = (uint8_t)draw(256);
            break;
        case 2: size = at; break;                                                                  /* cut */
        case 3: memmove(changed + at, changed + at + part, size - at - part), size -= part; break; /* gone */
        case 4:                                                                                    /* twice */
            if (size + part > ROOM) break;
            memmove(changed + at + part, changed + at, size - at), size += part;
            break;
        default:
            if (size) changed[at] = (uint8_t) "=,:.&;%@\n\0 9-/"[draw(14)];
        }
    }
    run(changed, size);
}

static void run_all(size_t size, unsigned long times)
{
    run(input, size);
    for (unsigned long i = 0; i < times; i++) run_changed(size);
}

/* The bytes of a line in hex; false: it is none. */
static bool bytes_of(const char *line, size_t *size)
{
    unsigned byte;
    int n;
    for (*size = 0; *line && *line != '\n'; line += n, ++*size)
        if (*size == ROOM || sscanf(line, "%2x%n", &byte, &n) != 1 || n != 2)
            return false;
        else
            input[*size] = (uint8_t)byte;
    return true;
}

static void unpack(const char *directory, size_t size)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%lu", directory, ran++);
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(input, 1, size, file) != size || fclose(file) != 0) exit(99);
}

int main(int argc, char **argv)
{
    bool unpacks = argc == 4 && strcmp(argv[1], "--unpack") == 0;
    if (argc != 3 && !unpacks) return 2;
    if (LLVMFuzzerInitialize && !unpacks) LLVMFuzzerInitialize(&argc, &argv);
    unsigned long times = strtoul(argv[1], NULL, 10);
    const char *path = argv[2], *end = strrchr(path, '.');
    FILE *file = fopen(path, "rb");
    if (!file) return 99;
    if (!unpacks && !getenv("INPUTS_LOUD")) { /* complaints are expected, one for each bad option */
        int nowhere = open("/dev/null", O_WRONLY);
        if (nowhere >= 0) dup2(nowhere, STDERR_FILENO);
    }
    if (end && strcmp(end, ".bin") == 0) {
        run_all(fread(input, 1, ROOM, file), times);
    } else {
        char *line = NULL;
        size_t room = 0, size;
        while (getline(&line, &room, file) > 0) {
            if (*line == '#') continue;
            if (!bytes_of(line, &size)) return 99;
            if (unpacks)
                unpack(argv[3], size);
            else
                run_all(size, times);
        }
        free(line);
    }
    fclose(file);
    printf("%s: %lu inputs\n", input_name, ran);
    return ran == 0;
}
