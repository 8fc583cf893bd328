/* SPDX-License-Identifier: Apache-2.0 */
#include "show.h"

#include <inttypes.h>
#include <stdlib.h>

#include "symbols.h"

void show_bytes(uint64_t bytes, FILE *out)
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
    double n = (double)bytes;
    int unit = 0;
    for (; n >= 10240 && unit < 4; unit++) n /= 1024;
    fprintf(out, unit == 0 ? "%.0f %s" : "%.1f %s", n, units[unit]);
}

static double weight(const struct figures *figures, uint32_t number)
{
    return figures->drag ? drag_stack(figures->drag, number)->drag : (double)figures->stacks[number].at_peak;
}

uint32_t show_worst(const struct shown *shown, uint32_t *numbers, uint32_t n)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < shown->figures->n_stacks; i++) {
        double more = weight(shown->figures, i);
        if (more <= 0 || (found == n && more <= weight(shown->figures, numbers[n - 1]))) continue;
        uint32_t at = found < n ? found++ : n - 1;
        for (; at > 0 && weight(shown->figures, numbers[at - 1]) < more; at--) numbers[at] = numbers[at - 1];
        numbers[at] = i;
    }
    return found;
}

void show_stack(const struct shown *shown, uint32_t number, unsigned frames, const char *before,
                const char *after, FILE *out, void (*write)(const char *text, FILE *out))
{
    const uint64_t *at;
    char text[512];
    unsigned n = reader_stack(shown->reader, number, &at);
    for (unsigned i = 0; i < n && i < frames; i++) {
        symbols_frame(shown->reader, at[i], text, sizeof text);
        fputs(before, out);
        write(text, out);
        fputs(after, out);
    }
    if (n > 0) return;
    fputs(before, out);
    write("(no stack: record with REAP_TRACE=FILE,stacks=8)", out);
    fputs(after, out);
}

void show_early(const struct shown *shown, FILE *out)
{
    const struct drag *drag = shown->figures->drag;
    uint32_t *worst = calloc(shown->places + 1, sizeof *worst);
    uint32_t n = worst && drag ? show_worst(shown, worst, shown->places) : 0;
    for (uint64_t serial = 1; n > 0 && serial <= shown->figures->lives.serial; serial++) {
        const struct drag_object *object = drag_object(drag, serial);
        for (uint32_t i = 0; i < n && object->stack > 0; i++)
            if (object->stack - 1 == worst[i])
                fprintf(out, "%" PRIu64 " %#" PRIx64 " %" PRIu64 "\n", serial, object->address,
                        object->last_serial);
    }
    free(worst);
}

static void write_plain(const char *text, FILE *out) { fputs(text, out); }

/* --- text --------------------------------------------------------------------------------------- */

static void text_powers(const char *head, const char *unit, const struct figures_powers *powers, FILE *out)
{
    fprintf(out, "\n%s\n%14s %14s %14s\n", head, unit, "objects", "bytes");
    for (int i = 0; i < FIGURES_POWERS; i++)
        if (powers->objects[i] > 0)
            fprintf(out, "%14" PRIu64 " %14" PRIu64 " %14" PRIu64 "\n", (uint64_t)1 << i, powers->objects[i],
                    powers->bytes[i]);
}

static void text_curve(const struct figures *figures, FILE *out)
{
    fprintf(out, "\nover time\n%14s %14s %14s %14s\n", "ms", "U", "objects", "RSS");
    uint32_t step = figures->n_points / 16 + 1;
    for (uint32_t i = 0; i < figures->n_points; i += step) {
        struct figures_point most = {0};
        for (uint32_t j = i; j < i + step && j < figures->n_points; j++) {
            if (figures->points[j].used > most.used) most.used = figures->points[j].used;
            if (figures->points[j].objects > most.objects) most.objects = figures->points[j].objects;
            if (figures->points[j].held > most.held) most.held = figures->points[j].held;
        }
        fprintf(out, "%14.3f %14" PRIu64 " %14" PRIu64, (double)(i * figures->width) / 1e6, most.used,
                most.objects);
        if (most.held > 0)
            fprintf(out, " %14" PRIu64 "\n", most.held);
        else
            fprintf(out, " %14s\n", "-");
    }
}

