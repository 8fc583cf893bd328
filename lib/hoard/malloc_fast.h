/* SPDX-License-Identifier: Apache-2.0 */
/* malloc_fast.h: the general allocator's calls, to be inlined under their public names.
 *
 * hoard_malloc and malloc are one code under two names, and each has the fast path in it:
 *
 *     malloc: size -> class -> heap_pop                             | hoard_malloc_slow
 *     free:   address -> map -> descriptor -> is a start -> heap_free | hoard_free_slow
 *
 * `call` is the public name for messages. `caller` is the address to which malloc returns, for reaps that a
 * thread has entered (NULL: no reap takes this call). Neither costs an instruction on the fast path.
 */
#ifndef MALLOC_FAST_H
#define MALLOC_FAST_H

#include "arena/arena.h"
#include "heap/heap_fast.h"
#include "heap/heap_path.h"
#include "hoard/redirect.h"

#include <errno.h>

void *hoard_malloc_slow(size_t size, const void *caller);
void *hoard_malloc_heap(size_t size);   /* never from a reap */
void *hoard_malloc_medium(size_t size); /* for sizes above CLASS_SMALL_MAX, never from a reap */
void hoard_free_slow(void *block, const char *call);
void hoard_free_sized_slow(void *block, size_t size, const char *call);
/* Frees the start of a block in a superblock that this heap does not own. */
void hoard_free_elsewhere(struct superblock *sb, void *block, const char *call);

/* A block of a class; and an object that is too large for one, or a chunk of a reap, with *zeroed true if all
 * of it reads as zero. NULL and ENOMEM when the OS refuses, also after unused memory was given back. After
 * the start. */
void *hoard_block_slow(unsigned class);
void *hoard_large(size_t size, size_t alignment, bool is_chunk, bool *zeroed);

/* Near the limit on memory, gives idle superblocks back before the caller asks for `more` large bytes. */
void hoard_make_room_near_limit(size_t more);

/* The program's block for a heap's one, which is a stub if the class is wide, or NULL. */
static ALWAYS_INLINE void *hoard_block_of(unsigned class, void *block)
{
    return sizeclass_is_wide(class) && block != NULL ? ((struct stub *)block)->block : block;
}

/* A block of the class by the fast path, or NULL: on the locked path always. */
static ALWAYS_INLINE void *hoard_pop(unsigned class)
{
    if (heap_path_is_locked()) return NULL;
    return hoard_block_of(class, sizeclass_is_wide(class) ? heap_pop_wide(class) : heap_pop(class));
}

/* Frees a heap's block whose superblock is known, on either path. */
static ALWAYS_INLINE void hoard_push(struct superblock *sb, void *block)
{
    if (LIKELY(!heap_path_is_locked()))
        heap_free(sb, block);
    else
        heap_free_slow(sb, block);
}

static ALWAYS_INLINE void *hoard_block(unsigned class)
{
    ASSERT(class != 0 && class < CLASSES);
    void *block = hoard_pop(class);
    return LIKELY(block != NULL) ? block : hoard_block_slow(class);
}

void *hoard_malloc_any(size_t size, const void *caller); /* any size */
void *hoard_calloc_any(size_t n, size_t size, const void *caller);
void *hoard_realloc_any(void *block, size_t size, const char *call);
void *hoard_aligned(size_t alignment, size_t size, const void *caller); /* alignment is a power of two */
int hoard_posix_memalign_any(void **block, size_t alignment, size_t size, const void *caller);
size_t hoard_usable_size_any(const void *block, const char *call);

/* Returns true if heap_pop may serve a size above CLASS_SMALL_MAX. */
static ALWAYS_INLINE bool hoard_is_medium(size_t size)
{
    if (LIKELY(size <= sizeclass_fast_max)) return !heap_path_is_locked();
    return size <= sizeclass_second_max && redirect_reap == NULL && !heap_path_is_locked();
}

/* The fast path with slow paths that the caller chooses. These are tail calls, so they return to the caller
 * of the fast path. The first table has no class while the allocator is not started, there is no rseq, or a
 * thread of the process has entered a reap. */
static ALWAYS_INLINE void *hoard_malloc_with(size_t size, void *(*slow)(size_t), void *(*medium)(size_t))
{
    if (UNLIKELY(size > CLASS_SMALL_MAX)) return medium(size);
    size_t step = (size + BLOCK_UNIT - 1) / BLOCK_UNIT;
    unsigned class = sizeclass_fast[step];
    if (UNLIKELY(class == 0) && (redirect_reap != NULL || (class = sizeclass_second[step]) == 0))
        return slow(size);
    void *block = heap_pop(class);
    return LIKELY(block != NULL) ? block : slow(size);
}

/* The fast path for sizes above CLASS_SMALL_MAX. */
static ALWAYS_INLINE void *hoard_medium_with(size_t size, void *(*slow)(size_t))
{
    if (UNLIKELY(!hoard_is_medium(size))) return slow(size);
    if (size > CLASS_WIDE_SIZE) {
        const struct stub *stub = heap_pop_wide(sizeclass_of_wide(size));
        return LIKELY(stub != NULL) ? stub->block : slow(size);
    }
    void *block = heap_pop(sizeclass_of(size));
    return LIKELY(block != NULL) ? block : slow(size);
}

static ALWAYS_INLINE void *hoard_malloc_fast(size_t size)
{
    return hoard_malloc_with(size, hoard_malloc_heap, hoard_malloc_medium);
}

/* `size` is what the program says of the block, SIZE_MAX: nothing. Only the slow path looks at it. */
static ALWAYS_INLINE void hoard_free_sized_fast(void *block, size_t size, const char *call)
{
    struct superblock *sb = arena_guess(block);
    if (UNLIKELY(!superblock_starts_at(sb, block))) {
        if (size == SIZE_MAX)
            hoard_free_slow(block, call);
        else
            hoard_free_sized_slow(block, size, call);
        return;
    }
    enum rseq_result result = heap_give_checked(sb, block_number(sb, block), block);
    if (UNLIKELY(result == RSEQ_MOVED))
        hoard_free_elsewhere(sb, block, call);
    else if (UNLIKELY(result == RSEQ_CHANGED))
        hoard_free_slow(block, call);
}

static ALWAYS_INLINE void hoard_free_fast(void *block, const char *call)
{
    hoard_free_sized_fast(block, SIZE_MAX, call);
}

#endif
