#include "arena_state.h"

#include "cgroup.h"
#include "options.h"
#include "pages.h"
#include "probe.h"

#include <errno.h>

/* --- huge pages ------------------------------------------------------------------------------- */

/* With thp=grown they are for arenas of superblocks, in programs that hold much already, and until something
 * in the arena goes back to the OS: the kernel would fill the hole again. Larger objects have none: they may
 * be tables and buffers of which little is ever touched. Nor has what is sparse. */
enum { GROWN = 32 * 1024 * 1024 /* bytes held */ };

void arena_no_huge_pages(struct arena *arena)
{
    if (!arena->huge) return;
    arena->huge = false;
    pages_huge(arena->base, ARENA, false);
}

void arena_advise(struct arena *arena, unsigned n, bool sparse)
{
    bool grown = options.thp == THP_GROWN && arenas.held >= GROWN;
    arena->sparse = grown && sparse;
    arena->huge = grown && !sparse && n < ARENA_MAYBE_SPARSE;
    if (options.thp != THP_SYSTEM) pages_huge(arena->base, ARENA, arena->huge || options.thp == THP_ALWAYS);
}

void arena_advise_mapping(struct arena *arena, size_t size)
{
    if (options.thp == THP_ALWAYS || options.thp == THP_NEVER)
        pages_huge(arena->base, size, options.thp == THP_ALWAYS);
}

/* 1: a thread sleeps until there is unused memory. */
static _Atomic uint32_t arena_watched;

/* --- back to the OS -------------------------------------------------------------------------- */

/* Dirty slots of the arena, until so many bytes are gone. */
static size_t purge_slots(struct arena *arena, size_t most)
{
    size_t bytes = 0;
    arena_no_huge_pages(arena);
    for (uint64_t left = arena->dirty; left != 0 && bytes < most;) {
        unsigned first = (unsigned)__builtin_ctzll(left);
        uint64_t from = ~(left >> first);
        unsigned n = from != 0 ? (unsigned)__builtin_ctzll(from) : 64;
        size_t want = (most - bytes - 1) / SUPERBLOCK + 1;
        if (n > want) n = (unsigned)want;
        uint64_t mask = arena_slot_mask(first, n);
        left &= ~mask;
        if (!pages_purge(arena->base + (size_t)first * SUPERBLOCK, (size_t)n * SUPERBLOCK)) continue;
        arena->dirty &= ~mask;
        bytes += (size_t)n * SUPERBLOCK;
    }
    arenas.dirty_slots -= bytes / SUPERBLOCK;
    arena_count_held(0, bytes);
    return bytes;
}

/* Nobody else has a slot that is used, and `huge` only ever ends. */
void arena_refresh(struct superblock *sb)
{
    const struct arena *arena = map_find(slot_start(sb));
    if (!arena->huge) pages_purge(slot_start(sb), SUPERBLOCK);
}

/* An arena without a used slot is unmapped, but for the only one: the next slot will want it, unless all
 * is asked for. */
static bool may_unmap(const struct arena *arena, bool all)
{
    bool only = arenas.partial.first == &arena->link && arena->link.next == NULL;
    return arena->used == 0 && arena->dirty == 0 && (all || !only);
}

static size_t purge_older(uint64_t now, uint64_t min_age)
{
    size_t bytes = 0;
    struct list_node *next;
    for (struct list_node *node = arenas.partial.first; node != NULL; node = next) {
        struct arena *arena = LIST_ENTRY(node, struct arena, link);
        next = node->next;
        if (now - arena->freed_at < min_age) continue;
        if (arena->dirty != 0) bytes += purge_slots(arena, SIZE_MAX);
        if (!may_unmap(arena, min_age == 0)) continue;
        list_remove(node);
        arena_destroy(arena, ARENA);
    }
    return bytes;
}

