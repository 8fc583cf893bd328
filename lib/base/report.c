/* SPDX-License-Identifier: Apache-2.0 */
#include "base/report.h"

#include "base/base.h"
#include "base/kernel.h"
#include "base/probe.h"
#include "base/sanitizer.h"
#include "tools/common/own_file.h"
#include "tools/common/standard_error.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct sink {
    char *at;
    char *end; /* behind the last character; one byte there is kept for the terminator */
};

static void put(struct sink *sink, char c)
{
    if (sink->at < sink->end) *sink->at++ = c;
}

static void put_string(struct sink *sink, const char *s, size_t most)
{
    for (s = s != NULL ? s : "(null)"; most > 0 && *s != '\0'; most--) put(sink, *s++);
}

static void put_number(struct sink *sink, unsigned long long n, unsigned base)
{
    char digits[24];
    unsigned count = 0;
    do {
        digits[count++] = "0123456789abcdef"[n % base];
        n /= base;
    } while (n != 0);
    while (count > 0) put(sink, digits[--count]);
}

/* Writes one conversion; format points to the character after '%'. Returns the last one it used. */
static const char *put_conversion(struct sink *sink, const char *format, va_list *args)
{
    if (strncmp(format, "llu", 3) == 0) {
        put_number(sink, va_arg(*args, unsigned long long), 10);
        return format + 2;
    }
    if (strncmp(format, "zu", 2) == 0) {
        put_number(sink, va_arg(*args, size_t), 10);
        return format + 1;
    }
    size_t most = *format == '.' ? 0 : SIZE_MAX; /* of "%.Ns", the first N bytes */
    for (; *format == '.' || (*format >= '0' && *format <= '9'); format++)
        if (*format != '.') most = most * 10 + (size_t)(*format - '0');
    switch (*format) {
    case 's': put_string(sink, va_arg(*args, const char *), most); break;
    case 'u': put_number(sink, va_arg(*args, unsigned), 10); break;
    case 'p':
        put_string(sink, "0x", 2);
        put_number(sink, (uintptr_t)va_arg(*args, void *), 16);
        break;
    default: put(sink, *format); break;
    }
    return format;
}

size_t report_vformat(char *buffer, size_t size, const char *format, va_list args)
{
    struct sink sink = {buffer, buffer + size - 1};
    va_list copy;
    va_copy(copy, args);
    for (; *format != '\0'; format++) {
        if (*format == '%' && format[1] != '\0')
            format = put_conversion(&sink, format + 1, &copy);
        else
            put(&sink, *format);
    }
    va_end(copy);
    *sink.at = '\0';
    return (size_t)(sink.at - buffer);
}

size_t report_format(char *buffer, size_t size, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    size_t n = report_vformat(buffer, size, format, args);
    va_end(args);
    return n;
}

const char *report_bytes(char text[REPORT_BYTES], size_t bytes, const char *what)
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB"};
    size_t n = report_format(text, REPORT_BYTES, "%zu%s%s", bytes, *what != '\0' ? " " : "", what);
    unsigned unit = 0;
    size_t tenths = bytes / 1024 * 10 + bytes % 1024 * 10 / 1024;
    if (bytes < 10 * 1024) return text;
    for (; unit < 3 && tenths >= 10240; unit++) tenths /= 1024;
    report_format(text + n, REPORT_BYTES - n, " (%zu.%zu %s)", tenths / 10, tenths % 10, units[unit]);
    return text;
}

static struct own_file kept_stderr = NO_OWN_FILE;

/* libc's, for C++. exit calls these functions of its thread before those of atexit. */
int __cxa_thread_atexit_impl(void (*fn)(void *), void *arg, void *library) __attribute__((weak));
extern HIDDEN char __dso_handle;

static bool is_main_thread(void) { return getpid() == gettid(); }

static void keep_stderr(void *unused)
{
    (void)unused;
    if (is_main_thread() && standard_error_is_there()) own_file_duplicate(&kept_stderr, STDERR_FILENO);
}

void report_keep_stderr(void)
{
    if (is_main_thread() && __cxa_thread_atexit_impl != NULL)
        __cxa_thread_atexit_impl(keep_stderr, NULL, &__dso_handle);
}

static void write_all(const char *text, size_t size)
{
    int fd = standard_error_is_there() ? STDERR_FILENO : own_file_is_open(&kept_stderr) ? kept_stderr.fd : -1;
    while (fd >= 0 && size > 0) {
        ssize_t n = KERNEL(SYS_write, fd, text, size);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return;
        text += n;
        size -= (size_t)n;
    }
}

void report_line(const char *format, ...)
{
    int saved = errno;
    char line[512] = "reap: ";
    size_t n = strlen(line);
    va_list args;
    va_start(args, format);
    n += report_vformat(line + n, sizeof line - n - 1, format, args);
    va_end(args);
    line[n++] = '\n';
    write_all(line, n);
    errno = saved;
}

void report_end(void)
{
    static unsigned said_by;
    unsigned me = (unsigned)getpid();
    if (said_by == me) return;
    said_by = me;
    report_line("at the end of %.100s, process %u", program_invocation_short_name, me);
}

static _Atomic(report_misuse_fn *) misuse_line; /* NULL: none */

report_misuse_fn *report_misuse_by(report_misuse_fn *fn) { return atomic_exchange(&misuse_line, fn); }

/* A mistake of fn's own, and of another thread meanwhile, gets the plain line. */
void report_misuse(const char *call, const void *pointer, const char *what)
{
    char line[1024];
    const size_t room = sizeof line - 1; /* for the end of the line */
    PROBE(misuse, call, pointer, what);
    report_format(line, room, "reap: %s(%p): %s", call, pointer, what);
    report_misuse_fn *fn = atomic_exchange(&misuse_line, NULL);
    if (fn != NULL) fn(line, room, call, pointer, what);
    line[room - 1] = '\0';
    size_t n = strlen(line);
    line[n] = '\n';
    write_all(line, n + 1);
    sanitizer_describe(pointer);
    abort();
}

void report_misuse_of(const char *call, const void *pointer, const char *what, const char *name)
{
    char text[256];
    report_format(text, sizeof text, "%s %.100s", what, name);
    report_misuse(call, pointer, text);
}
