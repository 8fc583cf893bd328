#include "assign.h"
#include "global.h"
#include "heap_state.h"

/* --- what was posted to this thread's heap --------------------------------------------------- */

static bool is_on(const struct heap *heap, const struct superblock *sb)
{
    return __atomic_load_n(&sb->role.heap, __ATOMIC_RELAXED) == heap->id &&
           (list_holds(&sb->link) || heap_is_active(heap, sb));
}

/* What was posted to a heap that it has left is posted anew, to where it is. Not a relaxed load: it might be
 * done before superblock_unpost's store. */
static void forward(struct superblock *sb)
{
    if (superblock_has_pending(sb)) heap_post(sb);
}

bool heap_collect_posted(struct heap *heap)
{
    bool mine = true;
    struct superblock *next, *sb = superblock_take_posted(&heap->posted);
    for (; sb != NULL; sb = next) {
        next = superblock_unpost(sb);
        if (!is_on(heap, sb))
            forward(sb);
        else if (mine && (mine = heap_collect(heap, sb)))
            heap_regroup_locked(heap, sb);
        else
            heap_post(sb);
    }
    return mine;
}

/* --- taking back from the heaps of others ---------------------------------------------------- */

/* Takes a superblock off the row or the bin it is on and stops its owner's frees; quiet after cpu_fence. */
static void pull(struct heap *heap, struct superblock *sb, struct list *pulled)
{
    if (heap_is_active(heap, sb))
        __atomic_store_n(heap_slot(heap, sb->class), NULL, __ATOMIC_RELEASE);
    else
        heap_bin_out(heap, sb);
    superblock_set_owner(sb, OWNER_NONE);
    heap->superblocks--;
    list_push(pulled, &sb->link);
}

static size_t give_pulled(struct heap *heap, struct list *pulled)
{
    size_t n = 0;
    if (!list_is_empty(pulled) && cpu.ids != 0) cpu_fence(); /* one for all */
    for (struct list_node *node; (node = list_pop(pulled)) != NULL; n++)
        global_give(LIST_ENTRY(node, struct superblock, link));
    heap->counts.transfers += n;
    return n;
}

/* Every superblock of a locked heap goes to the global heap. */
static size_t give_all(struct heap *heap)
{
    heap_outbox_take(heap);
    struct list pulled = {NULL};
    for (unsigned class = 1; class < CLASSES; class ++) {
        struct superblock *sb = *heap_slot(heap, class);
        if (sb != NULL) pull(heap, sb, &pulled);
        while ((sb = bin_emptiest(&heap->bins[class])) != NULL) pull(heap, sb, &pulled);
    }
    for (struct superblock *sb; (sb = heap_empty_out(heap)) != NULL; heap->superblocks--)
        list_push(&pulled, &sb->link);
    return give_pulled(heap, &pulled);
}

/* Is a superblock that was posted to a heap worth taking from it? An active one only if nothing lives in
 * it. */
static bool is_worth_pulling(const struct heap *heap, const struct superblock *sb)
{
    return heap_is_active(heap, sb) ? superblock_live(sb) == 0 : sb->group != GROUP_EMPTY;
}

/* What others have freed into a locked heap that is not this thread's goes to the global heap. What stays has
 * fewer superblocks to be a fraction of, so the invariant has to be looked at. */
static size_t give_posted(struct heap *heap)
{
    struct list pulled = {NULL};
    struct superblock *next, *sb = superblock_take_posted(&heap->posted);
    for (; sb != NULL; sb = next) {
        next = superblock_unpost(sb);
        if (!is_on(heap, sb))
            forward(sb);
        else if (is_worth_pulling(heap, sb))
            pull(heap, sb, &pulled);
    }
    size_t n = give_pulled(heap, &pulled);
    return n + heap_keep_invariant(heap);
}

/* Before memory is asked of the OS: what lies idle on other heaps. Only tries their locks, since it mostly
 * holds one. */
bool heap_scavenge(const struct heap *mine)
{
    if (cpu.ids != 0) heap_outbox_deliver();
    size_t n = 0;
    struct heap *heap;
    for (unsigned id = 0; (heap = heap_next(id)) != NULL; id = heap->id + 1u) {
        if (heap == mine) continue;
        if (assign_has_ended(heap->id)) heap->orphan = true;
        bool has_posted = atomic_load_explicit(&heap->posted, memory_order_relaxed) != NULL;
        if (!heap->orphan && !heap->was_alone && !has_posted) continue;
        if (!lock_try(&heap->lock)) continue;
        n += heap->orphan ? give_all(heap) : give_posted(heap);
        heap->orphan = heap->was_alone = false;
        lock_give(&heap->lock);
    }
    return n != 0;
}

void heap_give_idle(void) { heap_scavenge(NULL); }

void heap_give_all(void)
{
    struct heap *heap;
    for (unsigned id = 0; (heap = heap_next(id)) != NULL; id = heap->id + 1u) {
        lock_take(&heap->lock);
        give_all(heap);
        lock_give(&heap->lock);
    }
    global_collect(heap_post);
}
