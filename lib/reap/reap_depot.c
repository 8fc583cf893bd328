/* SPDX-License-Identifier: Apache-2.0 */
/* reap_depot.c: dead reaps for whoever needs one of their size next. */
#include "reap/reap_depot.h"

#include "arena/arena.h"
#include "arena/reclaim.h"
#include "heap/heap_path.h"
#include "reap/reap_tree.h"

/* The places that a step's reaps have. */
enum { PLACES = 8 };
static inline unsigned room(unsigned step) { return PLACES >> step; }
static_assert(REAP_STEPS == 4, "each size has a place, and a number in a word");

/* In reverse order: a small program uses those of low numbers, which lie beside its lists (base.h). */
static SPARSE_LIVE_END struct depot {
    _Alignas(64) struct reap_list guard; /* an empty one, for its lock */
    union {
        uint8_t numbers[REAP_STEPS];
        uint32_t any; /* 0: it is empty */
    };
    uint8_t least[REAP_STEPS];              /* the least number since the last look */
    uint8_t was_hot[REAP_STEPS];            /* the hot one was taken since the last look */
    _Atomic(struct reap *) hot[REAP_STEPS]; /* the one kept last, if none was: without a lock */
    struct reap *dead[REAP_STEPS][PLACES];
} depots[ROOT_LISTS];
static_assert(sizeof depots % 4096 == 0, "its end lies within a page where sparse.ld wants it");

static ALWAYS_INLINE struct depot *depot_of(unsigned list) { return &depots[ROOT_LISTS - 1 - list]; }

/* A bit for each depot of which others take: it was full, or has what did not fit into another one. The
 * thread that finds it empty clears the bit. */
static _Atomic(uint64_t) full[REAP_STEPS];
static_assert(ROOT_LISTS <= 64, "a word has a bit for each depot");

static _Atomic(uint64_t) looked_at; /* the purge before the last look */

static inline unsigned number_in(const struct depot *depot, unsigned step)
{
    return __atomic_load_n(&depot->numbers[step], __ATOMIC_RELAXED);
}

static inline bool is_stocked(const struct depot *depot)
{
    return __atomic_load_n(&depot->any, __ATOMIC_RELAXED) != 0;
}

static inline void set_number(struct depot *depot, unsigned step, unsigned number)
{
    __atomic_store_n(&depot->numbers[step], (uint8_t)number, __ATOMIC_RELAXED);
}

/* This thread's depot, if it has one, and the next one, for what does not fit into that. */
static inline struct depot *own_depot(void) { return depot_of(reap_kept_root - 1U); }
static inline struct depot *next_depot(void) { return depot_of(reap_kept_root % ROOT_LISTS); }

static ALWAYS_INLINE struct reap *take_hot(struct depot *depot, unsigned step)
{
    struct reap *reap = atomic_load_explicit(&depot->hot[step], memory_order_relaxed);
    if (!reap) return NULL;
    if (__libc_single_threaded)
        atomic_store_explicit(&depot->hot[step], NULL, memory_order_relaxed);
    else
        reap = atomic_exchange_explicit(&depot->hot[step], NULL, memory_order_acquire);
    __atomic_store_n(&depot->was_hot[step], 1, __ATOMIC_RELAXED);
    return reap;
}

static ALWAYS_INLINE bool put_hot(struct depot *depot, unsigned step, struct reap *reap)
{
    struct reap *none = atomic_load_explicit(&depot->hot[step], memory_order_relaxed);
    if (none || step == 0) return false;
    if (!__libc_single_threaded)
        return atomic_compare_exchange_strong_explicit(&depot->hot[step], &none, reap, memory_order_release,
                                                       memory_order_relaxed);
    atomic_store_explicit(&depot->hot[step], reap, memory_order_relaxed);
    return true;
}

/* A fork between these stores of another thread loses a dead reap in the child, and no more. */
static ALWAYS_INLINE struct reap *take_dead(struct depot *depot, unsigned step)
{
    struct reap *reap = NULL;
    if (number_in(depot, step) == 0) return NULL;
    reap_tree_lock(&depot->guard);
    if (LIKELY(depot->numbers[step] > 0)) {
        unsigned number = depot->numbers[step] - 1U;
        set_number(depot, step, number);
        if (depot->least[step] > number) depot->least[step] = (uint8_t)number;
        atomic_signal_fence(memory_order_seq_cst);
        reap = depot->dead[step][number];
    }
    reap_tree_unlock(&depot->guard);
    return reap;
}

/* Takes one that another thread has kept. */
static NOINLINE struct reap *take_of_others(unsigned step)
{
    struct reap *reap = NULL;
    uint64_t left = atomic_load_explicit(&full[step], memory_order_relaxed);
    for (; left != 0 && !reap; left &= left - 1) {
        struct depot *depot = &depots[__builtin_ctzll(left)];
        reap = take_dead(depot, step);
        if (number_in(depot, step) == 0) atomic_fetch_and(&full[step], ~(left & -left));
    }
    return reap;
}

static NOINLINE struct reap *take_cold(unsigned step)
{
    struct reap *reap = reap_kept_root ? take_dead(own_depot(), step) : NULL;
    if (!reap) reap = take_of_others(step);
    return reap ? reap_region_renew(reap, reap_size_of_step(step)) : NULL;
}

