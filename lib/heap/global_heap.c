/* SPDX-License-Identifier: Apache-2.0 */
#include "heap/global_heap.h"

#include "arena/arena.h"
#include "arena/false_sharing.h"
#include "base/lock.h"
#include "base/probe.h"
#include "heap/bin.h"
#include "heap/heap_path.h"
#include "heap/heap_remote.h"
#include "os/rseq.h"
#include "os/topology.h"

struct level {
    struct lock lock;
    _Atomic(struct list_node *) arrived; /* along link.next, not filed yet */
    _Atomic unsigned detours;            /* visits that found the lock taken, since the last that got it */
    struct bin bins[CLASSES];
    struct list empty;    /* of one slot; of a cache's heap only */
    bool took_empty;      /* it gave one to a heap since the last look */
    _Atomic size_t slots; /* of superblocks in bins, and empty ones; also read without the lock */
    unsigned hand;        /* the class that was last to give one up; 0: the empty ones */
};

static SPARSE struct level top = {.lock = LOCK_OF_RANK(RANK_GLOBAL_HEAP)};
static SPARSE struct level by_cache[TOPOLOGY_CACHES] = {
    /* one for each cache; never touched where there is only one */
    [0 ... TOPOLOGY_CACHES - 1] = {.lock = LOCK_OF_RANK(RANK_GLOBAL_HEAP)}};

_Static_assert(HEAP_CACHES + (int)TOPOLOGY_CACHES - 1 == UINT16_MAX, "an id for each cache's heap");
_Static_assert((int)IDS_MAX <= 1 << 14, "an id fits role.left_by");

static inline size_t slots_of(const struct level *level)
{
    return atomic_load_explicit(&level->slots, memory_order_relaxed);
}

/* The level is locked. */
static inline void add_slots(struct level *level, ptrdiff_t change)
{
    atomic_store_explicit(&level->slots, slots_of(level) + (size_t)change, memory_order_relaxed);
}

static _Atomic size_t kept_empty; /* superblocks on all lists `empty` */

/* --- the level of a superblock --------------------------------------------------------------- */

/* The level where this thread trades: that of the CPU on which it runs, also where heaps go by concurrency
 * ids: this CPU was the last to touch what the thread gives, and will touch what it takes. */
static struct level *level_here(void)
{
    if (LIKELY(topology_caches_now() == 1)) return &top;
    ASSERT(topology_cache(rseq_cpu_now()) < TOPOLOGY_CACHES);
    return &by_cache[topology_cache(rseq_cpu_now())];
}

static unsigned id_of(const struct level *level)
{
    return level == &top ? (unsigned)HEAP_GLOBAL : HEAP_CACHES + (unsigned)(level - by_cache);
}

static struct level *level_of(unsigned id) { return id >= HEAP_CACHES ? &by_cache[id - HEAP_CACHES] : &top; }

/* Locks the level that a superblock is on; the top one if it is on none. */
static struct level *lock_level_of(const struct superblock *sb)
{
    for (;;) {
        unsigned id = superblock_role(sb).heap;
        struct level *level = level_of(id);
        lock_take(&level->lock);
        if (level == level_of(superblock_role(sb).heap)) return level;
        lock_give(&level->lock);
    }
}

/* Returns true if it is on this level, which is locked. A superblock that is here stays while the lock is
 * held. One that is elsewhere may move. */
static bool is_on_level(const struct level *level, const struct superblock *sb)
{
    return superblock_role(sb).heap == id_of(level);
}

/* The levels in their order: those of the caches, if there are several, then the top one, then NULL. */
static struct level *first_level(void) { return topology_caches_now() > 1 ? by_cache : &top; }

static struct level *level_after(const struct level *level)
{
    unsigned i = (unsigned)(level - by_cache) + 1;
    return level == &top ? NULL : i < topology_caches_now() ? &by_cache[i] : &top;
}

/* --- one level, locked ----------------------------------------------------------------------- */

/* role.heap names a level only while the superblock is on a list there. So under the lock it alone tells. */
static void set_role(struct superblock *sb, unsigned heap, unsigned regroup_at)
{
    union superblock_role role = sb->role;
    ASSERT(heap >= HEAP_NONE && role.owner == OWNER_NONE);
    role.heap = (uint16_t)heap;
    role.regroup_at = (uint16_t)regroup_at;
    superblock_set_role(sb, role);
}

