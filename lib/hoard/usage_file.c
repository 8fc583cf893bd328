/* SPDX-License-Identifier: Apache-2.0 */
/* usage_file.c: the report in a file, as lines or as JSON (stats=FILE). */
#include "hoard/usage.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/named_file.h"
#include "base/options.h"
#include "base/process_name.h"
#include "base/report.h"
#include "base/small_file.h"

static SPARSE char given[1024]; /* the file's name, as the user gave it */

/* The report goes out in one write, so that processes which add to one file do not mix their lines. */
struct page {
    char text[16 * 1024];
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

static void to_page_as_is(const char *text, size_t size, void *to)
{
    struct page *page = to;
    size_t room = sizeof page->text - page->size;
    if (size > room) size = room;
    memcpy(page->text + page->size, text, size);
    page->size += size;
}

static void put_options(const struct json *json)
{
    char item[64];
    json_put(json, "{");
    for (unsigned i = 0; options_show(i, item, sizeof item); i++) {
        const char *equals = memchr(item, '=', sizeof item);
        if (i != 0) json_put(json, ", ");
        json_string(json, item, (size_t)(equals - item));
        json_put(json, ": ");
        json_string(json, equals + 1, SIZE_MAX);
    }
    json_put(json, "}");
}

static void put_json(struct page *page)
{
    const struct json json = {to_page_as_is, page};
    json_put(&json, "{\"program\": ");
    json_string(&json, program_invocation_short_name, 200);
    json_put(&json, ", \"process\": %u, ", (unsigned)getpid());
    usage_json(&json);
    json_put(&json, ", \"options\": ");
    put_options(&json);
    json_put(&json, "}\n");
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
    const char *why = strerrordesc_np(ENAMETOOLONG);
    int fd = process_name(given, name, sizeof name) ? named_file_open(name, &why) : -1;
    bool is_json = length > 5 && strcmp(given + length - 5, ".json") == 0;
    if (fd >= 0) (is_json ? put_json : put_lines)(&page);
    bool is_written = fd >= 0 && small_file_write_all(fd, page.text, page.size);
    if (fd >= 0 && !is_written) why = strerrordesc_np(errno);
    if (!is_written) report_line("REAP_OPTIONS: stats=%.200s cannot be written: %s", name, why);
    if (fd >= 0) small_file_close(fd);
    return true;
}
