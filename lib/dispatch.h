/* SPDX-License-Identifier: Apache-2.0 */
/* dispatch.h: the general allocator's calls, to be inlined under their public names.   (floor 5)
 *
 * hoard_malloc and malloc are the same code under two names, each with the fast path in it:
 *
 *     malloc: size -> class -> heap_pop                             | dispatch_malloc_slow
 *     free:   address -> map -> descriptor -> is a start -> heap_push | dispatch_free_slow
 *
 * `call` is the public name for messages, `caller` where malloc returns to, for reaps that are entered (NULL:
 * no reap takes this); they cost nothing on the fast path.
 */
#ifndef DISPATCH_H
#define DISPATCH_H

#include "ambient.h"
#include "arena.h"
#include "heap_fast.h"
#include "lent.h"

#include <errno.h>

/* Starts what has to be started, once; called by every slow path. */
void dispatch_start(void);

/* Fork handlers, stats at exit: what cannot be done before libc has started. Once; any time after. */
void dispatch_start_late(void);

void *dispatch_malloc_slow(size_t size, const void *caller);
void *dispatch_malloc_heap(size_t size);   /* the same, for no reap */
void *dispatch_malloc_medium(size_t size); /* the same above CLASS_SMALL_MAX */
void dispatch_free_slow(void *block, const char *call);

/* A block of a class; an object that is too large for one, or a chunk of a reap, *zeroed if all of it reads
 * as zero. NULL and ENOMEM when the OS refuses although it was given what is unused. After the start. */
void *dispatch_block_slow(unsigned class);
void *dispatch_large(size_t size, size_t alignment, bool is_chunk, bool *zeroed);

/* The chunk of a reap that holds a pointer, whose arena is known (NULL: none); *got, if wanted, its bytes. */
void *dispatch_chunk_elsewhere(struct arena *arena, const void *pointer, size_t *got);
static inline void *dispatch_chunk_of(struct arena *arena, const void *pointer, size_t *got)
{
    void *lent = lent_find(pointer, got);
    if (UNLIKELY(lent != NULL) || arena == NULL) return lent;
    const struct superblock *sb = arena_slot(arena, pointer);
    if (UNLIKELY(sb->kind != SLOT_CHUNKS)) return dispatch_chunk_elsewhere(arena, pointer, got);
    size_t size = superblock_class(sb)->size; /* a power of two */
    if (got != NULL) *got = size;
    return (void *)align_down((uintptr_t)pointer, size);
}

static ALWAYS_INLINE void *dispatch_block(unsigned class)
{
    void *block = cpu.ids != 0 ? heap_pop(class) : NULL;
    return LIKELY(block != NULL) ? block : dispatch_block_slow(class);
}

void *dispatch_malloc_for(size_t size, const void *caller); /* any size */
void *dispatch_calloc(size_t n, size_t size, const void *caller);
void *dispatch_realloc(void *block, size_t size, const char *call);
void *dispatch_aligned(size_t alignment, size_t size, const void *caller); /* alignment is a power of two */
int dispatch_posix_memalign(void **block, size_t alignment, size_t size, const void *caller);
size_t dispatch_usable_size(const void *block, const char *call);

/* The class of a size in steps of BLOCK_UNIT that the first table does not know: not started, no rseq, or a
 * reap was entered, by this thread or another. */
static ALWAYS_INLINE unsigned dispatch_second_class(size_t step)
{
    return ambient_reap == NULL ? sizeclass_second[step] : 0;
}

/* May a size above CLASS_SMALL_MAX be popped? */
static ALWAYS_INLINE bool dispatch_is_medium(size_t size)
{
    if (LIKELY(size <= sizeclass_fast_max)) return cpu.ids != 0;
    return size <= sizeclass_second_max && ambient_reap == NULL && cpu.ids != 0;
}

/* The fast path with slow paths of one's own: they are tail calls, so they return to who has called the fast
 * one. */
static ALWAYS_INLINE void *dispatch_malloc_with(size_t size, void *(*slow)(size_t), void *(*medium)(size_t))
{
    if (UNLIKELY(size > CLASS_SMALL_MAX)) return medium(size);
    size_t step = (size + BLOCK_UNIT - 1) / BLOCK_UNIT;
    unsigned class = sizeclass_fast[step];
    if (UNLIKELY(class == 0) && (class = dispatch_second_class(step)) == 0) return slow(size);
    void *block = heap_pop(class);
    return LIKELY(block != NULL) ? block : slow(size);
}

/* The same for sizes above CLASS_SMALL_MAX. */
static ALWAYS_INLINE void *dispatch_medium_with(size_t size, void *(*slow)(size_t))
{
    if (UNLIKELY(!dispatch_is_medium(size))) return slow(size);
    void *block = heap_pop(sizeclass_of(size));
    return LIKELY(block != NULL) ? block : slow(size);
}

static ALWAYS_INLINE void *dispatch_malloc(size_t size)
{
    return dispatch_malloc_with(size, dispatch_malloc_heap, dispatch_malloc_medium);
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