static void text_places(const struct shown *shown, FILE *out)
{
    const struct figures *figures = shown->figures;
    uint32_t *worst = calloc(shown->places + 1, sizeof *worst);
    uint32_t n = worst ? show_worst(shown, worst, shown->places) : 0;
    fprintf(out, figures->drag ? "\nmost drag: bytes that wait for their end after their last use\n"
                               : "\nmost bytes alive at once, by stack\n");
    for (uint32_t i = 0; i < n; i++) {
        const struct figures_stack *stack = &figures->stacks[worst[i]];
        if (figures->drag) {
            const struct drag_stack *drag = drag_stack(figures->drag, worst[i]);
            fprintf(out, "%5.1f %% of all drag; %3.0f %% of what it holds: ",
                    100 * drag->drag / (drag_sums(figures->drag)->held - drag_sums(figures->drag)->needed),
                    100 * drag->drag / drag->held);
        }
        show_bytes(stack->at_peak, out);
        fprintf(out, " at once, ");
        show_bytes(stack->bytes, out);
        fprintf(out, " in %" PRIu64 " objects\n", stack->objects);
        show_stack(shown, worst[i], TRACE_DEPTH, "        ", "\n", out, write_plain);
    }
    free(worst);
}

static void text_drag(const struct figures *figures, FILE *out)
{
    const struct drag_sums *sums = drag_sums(figures->drag);
    fprintf(out,
            "drag           held over needed %.3f over time, %.3f at the most: ", sums->held / sums->needed,
            sums->most_needed ? (double)sums->most_held / (double)sums->most_needed : 1);
    show_bytes(sums->most_held, out);
    fprintf(out, " and ");
    show_bytes(sums->most_needed, out);
    fprintf(out, "; %" PRIu64 " uses seen, %" PRIu64 " of objects\n", sums->uses, sums->uses_of_objects);
}

void show_text(const struct shown *shown, FILE *out)
{
    const struct figures *figures = shown->figures;
    fprintf(out, "program        %s\nprocess        %u\n", reader_command(shown->reader),
            reader_head(shown->reader)->pid);
    fprintf(out, "events         %" PRIu64 " in %.3f s\n", figures->n_events,
            (double)(figures->end - figures->start) / 1e9);
    fprintf(out, "objects        %" PRIu64 ", %" PRIu64 " at once, %" PRIu64 " at the end\n",
            figures->lives.serial, figures->most_objects, figures->lives.objects);
    fprintf(out, "asked for      %" PRIu64 " bytes\n", figures->lives.asked);
    fprintf(out, "U              %" PRIu64 " bytes at the most, after %.3f s\n", figures->most_used,
            (double)(figures->most_used_at - figures->start) / 1e9);
    if (figures_fragmentation(figures) > 0)
        fprintf(out, "A              %" PRIu64 " bytes at the most; A/U %.2f\n",
                figures->held_most - figures->held_first, figures_fragmentation(figures));
    if (figures->lives.unknown > 0 || figures->lives.covered > 0)
        fprintf(out,
                "not explained  %" PRIu64 " frees of what had not begun, %" PRIu64
                " objects without an end\n",
                figures->lives.unknown, figures->lives.covered);
    if (figures->drag) text_drag(figures, out);
    text_curve(figures, out);
    text_powers("sizes: objects and bytes up to each", "bytes", &figures->sizes, out);
    text_powers("lifetimes: objects that end within so many bytes that the program asks for", "bytes asked",
                &figures->lives_bytes, out);
    text_powers("lifetimes, by the clock", "ns", &figures->lives_ns, out);
    text_places(shown, out);
}

/* --- JSON --------------------------------------------------------------------------------------- */

static void write_string(const char *text, FILE *out)
{
    fputc('"', out);
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            fprintf(out, "\\%c", c);
        else if (c < ' ' || c >= 0x7f)
            fprintf(out, "\\u%04x", c);
        else
            fputc(c, out);
    }
    fputc('"', out);
}

