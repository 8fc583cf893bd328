/* SPDX-License-Identifier: Apache-2.0 */
/* page.c: the page of pictures. */
#include <inttypes.h>
#include <stdlib.h>

#include "show.h"

enum { WIDTH = 720, HEIGHT = 240, LEFT = 70, BOTTOM = 28, TOP = 12 };

static const char head[] =
    "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">"
    "<meta name=\"viewport\" content=\"width=device-width\"><title>reap-analyse</title><style>"
    ":root{color-scheme:light dark;--ink:#222;--back:#fff;--rule:#ccc;--a:#0b6bcb;--b:#c4501b}"
    "@media(prefers-color-scheme:dark){:root{--ink:#ddd;--back:#181818;--rule:#444;--a:#6cb2ff;--b:#ff9966}}"
    "body{font:15px/1.45 "
    "system-ui,sans-serif;color:var(--ink);background:var(--back);max-width:760px;margin:1.5em auto;"
    "padding:0 1em}svg{width:100%;height:auto}text{fill:var(--ink);font-size:12px}.rule{stroke:var(--rule)}"
    ".u{fill:none;stroke:var(--a);stroke-width:2}.a{fill:none;stroke:var(--b);stroke-width:2}.bar{fill:var(--"
    "a)}"
    "h1{font-size:1.3em;overflow-wrap:anywhere}h2{font-size:1.1em}td,th{text-align:right;padding:2px "
    "8px;vertical-align:top}"
    "td:last-child{text-align:left;overflow-wrap:anywhere}table{border-collapse:collapse}.k{color:var(--a)}."
    "r{color:var(--b)}"
    "div{overflow-x:auto}</style>\n";

static void write_html(const char *text, FILE *out)
{
    for (; *text; text++) switch (*text) {
        case '<': fputs("&lt;", out); break;
        case '>': fputs("&gt;", out); break;
        case '&': fputs("&amp;", out); break;
        case '"': fputs("&quot;", out); break;
        default:
            if ((unsigned char)*text < 0x80)
                fputc(*text, out);
            else
                fprintf(out, "&#%u;", (unsigned char)*text);
        }
}

static void begin_picture(uint64_t most, const char *name, FILE *out)
{
    fprintf(out, "<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"%s\">", WIDTH, HEIGHT, name);
    for (int i = 0; i <= 4; i++) {
        int y = HEIGHT - BOTTOM - i * (HEIGHT - BOTTOM - TOP) / 4;
        fprintf(out,
                "<line class=\"rule\" x1=\"%d\" x2=\"%d\" y1=\"%d\" y2=\"%d\"/><text x=\"%d\" y=\"%d\" "
                "text-anchor=\"end\">",
                LEFT, WIDTH, y, y, LEFT - 6, y + 4);
        show_bytes(most / 4 * (uint64_t)i, out);
        fprintf(out, "</text>");
    }
}

static double height_of(uint64_t bytes, uint64_t most)
{
    return (double)bytes / (double)(most ? most : 1) * (HEIGHT - BOTTOM - TOP);
}

/* RSS above its first sample, as A is. */
static uint64_t value_of(const struct figures *figures, uint32_t i, bool is_held)
{
    const struct figures_point *point = &figures->points[i];
    if (!is_held) return point->used;
    return point->held > figures->held_first ? point->held - figures->held_first : 0;
}

static void line(const struct figures *figures, uint64_t most, bool is_held, FILE *out)
{
    fprintf(out, "<polyline class=\"%s\" points=\"", is_held ? "a" : "u");
    for (uint32_t i = 0; i < figures->n_points; i++) {
        if (is_held && figures->points[i].held == 0) continue;
        double x = LEFT + (double)i / (figures->n_points > 1 ? figures->n_points - 1 : 1) * (WIDTH - LEFT);
        fprintf(out, "%.1f,%.1f ", x, HEIGHT - BOTTOM - height_of(value_of(figures, i, is_held), most));
    }
    fputs("\"/>", out);
}

