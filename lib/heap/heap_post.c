/* SPDX-License-Identifier: Apache-2.0 */
#include "heap/global_heap.h"
#include "heap/heap_internal.h"

/* What `posted` is while a superblock is on a list. Each child of a fork has another value: a thread of the
 * parent may have marked a superblock and not come to put it on the list. */
static volatile uint8_t heap_post_mark = 1;

static void push(_Atomic(struct superblock *) *list, struct superblock *sb)
{
    ASSERT(sb->posted != 0);
    struct superblock *first = atomic_load_explicit(list, memory_order_relaxed);
    do sb->posted_next = first;
    while (
        !atomic_compare_exchange_weak_explicit(list, &first, sb, memory_order_release, memory_order_relaxed));
}

void heap_post(struct superblock *sb)
{
    uint8_t mark = heap_post_mark;
    if (atomic_load(&sb->posted) == mark || atomic_exchange(&sb->posted, mark) == mark) return;
    unsigned id = superblock_role(sb).heap;
    ASSERT(id >= HEAP_NONE || heap_get(id) != NULL);
    push(id < HEAP_NONE ? &heap_get(id)->posted : &global_posted, sb);
    if (heap_post_mark != mark) atomic_store(&sb->posted, heap_post_mark); /* a handler has forked between */
}

/* What was posted to a heap that it has left is posted anew, to where it is. Not a relaxed load: it might be
 * done before superblock_unpost's store. */
void heap_forward(struct superblock *sb)
{
    if (superblock_has_pending(sb)) heap_post(sb);
}

void heap_make_pending(struct superblock *sb, const struct chain *chain)
{
    ASSERT(chain->count != 0);
    if (superblock_pending_is_due(sb, superblock_put_pending(sb, chain), chain->count)) heap_post(sb);
}

static void post_anew(_Atomic(struct superblock *) *list)
{
    struct superblock *next, *sb = superblock_take_posted(list);
    for (; sb != NULL; sb = next) {
        next = superblock_unpost(sb);
        heap_post(sb);
    }
}

void heap_post_fork_child(void)
{
    heap_post_mark = heap_post_mark % UINT8_MAX + 1;
    struct heap *heap;
    for (unsigned id = 0; (heap = heap_next(id)) != NULL; id = heap->id + 1u) post_anew(&heap->posted);
    post_anew(&global_posted);
}
