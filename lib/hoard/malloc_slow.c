/* SPDX-License-Identifier: Apache-2.0 */
#include "hoard/malloc_fast.h"

#include "arena/large.h"
#include "hoard/hardened.h"
#include "hoard/init.h"
#include "hoard/reap_hooks.h"

#include <string.h>

/* Arenas give their own unused memory back, but heaps and reaps are above them. A block's slow path looks at
 * other heaps anyway, so it does not call this. */
void hoard_make_room_near_limit(size_t more)
{
    if (LIKELY(!arena_nears_limit(more))) return;
    hoard_give_kept_reaps();
    heap_give_idle();
}

/* Gives all unused memory of heaps and arenas back to the OS, which has refused. The caller asks anew. */
static COLD void give_all_back(void)
{
    hoard_give_kept_reaps();
    heap_give_all();
    arena_purge(0); /* slots that never were dirty make room too, when it unmaps them */
}

void *hoard_large(size_t size, size_t alignment, bool is_chunk, bool *zeroed)
{
    hoard_start_due();
    if (size > SIZE_LIMIT) return no_memory();
    hoard_make_room_near_limit(size);
    void *object = large_alloc(size, alignment, is_chunk, zeroed);
    if (object != NULL) return object;
    give_all_back();
    return large_alloc(size, alignment, is_chunk, zeroed);
}

void *hoard_block_slow(unsigned class)
{
    ASSERT(class != 0 && class < CLASSES);
    hoard_start_due();
    void *block = heap_malloc_slow(class);
    if (block == NULL) {
        give_all_back();
        block = heap_malloc_slow(class);
    }
    return hoard_block_of(class, block);
}

static void *hardened(size_t alignment, size_t size)
{
    hoard_start_due();
    return hardened_alloc(alignment, size);
}

/* From the reap that the thread has entered; a block by the fast path, which is closed while a thread is in
 * a reap; a block of the heaps or of the OS; slots or a mapping. */
void *hoard_malloc_slow(size_t size, const void *caller)
{
    hoard_start();
    if (redirect_takes(caller)) return reap_hooks->alloc(redirect_reap, BLOCK_UNIT, size);
    if (UNLIKELY(hardened_level != 0)) return hardened(BLOCK_UNIT, size);
    if (size > CLASS_SIZE_MAX) return hoard_large(size, BLOCK_UNIT, false, NULL);
    unsigned class = sizeclass_of(size);
    if (UNLIKELY(class == 0)) return hoard_large(size, BLOCK_UNIT, false, NULL); /* within the start */
    return redirect_reap != NULL ? hoard_block(class) : hoard_block_slow(class);
}

void *hoard_malloc_heap(size_t size) { return hoard_malloc_slow(size, NULL); }

void *hoard_malloc_medium(size_t size) { return hoard_medium_with(size, hoard_malloc_heap); }

void *hoard_malloc_any(size_t size, const void *caller)
{
    bool is_heaps = size != 0 && hoard_is_medium(size); /* or smaller; size 0 may be a reap's */
    void *block = is_heaps ? hoard_pop(sizeclass_of(size)) : NULL;
    return LIKELY(block != NULL) ? block : hoard_malloc_slow(size, caller);
}

void *hoard_calloc_any(size_t n, size_t size, const void *caller)
{
    size_t bytes;
    if (__builtin_mul_overflow(n, size, &bytes)) return no_memory();
    if (bytes <= SUPERBLOCK) {
        void *block = hoard_malloc_any(bytes, caller);
        return block != NULL ? memset(block, 0, bytes) : NULL;
    }
    hoard_start();
    if (UNLIKELY(hardened_level != 0) && !redirect_takes(caller)) return hardened(BLOCK_UNIT, bytes);
    bool zeroed = false;
    void *object = redirect_takes(caller) ? reap_hooks->alloc(redirect_reap, BLOCK_UNIT, bytes)
                                          : hoard_large(bytes, BLOCK_UNIT, false, &zeroed);
    return object == NULL || zeroed ? object : memset(object, 0, bytes);
}

void *hoard_aligned(size_t alignment, size_t size, const void *caller)
{
    ASSERT(is_power_of_two(alignment));
    if (alignment <= BLOCK_UNIT) return hoard_malloc_any(size, caller);
    hoard_start();
    if (redirect_takes(caller)) return reap_hooks->alloc(redirect_reap, alignment, size);
    if (UNLIKELY(hardened_level != 0)) return hardened(alignment, size);
    unsigned class = sizeclass_aligned(alignment, size);
    return class != 0 ? hoard_block(class) : hoard_large(size, alignment, false, NULL);
}

int hoard_posix_memalign_any(void **block, size_t alignment, size_t size, const void *caller)
{
    if (!is_power_of_two(alignment) || alignment % sizeof(void *) != 0) return EINVAL;
    int saved = errno;
    void *p = hoard_aligned(alignment, size, caller);
    errno = saved;
    if (p == NULL) return ENOMEM;
    *block = p;
    return 0;
}
