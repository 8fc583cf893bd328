/* SPDX-License-Identifier: Apache-2.0 */
#include "arena/reclaim.h"

#include "arena/arena_table.h"
#include "arena/huge_pages.h"
#include "base/options.h"
#include "base/probe.h"
#include "os/cgroup.h"
#include "os/pages.h"

#include <errno.h>

/* --- back to the OS -------------------------------------------------------------------------- */

/* Returns the first run of set bits, cut to `most` bits. */
static uint64_t first_run(uint64_t bits, size_t most)
{
    ASSERT(bits != 0 && most != 0);
    unsigned first = (unsigned)__builtin_ctzll(bits);
    uint64_t from = ~(bits >> first);
    unsigned n = from != 0 ? (unsigned)__builtin_ctzll(from) : 64;
    return arena_slot_mask(first, n < most ? n : (unsigned)most);
}

/* Gives the memory of claimed dirty slots back to the OS. false: the OS refused. */
static bool purge_claimed(struct arena *arena, uint64_t mask)
{
    ASSERT((atomic_load(&arena->used) & mask) == mask && (atomic_load(&arena->dirty) & mask) == mask);
    unsigned first = (unsigned)__builtin_ctzll(mask), n = (unsigned)__builtin_popcountll(mask);
    if ((atomic_load(&arena->used) & ~mask) != 0)
        arena_no_huge_pages(arena); /* in an unused arena the kernel has no hole to fill */
    if (!pages_purge(arena->base + (size_t)first * SUPERBLOCK, (size_t)n * SUPERBLOCK)) return false;
    atomic_fetch_and(&arena->dirty, ~mask);
    ASSERT(atomic_load(&arenas.dirty_slots) >= n);
    atomic_fetch_sub_explicit(&arenas.dirty_slots, n, memory_order_relaxed);
    arena_count_held(0, (size_t)n * SUPERBLOCK);
    return true;
}

/* Purges a run of dirty slots. It claims them behind the gate, not before: slots that are claimed while
 * another thread forks would have no owner in the child. Returns the number of slots purged. */
static unsigned purge_run(struct arena *arena, uint64_t mask)
{
    unsigned slots = 0;
    gate_enter(&arenas.gate);
    ASSERT(mask != 0);
    if (arena_claim(arena, mask)) {
        ASSERT(arena->mapping == 0); /* not before: the struct may have been another's mapping meanwhile */
        uint64_t dirty = atomic_load(&arena->dirty) & mask; /* another thread may have used them since */
        if (dirty == mask && purge_claimed(arena, mask)) slots = (unsigned)__builtin_popcountll(mask);
        arena_release(arena, mask);
    }
    gate_leave(&arenas.gate);
    return slots;
}

/* Purges dirty slots of the arena until `most` bytes have gone. Returns the bytes. */
static size_t purge_slots(struct arena *arena, size_t most)
{
    size_t slots = 0, want = most / SUPERBLOCK + (most % SUPERBLOCK != 0);
    uint64_t left = atomic_load(&arena->dirty);
    while (slots < want && (left &= ~atomic_load(&arena->used)) != 0) {
        uint64_t mask = first_run(left, want - slots);
        left &= ~mask;
        slots += purge_run(arena, mask);
    }
    arena_look_for(arena, ARENA_DIRTY);
    return slots * SUPERBLOCK;
}

/* The slots are the caller's, and `huge` never becomes true again. */
bool arena_refresh(struct superblock *sb, unsigned n)
{
    const struct arena *arena = pagemap_find(slot_start(sb));
    ASSERT(arena != NULL && arena->mapping == 0 && sb->kind != SLOT_FREE);
    return !arena->huge && pages_purge(slot_start(sb), n * (size_t)SUPERBLOCK);
}

/* Returns true if its slots have been free for min_age ms. A slot may have become free after `now`. */
static bool is_old(const struct arena *arena, uint64_t now, uint64_t min_age)
{
    uint64_t freed_at = atomic_load_explicit(&arena->freed_at, memory_order_relaxed);
    return min_age == 0 || (freed_at <= now && now - freed_at >= min_age);
}

