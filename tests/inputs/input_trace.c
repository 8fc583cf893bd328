/* SPDX-License-Identifier: Apache-2.0 */
/* input_trace.c: a trace, which reap-analyse and bench/replay read: to its end, with its objects and stacks.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "inputs/inputs.h"
#include "lives.h"
#include "reader.h"

const char *const input_name = "trace";

static void told(enum lives_change change, uint32_t number, uint64_t was, const struct reader_event *event,
                 void *arg)
{
    (void)change, (void)number, (void)was, (void)event, (void)arg;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct lives lives;
    static FILE *nowhere;
    char path[64], text[64];
    const uint64_t *frames;
    if (!nowhere) nowhere = fopen("/dev/null", "w");
    int fd = memfd_create("trace", MFD_CLOEXEC);
    if (fd < 0 || !nowhere || write(fd, data, size) != (ssize_t)size) abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    struct reader *reader = reader_open(path, nowhere);
    if (reader) {
        struct reader_event event;
        if (!lives_begin(&lives, told, NULL)) abort();
        while (reader_next(reader, &event)) lives_take(&lives, &event);
        for (uint32_t i = 0; i < reader_stacks(reader) + 2; i++)
            for (unsigned n = reader_stack(reader, i, &frames); n > 0; n--)
                reader_frame(reader, frames[n - 1], text, sizeof text);
        if (!reader_command(reader)) abort();
        lives_end(&lives);
        reader_close(reader);
    }
    close(fd);
    return 0;
}
