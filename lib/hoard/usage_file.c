/* SPDX-License-Identifier: Apache-2.0 */
/* usage_file.c: the report in a file, as lines or as JSON (stats=FILE). */
#include "hoard/usage.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "base/options.h"
#include "base/report.h"
#include "base/small_file.h"
#include "os/rseq.h"

static char given[1024]; /* the file's name, as the user gave it */

/* The report goes out in one write, so that processes which add to one file do not mix their lines. */
struct page {
    char text[4096];
    size_t size;
};

static void put(struct page *page, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(struct page *page, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    page->size += report_vformat(page->text + page->size, sizeof page->text - page->size, format, args);
    va_end(args);
}

static void to_page(const char *text, void *page) { put(page, "reap: %s\n", text); }

static void put_lines(struct page *page)
{
    put(page, "reap: " REPORT_END "\n", program_invocation_short_name, (unsigned)getpid());
    usage_lines(to_page, page);
}

/* Writes a JSON string of at most `size` bytes of text. */
static void put_string(struct page *page, const char *text, size_t size)
{
    static const char digits[] = "0123456789abcdef";
    put(page, "\"");
    for (size_t i = 0; i < size && text[i] != '\0'; i++) {
        unsigned char c = (unsigned char)text[i];
        char plain[2] = {text[i], '\0'};
        bool escapes = c == '"' || c == '\\';
        if (c < ' ' || c >= 0x7f)
            put(page, "\\u00%.1s%.1s", &digits[c / 16], &digits[c % 16]);
        else
            put(page, "%s%s", escapes ? "\\" : "", plain);
    }
    put(page, "\"");
}

static void put_options(struct page *page)
{
    char item[64];
    put(page, ", \"options\": {");
    for (unsigned i = 0; options_show(i, item, sizeof item); i++) {
        const char *equals = memchr(item, '=', sizeof item);
        if (i != 0) put(page, ", ");
        put_string(page, item, (size_t)(equals - item));
        put(page, ": ");
        put_string(page, equals + 1, SIZE_MAX);
    }
    put(page, "}");
}

static void put_json(struct page *page)
{
    struct hoard_stats s;
    usage_fill(&s);
    put(page, "{\"program\": ");
    put_string(page, program_invocation_short_name, 200);
    put(page, ", \"process\": %u, \"path\": ", (unsigned)getpid());
    put_string(page, s.path, SIZE_MAX);
    put(page, ", \"reason\": ");
    put_string(page, cpu.reason, 400);
    put_options(page);
    put(page, ", \"live_bytes\": %zu, \"large_bytes\": %zu, \"held_bytes\": %zu, \"peak_held_bytes\": %zu",
        s.live_bytes, s.large_bytes, s.held_bytes, s.peak_held_bytes);
    put(page, ", \"heaps\": %zu, \"superblocks\": %zu, \"global_superblocks\": %zu", s.heaps, s.superblocks,
        s.global_superblocks);
    put(page, ", \"slow_mallocs\": %llu, \"slow_frees\": %llu", (unsigned long long)s.slow_mallocs,
        (unsigned long long)s.slow_frees);
    put(page, ", \"remote_frees\": %llu, \"transfers\": %llu}\n", (unsigned long long)s.remote_frees,
        (unsigned long long)s.transfers);
}

/* Makes the file's name: the user's name, with the process's number for each %p. False: it is too long. */
static bool file_name(char *name, size_t size)
{
    size_t n = 0;
    for (const char *at = given; *at != '\0'; at++) {
        bool is_process = at[0] == '%' && at[1] == 'p';
        char plain[2] = {*at, '\0'};
        n += is_process ? report_format(name + n, size - n, "%u", (unsigned)getpid())
                        : report_format(name + n, size - n, "%s", plain);
        at += is_process;
    }
    return n + 1 < size;
}

void usage_file_start(void)
{
    size_t size = options.stats_file != NULL ? strcspn(options.stats_file, ",") : 0;
    if (size >= sizeof given) {
        report_line("REAP_OPTIONS: stats=%.200s is too long", options.stats_file);
        return;
    }
    if (size != 0) memcpy(given, options.stats_file, size);
}

bool usage_file_write(void)
{
    struct page page = {.size = 0};
    char name[1200];
    size_t length = strlen(given);
    if (length == 0) return false;
    errno = ENAMETOOLONG;
    int fd = file_name(name, sizeof name) ? small_file_open(name, O_WRONLY | O_CREAT | O_APPEND) : -1;
    bool is_json = length > 5 && strcmp(given + length - 5, ".json") == 0;
    if (fd >= 0) (is_json ? put_json : put_lines)(&page);
    if (fd < 0 || small_file_write(fd, page.text, page.size) != (ssize_t)page.size)
        report_line("REAP_OPTIONS: stats=%.200s cannot be written: %s", name, strerrordesc_np(errno));
    if (fd >= 0) small_file_close(fd);
    return true;
}
