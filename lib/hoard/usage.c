/* SPDX-License-Identifier: Apache-2.0 */
#include "hoard/usage.h"

#include "arena/arena.h"
#include "arena/large.h"
#include "base/options.h"
#include "base/report.h"
#include "heap/global_heap.h"
#include "heap/heap.h"
#include "os/rseq.h"

static size_t small_bytes(struct arena *arena)
{
    size_t bytes = 0;
    for (unsigned i = 0; arena->mapping == 0 && i < ARENA_SLOTS; i++) {
        const struct superblock *slot = &arena->slots[i];
        if (slot->kind == SLOT_BLOCKS || slot->kind == SLOT_CHUNKS)
            bytes += (size_t)superblock_live(slot) * superblock_class(slot)->size;
    }
    return bytes;
}

void usage_fill(struct hoard_stats *stats)
{
    heap_deliver_all();
    struct arena_held held = arena_held();
    struct heap_totals totals = heap_totals();
    *stats = (struct hoard_stats){
        .held_bytes = held.now,
        .peak_held_bytes = held.peak,
        .large_bytes = large_totals().bytes,
        .heaps = totals.heaps,
        .superblocks = totals.superblocks,
        .global_superblocks = global_heap_superblocks(),
        .slow_mallocs = totals.counts.slow_mallocs,
        .slow_frees = totals.counts.slow_frees + totals.counts.remote_frees,
        .remote_frees = totals.counts.remote_frees,
        .transfers = totals.counts.transfers,
        .path = cpu.path,
    };
    stats->live_bytes = stats->large_bytes;
    for (struct arena *arena = arena_first(); arena != NULL; arena = arena->next)
        if (arena->base != NULL) stats->live_bytes += small_bytes(arena);
}

static void options_line(char *text, size_t size)
{
    size_t n = report_format(text, size, "options");
    char item[64];
    for (unsigned i = 0; options_show(i, item, sizeof item); i++)
        n += report_format(text + n, size - n, " %s", item);
}

void usage_lines(void (*line)(const char *text, void *to), void *to)
{
    struct hoard_stats s;
    char text[512], live[REPORT_BYTES], large[REPORT_BYTES], held[REPORT_BYTES], peak[REPORT_BYTES];
    usage_fill(&s);
    report_format(text, sizeof text, "path %s: %s", s.path, cpu.reason);
    line(text, to);
    options_line(text, sizeof text);
    line(text, to);
    report_format(text, sizeof text, "live %s, in large objects %s, held %s, peak held %s",
                  report_bytes(live, s.live_bytes, "bytes"), report_bytes(large, s.large_bytes, ""),
                  report_bytes(held, s.held_bytes, ""), report_bytes(peak, s.peak_held_bytes, ""));
    line(text, to);
    report_format(text, sizeof text, "heaps %zu with %zu superblocks, global heap %zu", s.heaps,
                  s.superblocks, s.global_superblocks);
    line(text, to);
    report_format(text, sizeof text, "slow mallocs %llu, slow frees %llu (remote %llu), transfers %llu",
                  (unsigned long long)s.slow_mallocs, (unsigned long long)s.slow_frees,
                  (unsigned long long)s.remote_frees, (unsigned long long)s.transfers);
    line(text, to);
}

/* --- JSON ------------------------------------------------------------------------------------ */

/* The superblocks of a class. */
struct class_usage {
    size_t superblocks, empty, blocks, used;
};

static void count_superblocks(struct arena *arena, struct class_usage classes[CLASSES])
{
    for (unsigned i = 0; arena->mapping == 0 && i < ARENA_SLOTS; i++) {
        const struct superblock *slot = &arena->slots[i];
        if (slot->kind != SLOT_BLOCKS && slot->kind != SLOT_CHUNKS) continue;
        struct class_usage *class = &classes[slot->class % CLASSES];
        unsigned used = superblock_live(slot);
        class->superblocks++;
        class->empty += used == 0;
        class->blocks += superblock_class(slot)->capacity;
        class->used += used;
    }
}

static void put_classes(const struct json *json)
{
    struct class_usage classes[CLASSES] = {{0}};
    const char *comma = "";
    for (struct arena *arena = arena_first(); arena != NULL; arena = arena->next)
        if (arena->base != NULL) count_superblocks(arena, classes);
    json_put(json, "[");
    for (unsigned i = 1; i < CLASSES; i++) {
        const struct class_usage *class = &classes[i];
        if (class->superblocks == 0) continue;
        json_put(json, "%s{\"size\": %zu, \"chunks\": %s, \"superblocks\": %zu, \"empty\": %zu, ", comma,
                 (size_t)sizeclasses[i].size, i >= CLASS_CHUNK ? "true" : "false", class->superblocks,
                 class->empty);
        json_put(json, "\"blocks\": %zu, \"used\": %zu}", class->blocks, class->used);
        comma = ", ";
    }
    json_put(json, "]");
}

void usage_json(const struct json *json)
{
    struct hoard_stats s;
    usage_fill(&s);
    json_put(json, "\"path\": ");
    json_string(json, s.path, SIZE_MAX);
    json_put(json, ", \"reason\": ");
    json_string(json, cpu.reason, 400);
    json_put(json, ", \"live_bytes\": %zu, \"large_bytes\": %zu, \"held_bytes\": %zu, ", s.live_bytes,
             s.large_bytes, s.held_bytes);
    json_put(json, "\"peak_held_bytes\": %zu, \"heaps\": %zu, \"superblocks\": %zu, ", s.peak_held_bytes,
             s.heaps, s.superblocks);
    json_put(json, "\"global_superblocks\": %zu, \"slow_mallocs\": %llu, \"slow_frees\": %llu, ",
             s.global_superblocks, (unsigned long long)s.slow_mallocs, (unsigned long long)s.slow_frees);
    json_put(json, "\"remote_frees\": %llu, \"transfers\": %llu, \"classes\": ",
             (unsigned long long)s.remote_frees, (unsigned long long)s.transfers);
    put_classes(json);
    struct arena_held held = arena_held();
    json_put(json, ", \"os_given_bytes\": %zu, \"os_returned_bytes\": %zu", held.now + held.returned,
             held.returned);
}

static void to_stream(const char *text, void *out) { fprintf(out, "reap: %s\n", text); }

static void to_stderr(const char *text, void *none)
{
    (void)none;
    report_line("%s", text);
}

void usage_report(FILE *out) { usage_lines(out != NULL ? to_stream : to_stderr, out); }