static void set_sharing(struct superblock *sb, enum sharing sharing, unsigned left_by)
{
    union superblock_role role = sb->role;
    ASSERT(false_sharing_possible(sb->class));
    role.sharing = sharing;
    role.left_by = left_by & (IDS_MAX - 1);
    superblock_set_role(sb, role);
}

static void file_empty(struct level *level, struct superblock *sb)
{
    ASSERT(word_free(word_read(sb)) == superblock_class(sb)->capacity && !superblock_has_pending(sb));
    if (level == &top || superblock_slots(sb) != 1) {
        set_role(sb, HEAP_NONE, 0);
        arena_give(sb, superblock_slots(sb));
        return;
    }
    set_role(sb, id_of(level), 0);
    list_push(&level->empty, &sb->link);
    sb->group = GROUP_EMPTY;
    add_slots(level, (ptrdiff_t)superblock_slots(sb));
    atomic_fetch_add_explicit(&kept_empty, 1, memory_order_relaxed);
}

/* Files an unowned superblock that is on no list. While some of its blocks are held back, the last live block
 * may be freed; that free does not see that it is the last. So the loop looks at the end. */
static void file_on_level(struct level *level, struct superblock *sb)
{
    ASSERT(lock_is_mine(&level->lock) && sb->role.owner == OWNER_NONE);
    ASSERT(!list_holds(&sb->link) && sb->link.next == NULL);
    do {
        superblock_absorb(sb);
        if (superblock_group_of(sb, word_read(sb)) == GROUP_EMPTY) {
            file_empty(level, sb);
            return;
        }
        if (sb->role.sharing == SHARING_HELD) false_sharing_hold_back(sb);
    } while (superblock_live(sb) == 0);
    unsigned group = superblock_group_of(sb, word_read(sb));
    set_role(sb, id_of(level), superblock_regroup_at(sb, group));
    ASSERT(group < GROUP_EMPTY);
    bin_add(&level->bins[sb->class], sb, group);
    add_slots(level, (ptrdiff_t)superblock_slots(sb));
}

static void unfile(struct level *level, struct superblock *sb)
{
    ASSERT(lock_is_mine(&level->lock) && is_on_level(level, sb) && slots_of(level) >= superblock_slots(sb));
    if (sb->group == GROUP_EMPTY) {
        list_remove(&sb->link);
        atomic_fetch_sub_explicit(&kept_empty, 1, memory_order_relaxed);
    } else {
        bin_remove(&level->bins[sb->class], sb);
    }
    add_slots(level, -(ptrdiff_t)superblock_slots(sb));
}

/* Takes a superblock off its list, for a heap or another level. */
static void take_off(struct level *level, struct superblock *sb)
{
    unfile(level, sb);
    set_role(sb, HEAP_NONE, 0);
}

static void refile_on_level(struct level *level, struct superblock *sb)
{
    unfile(level, sb);
    file_on_level(level, sb);
}

static struct superblock *first_empty(const struct level *level)
{
    return level->empty.first != NULL ? LIST_ENTRY(level->empty.first, struct superblock, link) : NULL;
}

/* --- from level to level --------------------------------------------------------------------- */

/* Returns true if it is fit for a heap as it is. Lines are held back only when another heap wants it than
 * the one that gave it and owned all of it: in a process of one heap never. */
static bool is_fit(const struct superblock *sb, unsigned id)
{
    return sb->role.sharing != SHARING_LEFT || sb->role.left_by == id;
}

static void file_arrived(struct level *level)
{
    ASSERT(lock_is_mine(&level->lock));
    struct list_node *next, *node = atomic_exchange(&level->arrived, NULL);
    for (; node != NULL; node = next) {
        next = node->next;
        node->next = NULL;
        file_on_level(level, LIST_ENTRY(node, struct superblock, link));
    }
}

static void unlock_level(struct level *level);
static bool level_adds_up(const struct level *level);

static struct superblock *take_from_level(struct level *level, unsigned class, unsigned id)
{
    struct superblock *sb;
    if (slots_of(level) == 0 && atomic_load(&level->arrived) == NULL)
        return NULL; /* mostly; what a thread files just now is missed */
    if (!heap_path_lock_soon(&level->lock, &level->detours, GLOBAL_HEAP_DETOURS)) return NULL;
    file_arrived(level);
    while ((sb = bin_fullest(&level->bins[class], 1)) != NULL && !is_fit(sb, id)) {
        unfile(level, sb);
        set_sharing(sb, SHARING_HELD, 0);
        file_on_level(level, sb);
    }
    if (sb == NULL && sizeclasses[class].slots == 1 && (sb = first_empty(level)) != NULL)
        level->took_empty = true;
    if (sb != NULL) take_off(level, sb);
    ASSERT(sb == NULL || (sb->role.owner == OWNER_NONE && !list_holds(&sb->link)));
    unlock_level(level);
    return sb;
}

