#include "hoard.h"

#include "dispatch.h"
#include "global.h"
#include "large.h"
#include "options.h"
#include "report.h"

#include <string.h>
#include <unistd.h>

EXPORT void *hoard_malloc(size_t size) { return dispatch_malloc(size); }

EXPORT void hoard_free(void *block) { dispatch_free(block, "hoard_free"); }

EXPORT void *hoard_calloc(size_t n, size_t size) { return dispatch_calloc(n, size); }

EXPORT void *hoard_realloc(void *block, size_t size)
{
    return dispatch_realloc(block, size, "hoard_realloc");
}

EXPORT void *hoard_aligned_alloc(size_t alignment, size_t size)
{
    if (is_power_of_two(alignment)) return dispatch_aligned(alignment, size);
    errno = EINVAL;
    return NULL;
}

EXPORT int hoard_posix_memalign(void **block, size_t alignment, size_t size)
{
    if (!is_power_of_two(alignment) || alignment % sizeof(void *) != 0) return EINVAL;
    int saved = errno;
    void *p = dispatch_aligned(alignment, size);
    errno = saved;
    if (p == NULL) return ENOMEM;
    *block = p;
    return 0;
}

EXPORT size_t hoard_usable_size(const void *block)
{
    return dispatch_usable_size(block, "hoard_usable_size");
}

EXPORT int hoard_trim(size_t keep)
{
    dispatch_start();
    struct arena_held held = arena_held();
    if (held.now <= keep) return 0;
    heap_give_all();
    return arena_purge(0) != 0;
}

/* --- what is held ---------------------------------------------------------------------------- */

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

EXPORT int hoard_stats(struct hoard_stats *stats)
{
    if (stats == NULL) {
        errno = EINVAL;
        return -1;
    }
    dispatch_start();
    struct arena_held held = arena_held();
    struct heap_totals totals = heap_totals();
    *stats = (struct hoard_stats){
        .held_bytes = held.now,
        .peak_held_bytes = held.peak,
        .large_bytes = large_bytes(),
        .heaps = totals.heaps,
        .superblocks = totals.superblocks,
        .global_superblocks = global_superblocks(),
        .slow_mallocs = totals.counts.slow_mallocs,
        .slow_frees = totals.counts.slow_frees + totals.counts.remote_frees,
        .remote_frees = totals.counts.remote_frees,
        .transfers = totals.counts.transfers,
        .path = cpu.path,
    };
    stats->live_bytes = stats->large_bytes;
    for (struct arena *arena = arena_first(); arena != NULL; arena = arena->next)
        if (arena->used != 0) stats->live_bytes += small_bytes(arena);
    return 0;
}

/* To a stream, or without one (at exit, when streams may be gone) to standard error. */
static void line(FILE *out, const char *text)
{
    if (out != NULL)
        fprintf(out, "reap: %s\n", text);
    else
        report_line("%s", text);
}

static void options_line(char *text, size_t size)
{
    size_t n = report_format(text, size, "options");
    char item[64];
    for (unsigned i = 0; options_show(i, item, sizeof item); i++)
        n += report_format(text + n, size - n, " %s", item);
}

EXPORT void hoard_report(FILE *out)
{
    struct hoard_stats s;
    char text[512];
    hoard_stats(&s);
    report_format(text, sizeof text, "path %s: %s", s.path, cpu.reason);
    line(out, text);
    options_line(text, sizeof text);
    line(out, text);
    report_format(text, sizeof text, "live %zu bytes (%zu in large objects), held %zu, peak held %zu",
                  s.live_bytes, s.large_bytes, s.held_bytes, s.peak_held_bytes);
    line(out, text);
    report_format(text, sizeof text, "heaps %zu with %zu superblocks, global heap %zu", s.heaps,
                  s.superblocks, s.global_superblocks);
    line(out, text);
    report_format(text, sizeof text, "slow mallocs %llu, slow frees %llu (remote %llu), transfers %llu",
                  (unsigned long long)s.slow_mallocs, (unsigned long long)s.slow_frees,
                  (unsigned long long)s.remote_frees, (unsigned long long)s.transfers);
    line(out, text);
}
