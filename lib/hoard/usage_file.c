/* SPDX-License-Identifier: Apache-2.0 */
/* usage_file.c: the report in a file (stats=FILE). */
#include "hoard/usage.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/named_file.h"
#include "base/options.h"
#include "base/report.h"
#include "base/small_file.h"
#include "tools/common/numbered_name.h"

static SPARSE char given[1024]; /* the file's name, as the user gave it */

/* The report goes out in one write, so that processes which add to one file do not mix their lines. */
struct page {
    char text[4096];
    size_t size;
};

static void add_line(const char *text, void *to)
{
    struct page *page = to;
    page->size += report_format(page->text + page->size, sizeof page->text - page->size, "reap: %s\n", text);
}

static void add_lines(struct page *page)
{
    char end[160];
    report_format(end, sizeof end, REPORT_END, program_invocation_short_name, (unsigned)getpid());
    add_line(end, page);
    usage_lines(add_line, page);
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
    if (given[0] == '\0') return false;
    const char *why = strerrordesc_np(ENAMETOOLONG);
    int fd = numbered_name(name, sizeof name, given, strlen(given)) ? named_file_open(name, &why) : -1;
    if (fd >= 0) add_lines(&page);
    bool is_written = fd >= 0 && small_file_write_all(fd, page.text, page.size);
    if (fd >= 0 && !is_written) why = strerrordesc_np(errno);
    if (!is_written) report_line("REAP_OPTIONS: stats=%.200s cannot be written: %s", name, why);
    if (fd >= 0) small_file_close(fd);
    return true;
}