/* One superblock of a locked level that has more than `keeps` slots, off its list; or NULL. The hand goes
 * round the classes, so that classes for which no CPU of the cache asks go up. */
static struct superblock *surplus(struct level *level, size_t keeps)
{
    ASSERT(lock_is_mine(&level->lock));
    struct superblock *sb = NULL;
    if (slots_of(level) <= keeps) return NULL;
    while (sb == NULL) {
        level->hand = (level->hand + 1) % CLASSES;
        sb = level->hand != 0 ? bin_emptiest(&level->bins[level->hand]) : first_empty(level);
    }
    take_off(level, sb);
    return sb;
}

static void push_arrival(struct level *level, struct superblock *sb)
{
    ASSERT(!list_holds(&sb->link) && sb->role.owner == OWNER_NONE && sb->role.heap == HEAP_NONE);
    struct list_node *first = atomic_load(&level->arrived);
    do sb->link.next = first;
    while (!atomic_compare_exchange_weak(&level->arrived, &first, &sb->link));
}

/* Files the arrivals, and pushes the surplus of a cache's heap up. A thread pushes an arrival before it
 * tries the lock, and a holder looks after it gives the lock back: so one of the two sees the other. */
static void settle_level(struct level *level)
{
    while (atomic_load(&level->arrived) != NULL && lock_try(&level->lock)) {
        struct superblock *over;
        file_arrived(level);
        while (level != &top && (over = surplus(level, GLOBAL_HEAP_CACHE_MAX)) != NULL)
            push_arrival(&top, over);
        lock_give(&level->lock);
    }
    if (level != &top) settle_level(&top);
}

static void unlock_level(struct level *level)
{
    ASSERT_WALK(CLASSES * GROUPS + slots_of(level) * 1024, level_adds_up(level));
    lock_give(&level->lock);
    settle_level(level);
}

static void drain_level(struct level *level)
{
    for (;;) {
        lock_take(&level->lock);
        file_arrived(level);
        struct superblock *sb = surplus(level, 0);
        lock_give(&level->lock);
        if (sb == NULL) return;
        push_arrival(&top, sb);
    }
}

/* False: it has blocks pending, and is somewhere else or another thread has its lock now. */
static bool refile_soon(struct superblock *sb)
{
    struct level *level = level_of(superblock_role(sb).heap);
    if (!lock_try(&level->lock)) return !superblock_has_pending(sb);
    bool here = is_on_level(level, sb);
    if (here) refile_on_level(level, sb);
    unlock_level(level);
    return here || !superblock_has_pending(sb);
}

/* While a superblock was queued here, no thread could queue it to the heap that it has gone to since. */
void global_heap_take_queued(void)
{
    atomic_store_explicit(&heap_global_unseen, 0, memory_order_relaxed);
    struct superblock *next, *sb = superblock_take_queued(&heap_global_queued);
    for (; sb != NULL; sb = next) {
        next = superblock_unqueue(sb);
        if (!refile_soon(sb)) heap_enqueue(sb);
    }
}

/* --- calls of global_heap.h ------------------------------------------------------------------ */

void global_heap_give(struct superblock *sb, unsigned id)
{
    ASSERT(sb->role.owner == OWNER_NONE && !list_holds(&sb->link) && sb->link.next == NULL);
    PROBE(superblock_to_global, sb, sb->class, superblock_live(sb));
    bool owned = sb->role.sharing == SHARING_NONE;
    false_sharing_forget(sb);
    if (false_sharing_possible(sb->class)) set_sharing(sb, owned ? SHARING_LEFT : SHARING_HELD, id);
    set_role(sb, HEAP_NONE, 0);
    push_arrival(level_here(), sb);
}

void global_heap_settle(void)
{
    struct level *here = level_here();
    if (atomic_load_explicit(&here->arrived, memory_order_relaxed) != NULL ||
        atomic_load_explicit(&top.arrived, memory_order_relaxed) != NULL)
        settle_level(here);
}