/* Unmaps an arena that seems unused; if the OS refuses, it serves again. Returns the dirty bytes gone. */
static size_t claim_and_unmap(struct arena *arena)
{
    uint64_t nothing = 0;
    if (!atomic_compare_exchange_strong(&arena->used, &nothing, UINT64_MAX)) return 0;
    ASSERT(atomic_load(&arena->heads) == 0 && arena->mapping == 0);
    arena_look_for(arena, ARENA_FREE);
    arena_look_for(arena, ARENA_DIRTY);
    uint64_t dirty = atomic_exchange(&arena->dirty, 0);
    if (!arena_destroy(arena, ARENA)) {
        atomic_store(&arena->dirty, dirty);
        arena_release(arena, UINT64_MAX);
        return 0;
    }
    size_t slots = (size_t)__builtin_popcountll(dirty);
    atomic_fetch_sub_explicit(&arenas.dirty_slots, slots, memory_order_relaxed);
    arena_count_held(0, slots * SUPERBLOCK);
    return slots * SUPERBLOCK;
}

/* Unmaps an arena without a used slot if `all`, or where many addresses are mapped for the memory held.
 * Else it stays for the next slot, unless a slot is dirty after the purge: mlocked memory goes only so. */
static size_t unmap_unused(struct arena *arena, bool all)
{
    bool is_spare = arenas.mapped / 2 >= arenas.held + ARENA_SPARE_ADDRESSES;
    if (!all && !is_spare && atomic_load(&arena->dirty) == 0) return 0;
    gate_enter(&arenas.gate);
    size_t bytes = claim_and_unmap(arena);
    gate_leave(&arenas.gate);
    return bytes;
}

/* Gives back slots that have been unused for min_age, until `most` bytes have gone. */
static size_t purge_older(uint64_t now, uint64_t min_age, size_t most, bool unmaps_all)
{
    size_t bytes = 0;
    for (struct arena *arena = NULL; bytes < most && (arena = arena_next_with(ARENA_FREE, arena)) != NULL;) {
        if (!is_old(arena, now, min_age)) continue;
        if (atomic_load(&arena->dirty) != 0) bytes += purge_slots(arena, most - bytes);
        if (bytes < most && atomic_load(&arena->used) == 0 && is_old(arena, now, min_age))
            bytes += unmap_unused(arena, unmaps_all);
    }
    if (bytes != 0) PROBE(purge, bytes, min_age);
    return bytes;
}

size_t arena_purge(uint64_t min_age) { return purge_older(pages_clock(), min_age, SIZE_MAX, min_age == 0); }

/* --- the rule ---------------------------------------------------------------------------------- */

/* What the program has not wanted for purge_ms goes back: by a slow path, once in purge_ms, or by the thread
 * that purges. A program that frees most of what it had may come to no slow path later. So a fall, which is a
 * free that leaves three times as much unused as used and FALL_SLACK besides, gives unused memory back at
 * once. But the bytes that the program wanted again within purge_ms after the fall before this one stay: the
 * unused ones that came into use, and those that were held beside them, as large objects fit into few gaps.
 *
 *     held   |  __            ____ most
 *            | /  \__________/    \__
 *     unused |     _______         _  fall: `again`, that is unused - least + most - held, stays
 *            | ___/       \______/
 *                 fall     least
 *
 * Falls less than purge_ms apart may be steps of one: of these the most bytes that were wanted again count.
 */
enum { FALL_SLACK = 4 * 1024 * 1024 /* bytes */, FALL_MS = 1000 };

/* Threads may overwrite each other's step: at worst memory stays until it is old, or is touched once more. */
static struct {
    _Atomic uint64_t at;         /* the latest fall */
    _Atomic size_t held, unused; /* bytes after this fall; */
    _Atomic size_t most, least;  /* the most that were held in the purge_ms after it, the least unused */
    _Atomic size_t again;
} fall = {.held = SIZE_MAX, .most = SIZE_MAX};

static size_t held(void) { return atomic_load_explicit(&arenas.held, memory_order_relaxed); }

static size_t above(size_t more, size_t less) { return more > less ? more - less : 0; }

void arena_note_wanted(void)
{
    size_t all = held(), unused = arena_unused();
    if (LIKELY(all <= fall.most && unused >= fall.least) || pages_clock() - fall.at >= options.purge_ms)
        return;
    if (all > fall.most) fall.most = all;
    if (unused < fall.least) fall.least = unused;
}

