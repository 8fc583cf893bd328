/* SPDX-License-Identifier: Apache-2.0 */
#include "process.h"

#include "tools/common/standard_error.h"

#include "reap.h"

#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { LARGE_STACK = 8 << 20 };

const char *process_option(size_t *size)
{
    const char *at = secure_getenv("REAP_OPTIONS"), *value = NULL;
    while (at && *at) {
        size_t length = strcspn(at, ",");
        if (length > 4 && memcmp(at, "ask=", 4) == 0) {
            value = at + 4;
            *size = length - 4;
        }
        at += length + (at[length] == ',');
    }
    return value;
}

/* As one write, and by a call that is no cancellation point. */
static void write_line(char *line, size_t size)
{
    int saved = errno;
    if (!standard_error_is_there()) return;
    size_t n = strnlen(line, size - 1);
    line[n] = '\n';
    syscall(SYS_write, STDERR_FILENO, line, n + 1);
    errno = saved;
}

void process_say(const char *format, ...)
{
    char line[512] = "reap: ";
    va_list args;
    va_start(args, format);
    vsnprintf(line + 6, sizeof line - 6, format, args);
    va_end(args);
    write_line(line, sizeof line);
}

/* Where the program's thread-local storage does not leave enough of the stack, it takes a larger one. */
int process_start_thread(const char *name, void *(*run)(void *))
{
    pthread_t thread;
    pthread_attr_t attributes;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    int error = pthread_create(&thread, &attributes, run, NULL);
    if (error == EINVAL) {
        pthread_attr_setstacksize(&attributes, LARGE_STACK);
        error = pthread_create(&thread, &attributes, run, NULL);
    }
    pthread_attr_destroy(&attributes);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error == 0) pthread_setname_np(thread, name);
    return error;
}

void process_misuse(const char *call, const char *what)
{
    char line[1024];
    const size_t room = sizeof line - 1; /* for the end of the line */
    snprintf(line, room, "reap: %s(0x0): %s", call, what);
    reap_misuse_line *fn = reapOnMisuse(NULL);
    if (fn) fn(line, room, call, NULL, what);
    line[room - 1] = '\0';
    write_line(line, sizeof line);
    abort();
}
