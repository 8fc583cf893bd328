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

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Pixels; a character of a monospaced font of 11 has at most 6.65. */
enum { WIDTH = 1200, ROW = 17, MARGIN = 10, TOP = 40, GAP = 2 };
static const double CHARACTER = 6.65, LEAST = 0.3 /* a box */;

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

/* Bytes as people read them, in `text`. */
static const char *readable(double bytes, char text[32])
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
    unsigned unit = 0;
    for (; bytes >= 1024 && unit < 4; unit++) bytes /= 1024;
    snprintf(text, 32, "%.*f %s", unit > 0 && bytes < 100 ? 1 : 0, bytes, units[unit]);
    return text;
}

/* The text of a box that has room for so many characters: a name that is cut ends in a dot, and a reap's has
 * its bytes if there is room for both. */
static void put_label(FILE *out, const char *label, unsigned row, double bytes, size_t room)
{
    char size[32];
    size_t length = strlen(label);
    bool is_cut = length > room;
    put_text(out, label, is_cut ? room - 1 : room);
    if (is_cut)
        fputc('.', out);
    else if (row < 2 && length + 2 + strlen(readable(bytes, size)) <= room)
        fprintf(out, "  %s", size);
}

static void put_box(FILE *out, const char *label, unsigned row, double x, double width, double bytes,
                    double share)
{
    unsigned y = TOP + row * ROW;
    size_t room = width > 3 * CHARACTER ? (size_t)((width - 2 * GAP) / CHARACTER) : 0;
    fprintf(out, "<g><title>");
    put_text(out, label, 400);
    fprintf(out, ": %.0f bytes, %.2f %%</title>", bytes, share * 100);
    fprintf(out, "<rect x=\"%.1f\" y=\"%u\" width=\"%.1f\" height=\"%u\" fill=\"hsl(%u,%u%%,75%%)\"/>", x, y,
            width, ROW - 1, hue_of(label, row), row == 0 ? 0 : 80);
    if (room > 0) {
        fprintf(out, "<text x=\"%.1f\" y=\"%u\">", x + GAP, y + ROW - 5);
        put_label(out, label, row, bytes, room);
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
        if (label && width >= LEAST) {
            put_box(out, label, row, x, width, bytes, width / (WIDTH - 2 * MARGIN));
            put_row(out, stacks, from, next, row + 1, x, scale);
        }
        x += width;
        from = next;
    }
}

static void put_head(FILE *out, double sum, unsigned depth, size_t period)
{
    char text[32];
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %u %u\" font-family=\"monospace\" "
            "font-size=\"11\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
            WIDTH, TOP + (depth + 3) * ROW);
    fprintf(out, "<text x=\"%u\" y=\"24\" font-size=\"15\">%s, by reap and by stack: %s", MARGIN,
            all ? "Allocated" : "Live", readable(sum, text));
    if (sum > 0) fprintf(out, " (standard deviation %s)", readable(sqrt(sum * (double)period), text));
    fprintf(out, "</text>\n");
}

void profile_write_flames(const struct report *report, bool of_all, size_t period, FILE *out)
{
    double sum = 0;
    unsigned depth = 0; /* of stacks that are drawn */
    all = of_all;
    places = report->places;
    for (uint32_t i = 0; i < report->n_stacks; i++) sum += bytes_of(&report->stacks[i]);
    double scale = sum > 0 ? (WIDTH - 2 * MARGIN) / sum : 0;
    for (uint32_t i = 0; i < report->n_stacks; i++)
        if (report->stacks[i].depth > depth && bytes_of(&report->stacks[i]) * scale >= LEAST)
            depth = report->stacks[i].depth;
    qsort(report->stacks, report->n_stacks, sizeof *report->stacks, compare);
    put_head(out, sum, depth, period);
    if (sum > 0) put_row(out, report->stacks, 0, report->n_stacks, 0, MARGIN, scale);
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
