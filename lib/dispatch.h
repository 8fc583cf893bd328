/* dispatch.h: the general allocator's calls, to be inlined under their public names.   (floor 5)
 *
 * hoard_malloc and malloc are the same code under two names, each with the fast path in it:
 *
 *     malloc: size -> class -> heap_pop                             | dispatch_malloc_slow
 *     free:   address -> map -> descriptor -> is a start -> heap_push | dispatch_free_slow
 *
 * `call` is the public name for messages; it costs nothing on the fast path.
 */
#ifndef DISPATCH_H
#define DISPATCH_H

#include "arena.h"
#include "heap_fast.h"

#include <errno.h>

/* Starts what has to be started, once; called by every slow path. */
void dispatch_start(void);

/* Fork handlers, stats at exit: what cannot be done before libc has started. Once; any time after. */
void dispatch_start_late(void);

void *dispatch_malloc_slow(size_t size);
void *dispatch_malloc_medium(size_t size); /* above CLASS_SMALL_MAX */
void dispatch_free_slow(void *block, const char *call);

/* When the OS refuses: gives it what all heaps and arenas keep unused, for it to be asked once more. */
void dispatch_make_room(void);

void *dispatch_calloc(size_t n, size_t size);
void *dispatch_realloc(void *block, size_t size, const char *call);
void *dispatch_aligned(size_t alignment, size_t size); /* alignment is a power of two */
size_t dispatch_usable_size(const void *block, const char *call);

static ALWAYS_INLINE void *dispatch_malloc(size_t size)
{
    if (UNLIKELY(size > CLASS_SMALL_MAX)) return dispatch_malloc_medium(size);
    unsigned class = sizeclass_fast[(size + BLOCK_UNIT - 1) / BLOCK_UNIT];
    if (UNLIKELY(class == 0)) return dispatch_malloc_slow(size); /* not started, or no rseq */
    void *block = heap_pop(class);
    return LIKELY(block != NULL) ? block : dispatch_malloc_slow(size);
}

static ALWAYS_INLINE void dispatch_free(void *block, const char *call)
{
    struct superblock *sb = arena_guess(block);
    if (UNLIKELY(!superblock_starts_at(sb, block) || block_may_be_free(block)))
        dispatch_free_slow(block, call);
    else
        heap_free(sb, block);
}

#endif
