/* SPDX-License-Identifier: Apache-2.0 */
#include "hoard/usage.h"

#include "arena/arena.h"
#include "arena/large.h"
#include "base/options.h"
#include "base/report.h"
#include "heap/global_heap.h"
#include "heap/heap.h"
#include "hoard/reap_hooks.h"
#include "os/rseq.h"

static void count_classes(struct hoard_class classes[CLASSES])
{
    for (unsigned i = 0; i < CLASSES; i++)
        classes[i] = (struct hoard_class){.size = sizeclasses[i].size, .has_chunks = i >= CLASS_CHUNK};
    for (struct arena *arena = arena_first(); arena != NULL; arena = arena->next) {
        for (unsigned i = 0; arena->base != NULL && arena->mapping == 0 && i < ARENA_SLOTS; i++) {
            const struct superblock *slot = &arena->slots[i];
            if (!superblock_is_formatted(slot)) continue;
            struct hoard_class *class = &classes[slot->class % CLASSES];
            unsigned used = superblock_live(slot), slots = superblock_slots(slot);
            class->superblocks += slots;
            class->empty += used == 0 ? slots : 0;
            class->blocks += superblock_class(slot)->capacity;
            class->used += used;
        }
    }
}

void usage_fill(struct hoard_stats *stats)
{
    struct hoard_class classes[CLASSES];
    hoard_give_kept_reaps();
    heap_deliver_all();
    struct arena_held held = arena_held();
    struct heap_totals totals = heap_totals();
    *stats = (struct hoard_stats){
        .held_bytes = held.now,
        .peak_held_bytes = held.peak,
        .large_bytes = large_totals().bytes,
        .heaps = totals.heaps,
        .superblocks = totals.slots,
        .global_superblocks = global_heap_slots(),
        .slow_mallocs = totals.counts.slow_mallocs,
        .slow_frees = totals.counts.slow_frees + totals.counts.remote_frees,
        .remote_frees = totals.counts.remote_frees,
        .transfers = totals.counts.transfers,
        .path = cpu.path,
    };
    count_classes(classes);
    stats->live_bytes = stats->large_bytes;
    for (unsigned i = 1; i < CLASSES; i++) stats->live_bytes += classes[i].used * classes[i].size;
}

int usage_walk_classes(int (*fn)(const struct hoard_class *sizes, void *arg), void *arg)
{
    struct hoard_class classes[CLASSES];
    int result = 0;
    hoard_give_kept_reaps();
    count_classes(classes);
    for (unsigned i = 1; i < CLASSES && result == 0; i++)
        if (classes[i].superblocks != 0) result = fn(&classes[i], arg);
    return result;
}

__attribute__((format(printf, 2, 3))) static void line(FILE *out, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    report_vformat(text, sizeof text, format, args);
    va_end(args);
    if (out != NULL)
        fprintf(out, "reap: %s\n", text);
    else
        report_line("%s", text);
}

static void options_line(FILE *out)
{
    char text[480], item[64];
    size_t n = report_format(text, sizeof text, "options");
    for (unsigned i = 0; options_show(i, item, sizeof item); i++)
        n += report_format(text + n, sizeof text - n, " %s", item);
    line(out, "%s", text);
}

void usage_report(FILE *out)
{
    struct hoard_stats s;
    char live[REPORT_BYTES], large[REPORT_BYTES], held[REPORT_BYTES], peak[REPORT_BYTES];
    usage_fill(&s);
    line(out, "path %s: %s", s.path, cpu.reason);
    options_line(out);
    line(out, "live %s, in large objects %s, held %s, peak held %s",
         report_bytes(live, s.live_bytes, "bytes"), report_bytes(large, s.large_bytes, ""),
         report_bytes(held, s.held_bytes, ""), report_bytes(peak, s.peak_held_bytes, ""));
    line(out, "heaps %zu with %zu superblocks, global heap %zu", s.heaps, s.superblocks,
         s.global_superblocks);
    line(out, "slow mallocs %llu, slow frees %llu (remote %llu), transfers %llu",
         (unsigned long long)s.slow_mallocs, (unsigned long long)s.slow_frees,
         (unsigned long long)s.remote_frees, (unsigned long long)s.transfers);
}
