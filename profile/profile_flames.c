/* SPDX-License-Identifier: Apache-2.0 */
/* profile_flames.c: the report as a flame graph, and as lines.
 *
 *     |                         all                          |
 *     |       malloc        |           request pool         |     a name of reaps
 *     |        main         |       main         |   worker  |     the outermost functions
 *     |    parse   |  read  |   ...
 *
 * A box is as wide as its bytes. Stacks that are sorted by names, outermost first, have those of one box
 * together.
 */
#include "profile_write.h"

#include <stdlib.h>
#include <string.h>

enum { WIDTH = 1200, ROW = 17, MARGIN = 10, TOP = 40, CHARACTER = 7 /* pixels */ };

static const struct report_place *places;
static bool all;

static double bytes_of(const struct report_stack *stack)
{
    double bytes = all ? stack->all.bytes : stack->live.bytes;
    return bytes < 0.5 ? 0 : bytes;
}

static const char *name_of(const struct report_stack *stack) { return *stack->name ? stack->name : "malloc"; }

/* The text of a stack's box in a row; NULL: it has none there. */
static const char *label_of(const struct report_stack *stack, unsigned row)
{
    if (row == 0) return "all";
    if (row == 1) return name_of(stack);
    return row - 2 < stack->depth ? places[stack->places[stack->depth - 1 - (row - 2)]].function : NULL;
}

static int compare(const void *a, const void *b)
{
    const struct report_stack *one = a, *two = b;
    for (unsigned row = 1;; row++) {
        const char *x = label_of(one, row), *y = label_of(two, row);
        if (!x || !y) return (x != NULL) - (y != NULL);
        int order = x == y ? 0 : strcmp(x, y);
        if (order != 0) return order;
    }
}

/* --- SVG ------------------------------------------------------------------------------------- */

static void put_text(FILE *out, const char *text, size_t most)
{
    size_t size = strnlen(text, most);
    for (size_t i = 0; i < size; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c == '<' || c == '>' || c == '&' || c == '"')
            fprintf(out, "&#%u;", c);
        else
            fputc(c < ' ' || c >= 0x7f ? '?' : c, out);
    }
}

/* Colours tell functions apart; reaps are blue. */
static unsigned hue_of(const char *text, unsigned row)
{
    unsigned hash = 5381;
    if (row < 2) return row == 0 ? 0 : 210;
    for (; *text; text++) hash = hash * 33 ^ (unsigned char)*text;
    return 15 + hash % 45;
}

static void put_box(FILE *out, const char *label, unsigned row, double x, double width, double bytes,
                    double share)
{
    unsigned y = TOP + row * ROW;
    size_t room = width > 3 * CHARACTER ? (size_t)(width / CHARACTER) : 0;
    fprintf(out, "<g><title>");
    put_text(out, label, 400);
    fprintf(out, ": %.0f bytes, %.2f %%</title>", bytes, share * 100);
    fprintf(out, "<rect x=\"%.1f\" y=\"%u\" width=\"%.1f\" height=\"%u\" fill=\"hsl(%u,%u%%,75%%)\"/>", x, y,
            width, ROW - 1, hue_of(label, row), row == 0 ? 0 : 80);
    if (room > 0) {
        fprintf(out, "<text x=\"%.1f\" y=\"%u\">", x + 3, y + ROW - 5);
        put_text(out, label, room);
        fprintf(out, "</text>");
    }
    fprintf(out, "</g>\n");
}

/* Draws the boxes of a row over the stacks [from, to), and what is below them. Rows are at most PROFILE_DEPTH
 * and 2. */
static void put_row(FILE *out, const struct report_stack *stacks, uint32_t from, uint32_t to, unsigned row,
                    double x, double scale)
{
    while (from < to) {
        const char *label = label_of(&stacks[from], row);
        double bytes = 0;
        uint32_t next = from;
        for (; next < to; next++) {
            const char *other = label_of(&stacks[next], row);
            if (label != other && (!label || !other || strcmp(label, other) != 0)) break;
            bytes += bytes_of(&stacks[next]);
        }
        double width = bytes * scale;
        if (label && width >= 0.3) {
            put_box(out, label, row, x, width, bytes, width / (WIDTH - 2 * MARGIN));
            put_row(out, stacks, from, next, row + 1, x, scale);
        }
        x += width;
        from = next;
    }
}

void profile_write_flames(const struct report *report, bool of_all, FILE *out)
{
    double sum = 0;
    unsigned depth = 0;
    all = of_all;
    places = report->places;
    for (uint32_t i = 0; i < report->n_stacks; i++) {
        sum += bytes_of(&report->stacks[i]);
        if (report->stacks[i].depth > depth) depth = report->stacks[i].depth;
    }
    qsort(report->stacks, report->n_stacks, sizeof *report->stacks, compare);
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %u %u\" font-family=\"monospace\" "
            "font-size=\"11\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
            WIDTH, TOP + (depth + 3) * ROW);
    fprintf(out, "<text x=\"%u\" y=\"24\" font-size=\"15\">%s, by reap and by stack: %.0f bytes</text>\n",
            MARGIN, all ? "Allocated" : "Live", sum);
    if (sum > 0) put_row(out, report->stacks, 0, report->n_stacks, 0, MARGIN, (WIDTH - 2 * MARGIN) / sum);
    fprintf(out, "</svg>\n");
}

/* --- text ------------------------------------------------------------------------------------ */

struct line {
    const char *name;
    struct profile_sum all, live;
};

static int compare_lines(const void *a, const void *b)
{
    const struct line *one = a, *two = b;
    if (one->live.bytes != two->live.bytes) return one->live.bytes < two->live.bytes ? 1 : -1;
    return strcmp(one->name, two->name);
}

static void add(struct profile_sum *to, const struct profile_sum *sum)
{
    to->objects += sum->objects;
    to->bytes += sum->bytes;
    to->taken += sum->taken;
}

void profile_write_names(const struct report *report, FILE *out)
{
    struct line *lines = report_memory(PROFILE_NAMES * sizeof *lines);
    unsigned n = 0;
    for (uint32_t i = 0; lines && i < report->n_stacks; i++) {
        const struct report_stack *stack = &report->stacks[i];
        unsigned at = 0;
        while (at < n && lines[at].name != name_of(stack) && strcmp(lines[at].name, name_of(stack)) != 0)
            at++;
        if (at == n) lines[n++] = (struct line){.name = name_of(stack)};
        add(&lines[at].all, &stack->all);
        add(&lines[at].live, &stack->live);
    }
    qsort(lines, n, sizeof *lines, compare_lines);
    for (unsigned i = 0; i < n; i++)
        fprintf(out, "%s: %.0f live objects, %.0f bytes, %.0f usable; %.0f allocated, %.0f bytes\n",
                lines[i].name, lines[i].live.objects + 0.1, lines[i].live.bytes + 0.1,
                lines[i].live.taken + 0.1, lines[i].all.objects, lines[i].all.bytes);
}