static void write_element(const char *text, FILE *out)
{
    write_string(text, out);
    fputc(',', out);
}

static void json_powers(const char *name, const struct figures_powers *powers, FILE *out)
{
    const char *comma = "";
    fprintf(out, ",\n \"%s\": [", name);
    for (int i = 0; i < FIGURES_POWERS; i++) {
        if (powers->objects[i] == 0) continue;
        fprintf(out, "%s[%" PRIu64 ",%" PRIu64 ",%" PRIu64 "]", comma, (uint64_t)1 << i, powers->objects[i],
                powers->bytes[i]);
        comma = ",";
    }
    fputc(']', out);
}

static void json_places(const struct shown *shown, FILE *out)
{
    const struct figures *figures = shown->figures;
    uint32_t *worst = calloc(shown->places + 1, sizeof *worst);
    uint32_t n = worst ? show_worst(shown, worst, shown->places) : 0;
    fprintf(out, ",\n \"places\": [");
    for (uint32_t i = 0; i < n; i++) {
        const struct figures_stack *stack = &figures->stacks[worst[i]];
        fprintf(out, "%s\n  {\"objects\": %" PRIu64 ", \"bytes\": %" PRIu64 ", \"at_once\": %" PRIu64,
                i > 0 ? "," : "", stack->objects, stack->bytes, stack->at_peak);
        if (figures->drag)
            fprintf(out, ", \"drag\": %.0f, \"held\": %.0f", drag_stack(figures->drag, worst[i])->drag,
                    drag_stack(figures->drag, worst[i])->held);
        fprintf(out, ", \"stack\": [");
        show_stack(shown, worst[i], TRACE_DEPTH, "", "", out, write_element);
        fprintf(out, "null]}");
    }
    fprintf(out, "]");
    free(worst);
}

void show_json(const struct shown *shown, FILE *out)
{
    const struct figures *figures = shown->figures;
    fprintf(out, "{\"program\": ");
    write_string(reader_command(shown->reader), out);
    fprintf(out, ",\n \"process\": %u, \"events\": %" PRIu64 ", \"ns\": %" PRIu64,
            reader_head(shown->reader)->pid, figures->n_events, figures->end - figures->start);
    fprintf(out, ",\n \"objects\": %" PRIu64 ", \"most_objects\": %" PRIu64 ", \"objects_at_end\": %" PRIu64,
            figures->lives.serial, figures->most_objects, figures->lives.objects);
    fprintf(out,
            ",\n \"asked\": %" PRIu64 ", \"U\": %" PRIu64 ", \"A\": %" PRIu64 ", \"fragmentation\": %.4f",
            figures->lives.asked, figures->most_used, figures->held_most - figures->held_first,
            figures_fragmentation(figures));
    fprintf(out, ",\n \"unknown_frees\": %" PRIu64 ", \"covered\": %" PRIu64, figures->lives.unknown,
            figures->lives.covered);
    if (figures->drag) {
        const struct drag_sums *sums = drag_sums(figures->drag);
        fprintf(out,
                ",\n \"drag\": {\"held\": %.0f, \"needed\": %.0f, \"most_held\": %" PRIu64
                ", \"most_needed\": %" PRIu64 ", \"uses\": %" PRIu64 "}",
                sums->held, sums->needed, sums->most_held, sums->most_needed, sums->uses);
    }
    fprintf(out, ",\n \"curve_ns\": %" PRIu64 ", \"curve\": [", figures->width);
    for (uint32_t i = 0; i < figures->n_points; i++)
        fprintf(out, "%s[%" PRIu64 ",%" PRIu64 ",%" PRIu64 "]", i > 0 ? "," : "", figures->points[i].used,
                figures->points[i].objects, figures->points[i].held);
    fprintf(out, "]");
    json_powers("sizes", &figures->sizes, out);
    json_powers("lifetimes_bytes", &figures->lives_bytes, out);
    json_powers("lifetimes_ns", &figures->lives_ns, out);
    json_places(shown, out);
    fprintf(out, "}\n");
}
