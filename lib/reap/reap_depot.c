/* SPDX-License-Identifier: Apache-2.0 */
/* reap_depot.c: dead reaps for whoever needs one of their size next. */
#include "reap/reap_depot.h"

#include "reap/reap_tree.h"

/* The places of a step's reaps, behind those of smaller ones. */
static inline unsigned room(unsigned step) { return 8U >> step; }
static inline unsigned place(unsigned step) { return 16 - (16U >> step); }
enum { PLACES = 8 + 4 + 2 + 1 };
static_assert(REAP_STEPS == 4, "each size has a place");

static struct depot {
    _Alignas(64) struct reap_list guard; /* an empty one, for its lock */
    uint8_t numbers[REAP_STEPS];
    struct reap *dead[PLACES];
} depots[ROOT_LISTS];

/* The depot that was full, last. */
static _Atomic(uint8_t) full[REAP_STEPS];

/* A fork between these stores of another thread loses a dead reap in the child, and no more. */
static struct reap *take_dead(struct depot *depot, unsigned step)
{
    struct reap *reap = NULL;
    if (__atomic_load_n(&depot->numbers[step], __ATOMIC_RELAXED) == 0) return NULL;
    reap_tree_lock(&depot->guard);
    if (LIKELY(depot->numbers[step] > 0)) {
        unsigned number = --depot->numbers[step];
        atomic_signal_fence(memory_order_seq_cst);
        reap = depot->dead[place(step) + number];
    }
    reap_tree_unlock(&depot->guard);
    return reap;
}

struct reap *reap_depot_take(unsigned step)
{
    struct reap *reap = reap_kept_root ? take_dead(&depots[reap_kept_root - 1], step) : NULL;
    if (!reap) reap = take_dead(&depots[atomic_load_explicit(&full[step], memory_order_relaxed)], step);
    return reap ? reap_region_renew(reap, reap_size_of_step(step)) : NULL;
}

static bool put_dead(struct depot *depot, unsigned step, struct reap *reap)
{
    reap_tree_lock(&depot->guard);
    unsigned number = depot->numbers[step];
    bool has_room = number < room(step);
    if (LIKELY(has_room)) {
        depot->dead[place(step) + number] = reap;
        atomic_signal_fence(memory_order_seq_cst);
        depot->numbers[step] = (uint8_t)(number + 1);
    }
    reap_tree_unlock(&depot->guard);
    return has_room;
}

void reap_depot_keep(struct reap *reap)
{
    struct reap_chunk *first = reap_first_chunk(reap);
    unsigned step = 0;
    ASSERT(first->tag == 0);
    while (step < REAP_FIRST_STEPS && reap_size_of_step(step) < first->size) step++;
    if (!reap_kept_root) reap_kept_root = (uint8_t)(reap_root_number(reap) + 1);
    if (LIKELY(put_dead(&depots[reap_kept_root - 1], step, reap))) return;
    atomic_store_explicit(&full[step], (uint8_t)(reap_kept_root - 1), memory_order_relaxed);
    reap_chunk_give_back(first);
}

void reap_depot_trim(void)
{
    for (unsigned i = 0; i < ROOT_LISTS; i++) {
        struct reap *reap = reap_tree_take_cached(&reap_roots[i].list);
        if (reap) reap_chunk_give_back(reap_first_chunk(reap));
        for (unsigned step = 0; step < REAP_STEPS; step++)
            while ((reap = take_dead(&depots[i], step)) != NULL) reap_chunk_give_back(reap_first_chunk(reap));
    }
}
