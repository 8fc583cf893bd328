/* SPDX-License-Identifier: Apache-2.0 */
#include "hoard.h"

#include "hoard/init.h"
#include "hoard/malloc_fast.h"
#include "hoard/purge_thread.h"
#include "hoard/reap_hooks.h"
#include "hoard/usage.h"

EXPORT void *hoard_malloc(size_t size) { return hoard_malloc_fast(size); }

EXPORT void hoard_free(void *block) { hoard_free_fast(block, "hoard_free"); }

EXPORT void *hoard_calloc(size_t n, size_t size) { return hoard_calloc_any(n, size, NULL); }

EXPORT void *hoard_realloc(void *block, size_t size)
{
    return hoard_realloc_any(block, size, "hoard_realloc");
}

EXPORT void *hoard_aligned_alloc(size_t alignment, size_t size)
{
    if (is_power_of_two(alignment)) return hoard_aligned(alignment, size, NULL);
    errno = EINVAL;
    return NULL;
}

EXPORT int hoard_posix_memalign(void **block, size_t alignment, size_t size)
{
    return block ? hoard_posix_memalign_any(block, alignment, size, NULL) : EINVAL;
}

EXPORT size_t hoard_usable_size(const void *block)
{
    return hoard_usable_size_any(block, "hoard_usable_size");
}

EXPORT int hoard_trim(size_t keep)
{
    hoard_start();
    struct arena_held held = arena_held();
    if (held.now <= keep) return 0;
    hoard_give_kept_reaps();
    heap_give_all();
    return arena_purge(0) != 0;
}

EXPORT void hoard_purge_when_idle(void)
{
    hoard_start();
    if (purge_thread_ask()) hoard_set_due(HOARD_DUE_THREAD);
}

EXPORT void hoard_call_later(void (*fn)(void))
{
    hoard_start();
    hoard_start_later(fn);
}

EXPORT int hoard_stats(struct hoard_stats *stats)
{
    if (stats == NULL) {
        errno = EINVAL;
        return -1;
    }
    hoard_start();
    usage_fill(stats);
    return 0;
}

EXPORT const char *hoard_path_reason(void)
{
    hoard_start();
    return cpu.reason;
}

EXPORT size_t hoard_returned_bytes(void) { return arena_held().returned; }

EXPORT int hoard_walk_classes(int (*fn)(const struct hoard_class *sizes, void *arg), void *arg)
{
    hoard_start();
    return usage_walk_classes(fn, arg);
}

EXPORT void hoard_report(FILE *out)
{
    hoard_start();
    usage_report(out);
}