/* With a thread that purges, or where the user wants memory to be kept for longer, no fall gives it back. */
static bool is_fall(size_t kept)
{
    size_t unused = arena_unused();
    if (LIKELY(unused < FALL_SLACK + kept || unused - FALL_SLACK - kept <= 3 * above(held(), unused)))
        return false;
    return options.purge_ms <= FALL_MS && !arenas.has_purger;
}

static COLD void purge_fall(uint64_t now)
{
    size_t again = above(fall.most, fall.held) + above(fall.unused, fall.least), unused = arena_unused();
    if (now - fall.at < options.purge_ms && again < fall.again) again = fall.again;
    fall.again = again;
    fall.at = now;
    if (unused > again && is_fall(again)) purge_older(now, 0, unused - again, false);
    fall.held = fall.most = held();
    fall.unused = fall.least = arena_unused();
}

/* --- the thread that purges ------------------------------------------------------------------- */

_Atomic uint32_t arena_watched;

COLD void arena_wake_purger(void)
{
    if (atomic_exchange(&arena_watched, 0) != 0) lock_wake_sleeper(&arena_watched);
}

/* A thread that frees makes memory unused, and then reads arena_watched. This thread sets arena_watched, and
 * then looks for unused memory. So either it sees the memory, or the other thread wakes it. */
void arena_wait_for_unused(bool (*other)(void))
{
    arenas.has_purger = true;
    atomic_store(&arena_watched, 1);
    while (arena_unused() == 0 && !other()) {
        lock_sleep(&arena_watched, 1);
        atomic_store(&arena_watched, 1);
    }
    atomic_store(&arena_watched, 0);
}

void arena_note_idle_for(uint64_t ms)
{
    uint64_t now = pages_clock();
    atomic_store_explicit(&arenas.idle_for, ms < now ? ms : now, memory_order_relaxed);
}

uint64_t arena_purged_at(void) { return atomic_load_explicit(&arenas.purged_at, memory_order_relaxed); }

void arena_purge_if_due(void)
{
    ASSERT(lock_rank_is_next(RANK_HEAP_TABLE));
    bool watched = atomic_load_explicit(&arena_watched, memory_order_relaxed) != 0;
    if (UNLIKELY(watched) && arena_unused() != 0) arena_wake_purger();
    uint64_t now = pages_clock(), last = atomic_load_explicit(&arenas.purged_at, memory_order_relaxed);
    if (now - last < options.purge_ms || !atomic_compare_exchange_strong(&arenas.purged_at, &last, now))
        return;
    arena_purge(options.purge_ms);
}

void arena_purge_after_free(void)
{
    arena_purge_if_due();
    if (UNLIKELY(is_fall(0))) purge_fall(pages_clock());
}

void arena_purge_unused(size_t keep, size_t most)
{
    size_t more = above(arena_unused(), keep);
    if (more != 0) purge_older(pages_clock(), 0, more < most ? more : most, false);
}

/* --- a limit on memory ----------------------------------------------------------------------- */

void arena_limit(size_t bytes)
{
    atomic_store_explicit(&arenas.near, bytes - bytes / 8, memory_order_relaxed);
    atomic_store_explicit(&arenas.limit_is_known, true, memory_order_relaxed);
}

struct arena_held arena_held(void)
{
    return (struct arena_held){arenas.held, arenas.peak, arena_unused(), arenas.returned};
}

bool arena_nears_limit(size_t more)
{
    size_t held = atomic_load_explicit(&arenas.held, memory_order_relaxed);
    size_t near = atomic_load_explicit(&arenas.near, memory_order_relaxed);
    return more != 0 && (held >= near || more > near - held);
}

static COLD bool make_room_near_limit(size_t more)
{
    if (!arenas.limit_is_known)
        arena_limit(options.memory_limit == LIMIT_IGNORE ? SIZE_MAX : cgroup_mine().memory);
    if (!arena_nears_limit(more)) return true;
    purge_older(pages_clock(), 0, SIZE_MAX, true);
    if (options.memory_limit != LIMIT_REFUSE || !arena_nears_limit(more)) return true;
    errno = ENOMEM;
    return false;
}

bool arena_make_room(size_t more) { return LIKELY(!arena_nears_limit(more)) || make_room_near_limit(more); }