struct superblock *global_heap_take(unsigned class, unsigned id)
{
    global_heap_take_queued();
    struct level *here = level_here();
    struct superblock *sb = take_from_level(here, class, id);
    if (sb == NULL && here != &top) sb = take_from_level(&top, class, id);
    if (sb == NULL) return NULL;
    ASSERT(sb->role.heap == HEAP_NONE && (sb->class == class || sb->group == GROUP_EMPTY));
    if (sb->group == GROUP_EMPTY) superblock_serve(sb, class);
    PROBE(superblock_from_global, sb, class, superblock_live(sb));
    return sb;
}

/* False: the superblock has yet to arrive somewhere. The thread that gave it may run on the CPUs of another
 * cache by now, and have settled there: so this settles all. */
bool global_heap_free(struct superblock *sb, void *block)
{
    struct level *level = lock_level_of(sb);
    bool here = is_on_level(level, sb);
    ASSERT(!here || sb->role.owner == OWNER_NONE);
    bool due = here && superblock_free_unowned(sb, block);
    if (due) refile_on_level(level, sb);
    unlock_level(level);
    if (due) arena_purge_after_free(); /* it may have been the last block in it */
    for (level = here ? NULL : first_level(); level != NULL; level = level_after(level)) settle_level(level);
    return here;
}

void global_heap_collect(void)
{
    global_heap_take_queued();
    for (struct level *level = first_level(); level != &top; level = level_after(level)) drain_level(level);
    lock_take(&top.lock);
    file_arrived(&top);
    for (unsigned class = 1; class < CLASSES; ++class)
        for (unsigned group = 0; group < GROUP_EMPTY; group++) {
            struct list_node *next, *node = top.bins[class].groups[group].first;
            for (; node != NULL; node = next) {
                next = node->next;
                struct superblock *sb = LIST_ENTRY(node, struct superblock, link);
                if (superblock_has_pending(sb)) refile_on_level(&top, sb);
            }
        }
    unlock_level(&top);
}

bool global_heap_keeps_any(void) { return atomic_load_explicit(&kept_empty, memory_order_relaxed) != 0; }

void global_heap_give_unused(void)
{
    for (struct level *level = first_level(); level != &top; level = level_after(level)) {
        if (!lock_try(&level->lock)) continue;
        for (struct superblock *sb; !level->took_empty && (sb = first_empty(level)) != NULL;) {
            take_off(level, sb);
            push_arrival(&top, sb);
        }
        level->took_empty = false;
        unlock_level(level);
    }
}

bool global_heap_has_free(struct superblock *sb, const void *block)
{
    struct level *level = lock_level_of(sb);
    bool has = superblock_has_free(sb, block);
    unlock_level(level);
    return has;
}

/* --- all of them ----------------------------------------------------------------------------- */

size_t global_heap_slots(void)
{
    size_t slots = 0;
    for (struct level *level = first_level(); level != NULL; level = level_after(level))
        slots += slots_of(level);
    return slots;
}

/* Returns true if the lists agree with the accounts. The level is locked, or no other thread allocates. */
static bool level_adds_up(const struct level *level)
{
    struct bin_sums sums = {0, 0};
    for (unsigned class = 1; class < CLASSES; ++class)
        if (!bin_is_valid(&level->bins[class], id_of(level), class, NULL, true, &sums)) return false;
    for (const struct list_node *node = level->empty.first; node != NULL; node = node->next) {
        const struct superblock *sb = LIST_ENTRY(node, struct superblock, link);
        if (!is_on_level(level, sb) || superblock_live(sb) != 0) return false;
        sums.slots++;
    }
    return sums.slots == slots_of(level);
}

bool global_heap_is_valid(void)
{
    for (struct level *level = first_level(); level != NULL; level = level_after(level))
        if (!level_adds_up(level) || (level != &top && slots_of(level) > GLOBAL_HEAP_CACHE_MAX)) return false;
    return true;
}

/* heap_table.c makes sure that no cache is found between the first call and the others. */
void global_heap_fork_prepare(void)
{
    for (struct level *level = first_level(); level != NULL; level = level_after(level))
        lock_for_fork(&level->lock);
}

void global_heap_fork_parent(void)
{
    for (struct level *level = first_level(); level != NULL; level = level_after(level))
        lock_after_fork(&level->lock);
}

void global_heap_fork_child(void)
{
    for (struct level *level = first_level(); level != NULL; level = level_after(level))
        lock_reset(&level->lock);
}
