/* SPDX-License-Identifier: Apache-2.0 */
/* profile_charges.c: what malloc holds that no reap has, by module, and by whom it is for.
 */
#include "profile_write.h"

#include <stdlib.h>
#include <string.h>

struct line {
    const char *name, *module;
    double objects, bytes;
};

static const char *base_of(const char *file)
{
    const char *slash = strrchr(file, '/');
    return slash ? slash + 1 : file;
}

/* Libraries that allocate for whom calls them. */
static bool is_runtime(const char *file)
{
    static const char *const names[] = {"libc.so",  "libstdc++.so", "libc++.so", "libgcc_s.so",
                                        "ld-linux", "libreap",      "libm.so"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strncmp(file, names[i], strlen(names[i])) == 0) return true;
    return false;
}

static const char *module_of(const struct report *report, const struct report_stack *stack)
{
    const char *innermost = "?";
    for (unsigned i = 0; i < stack->depth; i++) {
        const char *file = base_of(report->places[stack->places[i]].file);
        if (*file && !is_runtime(file)) return file;
        if (*file && *innermost == '?') innermost = file;
    }
    return innermost;
}

static int by_name(const void *a, const void *b)
{
    const struct line *one = a, *two = b;
    int order = strcmp(one->name, two->name);
    return order != 0 ? order : strcmp(one->module, two->module);
}

static int by_bytes(const void *a, const void *b)
{
    const struct line *one = a, *two = b;
    return (one->bytes < two->bytes) - (one->bytes > two->bytes);
}

static size_t join(struct line *lines, size_t n)
{
    size_t joined = 0;
    for (size_t i = 0; i < n; i++) {
        if (joined == 0 || by_name(&lines[joined - 1], &lines[i]) != 0) {
            lines[joined++] = lines[i];
            continue;
        }
        lines[joined - 1].objects += lines[i].objects;
        lines[joined - 1].bytes += lines[i].bytes;
    }
    return joined;
}

/* A file or a name may have a tab or a line's end. */
static void put_text(FILE *out, const char *text)
{
    for (; *text; text++) fputc((unsigned char)*text < ' ' ? '?' : *text, out);
}

void profile_write_mallocs(const struct report *report, FILE *out)
{
    struct line *lines = report_memory(report->n_stacks * sizeof *lines);
    size_t n = 0;
    for (uint32_t i = 0; lines && i < report->n_stacks; i++) {
        const struct report_stack *stack = &report->stacks[i];
        if (!stack->is_malloc || stack->live.bytes < 0.5) continue;
        const char *name = *stack->name ? stack->name + strlen(PROFILE_MALLOC) : "";
        lines[n++] = (struct line){name, module_of(report, stack), stack->live.objects, stack->live.bytes};
    }
    if (n == 0) return;
    qsort(lines, n, sizeof *lines, by_name);
    n = join(lines, n);
    qsort(lines, n, sizeof *lines, by_bytes);
    for (size_t i = 0; i < n; i++) {
        fprintf(out, "%.0f\t%.0f\t", lines[i].bytes, lines[i].objects);
        put_text(out, lines[i].module);
        fputc('\t', out);
        put_text(out, lines[i].name);
        fputc('\n', out);
    }
}
