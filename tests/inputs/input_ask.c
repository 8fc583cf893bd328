/* SPDX-License-Identifier: Apache-2.0 */
/* input_ask.c: reap-ask's protocol. The first byte chooses: the line of a question, as the listener passes it
 * on; or bytes on the socket itself, in pieces, by a client that reads all, a little, or nothing. */
#include <sys/socket.h>
#include <sys/un.h>

#include "inputs/inputs.h"
#include "reap.h"
#include "reap_ask.h"
#include "tools/ask/questions.h"

const char *const input_name = "ask";

static char address[40];

static void echo(FILE *out, const char *args, void *arg)
{
    if (arg != address || strlen(args) > 4096) abort();
    fprintf(out, "%s.\n", args);
}

static void begin(void)
{
    static bool begun;
    if (begun) return;
    begun = true;
    void *reap, *child;
    reapCreate(&reap, NULL);
    reapCreate(&child, &reap);
    reapSetName(&child, "a name with \" and \\ and \n");
    if (!reapMalloc(&child, 100) || reapAnswer("echo", echo, address) != 0) abort();
    snprintf(address, sizeof address, "@reap.input.%ld", (long)getpid());
    if (reapListen(address) != 0) abort();
}

static int connected(void)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    size_t length = strlen(address);
    memcpy(to.sun_path, address, length);
    to.sun_path[0] = '\0';
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&to,
                          (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length)) != 0)
        abort();
    return fd;
}

static void over_socket(const uint8_t *data, size_t size, unsigned how)
{
    char bytes[4096];
    int fd = connected();
    size_t piece = how & 1 ? size / 2 + 1 : size;
    for (size_t at = 0; at < size; at += piece) {
        size_t n = size - at < piece ? size - at : piece;
        if (send(fd, data + at, n, MSG_NOSIGNAL) < 0) break;
    }
    if (how & 2 && send(fd, "\n", 1, MSG_NOSIGNAL) == 1)
        while (recv(fd, bytes, sizeof bytes, 0) > 0 && !(how & 4)) continue;
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    begin();
    if (size == 0) return 0;
    if (data[0] % 8 == 7) {
        over_socket(data + 1, size - 1, data[0] / 8);
        return 0;
    }
    if (size > 4096) size = 4096;
    char *line = malloc(size), *answer = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&answer, &length);
    if (!line || !out) abort();
    memcpy(line, data + 1, size - 1);
    line[size - 1] = '\0';
    line[strcspn(line, "\n")] = '\0';
    questions_answer(line, out);
    fclose(out);
    if (length == 0) abort(); /* each question has an answer */
    free(answer);
    free(line);
    return 0;
}