static void curve(const struct figures *figures, FILE *out)
{
    uint64_t most = figures->most_used;
    if (figures->held_most - figures->held_first > most) most = figures->held_most - figures->held_first;
    fputs("<h2>Over time: <span class=\"k\">U, what the program has asked for and not given back</span>; "
          "<span class=\"r\">A, what the process has got from the system since its first sample</span></h2>",
          out);
    begin_picture(most, "bytes over time", out);
    line(figures, most, false, out);
    line(figures, most, true, out);
    fprintf(
        out,
        "<text x=\"%d\" y=\"%d\">0 s</text><text x=\"%d\" y=\"%d\" text-anchor=\"end\">%.3f s</text></svg>\n",
        LEFT, HEIGHT - 8, WIDTH, HEIGHT - 8, (double)(figures->end - figures->start) / 1e9);
}

static void bars(const char *name, const char *last, const struct figures_powers *powers, FILE *out)
{
    int from = 0, to = FIGURES_POWERS - 1;
    uint64_t most = 0;
    while (to > 0 && powers->objects[to] == 0) to--;
    while (from < to && powers->objects[from] == 0) from++;
    for (int i = from; i <= to; i++)
        if (powers->bytes[i] > most) most = powers->bytes[i];
    fprintf(out, "<h2>%s</h2>", name);
    begin_picture(most, name, out);
    double step = (double)(WIDTH - LEFT) / (to - from + 1);
    for (int i = from; i <= to; i++) {
        double height = height_of(powers->bytes[i], most), x = LEFT + (i - from) * step;
        fprintf(out,
                "<rect class=\"bar\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"><title>%" PRIu64
                " objects, %" PRIu64 " bytes</title></rect>",
                x + 1, HEIGHT - BOTTOM - height, step - 2, height, powers->objects[i], powers->bytes[i]);
        if ((i - from) % 4 == 0)
            fprintf(out, "<text x=\"%.1f\" y=\"%d\">%" PRIu64 "</text>", x, HEIGHT - 8, (uint64_t)1 << i);
    }
    fprintf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text></svg>\n", WIDTH, TOP, last);
}

static void places(const struct shown *shown, FILE *out)
{
    const struct figures *figures = shown->figures;
    uint32_t *worst = calloc(shown->places + 1, sizeof *worst);
    uint32_t n = worst ? show_worst(shown, worst, shown->places) : 0;
    fprintf(out, "<h2>%s</h2><div><table><tr>%s<th>at once<th>in all<th>objects<th>stack\n",
            figures->drag ? "Most drag: what waits for its end after its last use"
                          : "Most bytes at once, by stack",
            figures->drag ? "<th>of all drag<th>of its own" : "");
    for (uint32_t i = 0; i < n; i++) {
        fputs("<tr>", out);
        if (figures->drag) {
            const struct drag_stack *drag = drag_stack(figures->drag, worst[i]);
            const struct drag_sums *sums = drag_sums(figures->drag);
            fprintf(out, "<td>%.1f %%<td>%.0f %%", 100 * drag->drag / (sums->held - sums->needed),
                    100 * drag->drag / drag->held);
        }
        fputs("<td>", out);
        show_bytes(figures->stacks[worst[i]].at_peak, out);
        fputs("<td>", out);
        show_bytes(figures->stacks[worst[i]].bytes, out);
        fprintf(out, "<td>%" PRIu64 "<td>", figures->stacks[worst[i]].objects);
        show_stack(shown, worst[i], 8, "", "<br>", out, write_html);
    }
    fputs("</table></div>\n", out);
    free(worst);
}

void show_page(const struct shown *shown, FILE *out)
{
    const struct figures *figures = shown->figures;
    fputs(head, out);
    fputs("<h1>", out);
    write_html(reader_command(shown->reader), out);
    fprintf(out, "</h1><p>%" PRIu64 " events, %" PRIu64 " objects, ", figures->n_events,
            figures->lives.serial);
    show_bytes(figures->lives.asked, out);
    fputs(" asked for; at the most ", out);
    show_bytes(figures->most_used, out);
    fputs(" at once.", out);
    if (figures_fragmentation(figures) > 0) fprintf(out, " A/U %.2f.", figures_fragmentation(figures));
    if (figures->drag)
        fprintf(out, " Memory is held %.2f times as long as it is used (drag).",
                drag_sums(figures->drag)->held / drag_sums(figures->drag)->needed);
    fputs("\n", out);
    curve(figures, out);
    bars("Bytes by size of object", "bytes of an object, up to", &figures->sizes, out);
    bars("Bytes by lifetime", "bytes asked for while it lives, up to", &figures->lives_bytes, out);
    places(shown, out);
    fputs("</html>\n", out);
}