size_t arena_purge(uint64_t min_age)
{
    lock_take(&arenas.lock);
    uint64_t now = pages_clock();
    size_t bytes = purge_older(now, min_age) + arena_drop_kept_older(now, min_age);
    lock_give(&arenas.lock);
    if (bytes != 0) PROBE(purge, bytes, min_age);
    return bytes;
}

void arena_tell_of_unused(void)
{
    if (LIKELY(atomic_load_explicit(&arena_watched, memory_order_relaxed) == 0)) return;
    atomic_store(&arena_watched, 0);
    lock_wake_sleeper(&arena_watched);
}

/* Who frees looks at `watched` under the lock, under which this looks at what there is. */
void arena_wait_for_unused(void)
{
    atomic_store(&arena_watched, 1);
    while (arena_held().unused == 0) {
        lock_sleep(&arena_watched, 1);
        atomic_store(&arena_watched, 1);
    }
    atomic_store(&arena_watched, 0);
}

void arena_purge_if_due(void)
{
    uint64_t now = pages_clock(), delay = options.purge_ms;
    size_t near = __atomic_load_n(&arenas.near, __ATOMIC_RELAXED);
    bool is_known = atomic_load_explicit(&arenas.limit_is_known, memory_order_relaxed);
    if (is_known && __atomic_load_n(&arenas.held, __ATOMIC_RELAXED) > near - near / 4) delay /= 8;
    if (now - __atomic_load_n(&arenas.purged_at, __ATOMIC_RELAXED) < delay) return;
    __atomic_store_n(&arenas.purged_at, now, __ATOMIC_RELAXED);
    arena_purge(delay);
}

/* --- a limit on memory ----------------------------------------------------------------------- */

static void know_limit(size_t bytes)
{
    __atomic_store_n(&arenas.near, bytes - bytes / 8, __ATOMIC_RELAXED);
    atomic_store_explicit(&arenas.limit_is_known, true, memory_order_relaxed);
}

void arena_limit(size_t bytes)
{
    lock_take(&arenas.lock);
    know_limit(bytes);
    lock_give(&arenas.lock);
}

bool arena_nears_limit(size_t more)
{
    return arena_is_near(more);
}

/* The arena whose slots became free longest ago. Huge pages are worth more than a peak. */
static struct arena *oldest_dirty(void)
{
    struct arena *oldest = NULL;
    for (struct list_node *node = arenas.partial.first; node != NULL; node = node->next) {
        struct arena *arena = LIST_ENTRY(node, struct arena, link);
        if (!arena->huge && arena->dirty != 0) oldest = arena;
    }
    return oldest;
}

/* No more is held than there ever was while some of it is unused. What is unused has the wrong shape then: it
 * is kept mappings, or runs of slots that are too short, which a program that allocates ever larger spans
 * leaves behind. What goes back for it in the life of the process is as much as its peak, and a quarter of
 * that once slots do, and what passes that last: a program whose spans come and go is near its peak again
 * and again, and would touch the same memory anew each time. */
static void stay_below_peak(size_t more)
{
    size_t aim = arenas.peak > more ? arenas.peak - more : 0, before = arenas.held;
    if (before <= aim || arenas.spared >= arenas.peak) return;
    arena_drop_kept(before - aim);
    struct arena *arena;
    while (arenas.held > aim && arenas.spared < arenas.peak / 4 && (arena = oldest_dirty()) != NULL)
        if (purge_slots(arena, arenas.held - aim) == 0) break;
    arenas.spared += before - arenas.held;
}

COLD bool arena_make_room(size_t more)
{
    stay_below_peak(more);
    if (!arena_is_near(more)) return true;
    if (!arenas.limit_is_known)
        know_limit(options.memory_limit == LIMIT_IGNORE ? SIZE_MAX : cgroup_mine().memory);
    if (!arena_is_near(more)) return true;
    uint64_t now = pages_clock();
    purge_older(now, 0);
    arena_drop_kept_older(now, 0);
    if (options.memory_limit != LIMIT_REFUSE || !arena_is_near(more)) return true;
    errno = ENOMEM;
    return false;
}
