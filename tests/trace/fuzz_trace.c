/* SPDX-License-Identifier: Apache-2.0 */
/* A good trace, changed by chance: fuzz_trace TRACE SEED TIMES. Bytes change, parts go, come twice, or are of
 * another place; sums of blocks are often made right again, so that what is behind them is reached. Each one
 * is read to its end, its objects followed, and its stacks asked for. Whatever is in it, that ends, within 1
 * GiB. */
#include <fcntl.h>
#include <lz4.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lives.h"
#include "reader.h"

static uint64_t state, n_events, n_refused;
static struct lives lives;

static uint32_t draw(uint32_t below)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % (below ? below : 1);
}

static void told(enum lives_change change, uint32_t number, uint64_t was, const struct reader_event *event,
                 void *arg)
{
    (void)change, (void)number, (void)was, (void)event, (void)arg;
}

static void read_it(const char *path, FILE *nowhere)
{
    char text[512];
    const uint64_t *frames;
    struct reader_event event;
    struct reader *reader = reader_open(path, nowhere);
    n_refused += !reader;
    if (!reader) return;
    if (!lives_begin(&lives, told, NULL)) exit(99);
    while (reader_next(reader, &event)) {
        n_events++;
        lives_take(&lives, &event);
    }
    for (uint32_t i = 0; i < reader_stacks(reader) + 2; i++)
        for (unsigned n = reader_stack(reader, i, &frames); n > 0; n--)
            reader_frame(reader, frames[n - 1], text, sizeof text);
    lives_end(&lives);
    reader_close(reader);
}

/* Unpacks a block, changes some bytes of it, and packs it again, with its sum. */
static size_t change_within(char *bytes, size_t size, size_t room)
{
    static char events[TRACE_SLOT], packed[LZ4_COMPRESSBOUND(TRACE_SLOT)];
    struct trace_head head;
    struct trace_block block;
    memcpy(&head, bytes, sizeof head);
    size_t at = sizeof head + head.arguments;
    block.packed = UINT32_MAX;
    for (uint32_t skip = draw(8); at + sizeof block < size; skip--) {
        memcpy(&block, bytes + at, sizeof block);
        if (skip == 0 || block.packed > size) break;
        at += sizeof block + block.packed;
    }
    if (at + sizeof block >= size || block.packed > size - at - sizeof block) return size;
    char *from = bytes + at + sizeof block;
    int n = LZ4_decompress_safe(from, events, (int)block.packed, sizeof events);
    if (n <= 0) return size;
    for (uint32_t i = draw(8); i > 0; i--) events[draw((uint32_t)n)] = (char)draw(256);
    if (draw(4) == 0) n = 1 + (int)draw((uint32_t)n);
    int m = LZ4_compress_default(events, packed, n, sizeof packed);
    size_t behind = size - at - sizeof block - block.packed;
    if (size + (size_t)m > room) return size;
    memmove(from + m, from + block.packed, behind);
    memcpy(from, packed, (size_t)m);
    block.unpacked = (uint32_t)n;
    block.packed = (uint32_t)m;
    block.check = trace_check(packed, block.packed);
    memcpy(bytes + at, &block, sizeof block);
    return at + sizeof block + (size_t)m + behind;
}

static size_t change(char *bytes, size_t size, size_t room)
{
    uint32_t from = draw((uint32_t)size), n = draw((uint32_t)(size - from)), to = draw((uint32_t)(size - n));
    switch (draw(6)) {
    case 0: return from;
    case 1: memmove(bytes + to, bytes + from, n); return size;
    case 2:
        for (uint32_t i = draw(16) + 1; i > 0; i--) bytes[draw((uint32_t)size)] = (char)draw(256);
        return size;
    case 3: bytes[draw(200)] = (char)draw(256); return size;
    default: return change_within(bytes, size, room);
    }
}

int main(int argc, char **argv)
{
    struct stat is;
    if (argc != 4) return 99;
    int from = open(argv[1], O_RDONLY);
    if (from < 0 || fstat(from, &is) != 0) return 99;
    size_t size = (size_t)is.st_size, room = size + (1 << 18);
    char *good = malloc(size), *bytes = malloc(room), path[] = "/tmp/fuzz_trace.XXXXXX";
    FILE *nowhere = fopen("/dev/null", "w");
    int to = mkstemp(path);
    if (!good || !bytes || to < 0 || !nowhere || read(from, good, size) != (ssize_t)size) return 99;
#ifndef __SANITIZE_ADDRESS__
    struct rlimit limit = {(rlim_t)1 << 30, (rlim_t)1 << 30};
    setrlimit(RLIMIT_AS, &limit);
#endif
    read_it(argv[1], nowhere);
    if (n_events == 0) return 99;
    state = strtoull(argv[2], NULL, 10);
    for (int i = atoi(argv[3]); i > 0; i--) {
        memcpy(bytes, good, size);
        size_t now = size;
        for (uint32_t times = draw(3) + 1; times > 0 && now > 200; times--) now = change(bytes, now, room);
        if (ftruncate(to, 0) != 0 || pwrite(to, bytes, now, 0) != (ssize_t)now) return 99;
        read_it(path, nowhere);
    }
    unlink(path);
    free(good), free(bytes);
    fclose(nowhere);
    printf("%llu events read, %llu traces refused\n", (unsigned long long)n_events,
           (unsigned long long)n_refused);
    return 0;
}