struct reap *reap_depot_take(unsigned step)
{
    struct reap *reap = LIKELY(reap_kept_root) ? take_hot(own_depot(), step) : NULL;
    return LIKELY(reap != NULL) ? reap : take_cold(step);
}

static inline void note_full(const struct depot *depot, unsigned step)
{
    uint64_t bit = (uint64_t)1 << (depot - depots);
    if (!(atomic_load_explicit(&full[step], memory_order_relaxed) & bit)) atomic_fetch_or(&full[step], bit);
}

static bool put_dead(struct depot *depot, unsigned step, struct reap *reap)
{
    reap_tree_lock(&depot->guard);
    unsigned number = depot->numbers[step];
    bool has_room = number < room(step);
    if (LIKELY(has_room)) {
        depot->dead[step][number] = reap;
        atomic_signal_fence(memory_order_seq_cst);
        set_number(depot, step, number + 1);
        if (number + 1 == room(step) || depot != own_depot()) note_full(depot, step);
    }
    reap_tree_unlock(&depot->guard);
    arena_tell_purger();
    return has_room;
}

static NOINLINE void keep_cold(struct reap *reap, unsigned step)
{
    if (UNLIKELY(atomic_load_explicit(&looked_at, memory_order_relaxed) != arena_purged_at()))
        reap_depot_give_idle();
    if (!reap_kept_root) reap_kept_root = (uint8_t)(heap_path_id() % ROOT_LISTS + 1);
    if (LIKELY(put_dead(own_depot(), step, reap)) || put_dead(next_depot(), step, reap)) return;
    reap_chunk_give_back(reap_first_chunk(reap));
}

void reap_depot_keep(struct reap *reap)
{
    size_t size = reap_first_chunk(reap)->size;
    unsigned step = size == REAP_SMALL_SIZE ? 0 : (unsigned)__builtin_ctzl(size) - 12;
    ASSERT(reap_first_chunk(reap)->tag == 0 && size == reap_size_of_step(step));
    bool is_looked_at = atomic_load_explicit(&looked_at, memory_order_relaxed) == arena_purged_at();
    if (LIKELY(is_looked_at && reap_kept_root && put_hot(own_depot(), step, reap)))
        arena_tell_purger();
    else
        keep_cold(reap, step);
}

/* --- giving back ----------------------------------------------------------------------------- */

/* Gives back so many of a depot's reaps, or all that there are. Returns the bytes. */
static size_t give_some(struct depot *depot, unsigned step, unsigned most)
{
    size_t bytes = 0;
    for (struct reap *reap; most > 0 && (reap = take_dead(depot, step)) != NULL; most--) {
        reap_chunk_give_back(reap_first_chunk(reap));
        bytes += reap_size_of_step(step);
    }
    return bytes;
}

static size_t give_hot(struct depot *depot, unsigned step)
{
    struct reap *reap = take_hot(depot, step);
    if (!reap) return 0;
    reap_chunk_give_back(reap_first_chunk(reap));
    return reap_size_of_step(step);
}

static size_t empty_depot(struct depot *depot)
{
    size_t bytes = 0;
    for (unsigned step = 0; step < REAP_STEPS; step++)
        bytes += give_hot(depot, step) + give_some(depot, step, room(step));
    return bytes;
}

size_t reap_depot_trim_own(void)
{
    return reap_kept_root ? empty_depot(own_depot()) + empty_depot(next_depot()) : 0;
}

void reap_depot_trim(void)
{
    for (unsigned i = 0; i < ROOT_LISTS; i++) {
        struct reap *reap = reap_tree_take_cached(&reap_roots[i].list);
        if (reap) reap_chunk_give_back(reap_first_chunk(reap));
        empty_depot(&depots[i]);
    }
}

/* Returns the least number since the last look, and begins to count anew. */
static unsigned look(struct depot *depot, unsigned step)
{
    if (number_in(depot, step) == 0) return 0; /* and so is the least */
    reap_tree_lock(&depot->guard);
    unsigned least = depot->least[step];
    depot->least[step] = depot->numbers[step];
    reap_tree_unlock(&depot->guard);
    return least;
}

void reap_depot_give_idle(void)
{
    atomic_store_explicit(&looked_at, arena_purged_at(), memory_order_relaxed);
    for (unsigned i = 0; i < ROOT_LISTS; i++)
        for (unsigned step = 0; step < REAP_STEPS; step++) {
            if (is_stocked(&depots[i])) give_some(&depots[i], step, look(&depots[i], step));
            if (!__atomic_exchange_n(&depots[i].was_hot[step], 0, __ATOMIC_RELAXED))
                give_hot(&depots[i], step);
        }
}

size_t reap_depot_bytes(void)
{
    size_t bytes = 0;
    for (unsigned i = 0; i < ROOT_LISTS; i++)
        for (unsigned step = 0; step < REAP_STEPS; step++)
            bytes += (number_in(&depots[i], step) + !!depots[i].hot[step]) * reap_size_of_step(step);
    return bytes;
}
