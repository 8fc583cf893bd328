/* SPDX-License-Identifier: Apache-2.0 */
/* user_memory.c: the table of memory of the user that reaps live in. */
#include "hoard/user_memory.h"

#include <errno.h>

#include "base/lock.h"
#include "hoard/guarded_map.h"

_Atomic unsigned user_memory_any;

enum { RUNS = 2 * USER_MEMORY_MAX }; /* at most: a piece splits one run of another piece */

struct run {
    _Atomic uintptr_t start, end;
    _Atomic uintptr_t piece, piece_end;
};

static SPARSE struct {
    struct lock lock;
    _Atomic unsigned count; /* runs */
    unsigned pieces;
    _Atomic unsigned version; /* odd while the table changes */
    struct run at[RUNS];
} table = {.lock = LOCK_OF_RANK(RANK_USER_MEMORY)};

/* For assertions: returns true if the runs are sorted, and each lies within its piece. */
static bool are_sorted(void)
{
    for (unsigned i = 0; i < table.count; i++) {
        const struct run *run = &table.at[i];
        if (run->start >= run->end || run->piece > run->start || run->end > run->piece_end) return false;
        if (i > 0 && table.at[i - 1].end > run->start) return false;
    }
    return table.pieces <= user_memory_any;
}

static void begin_change(void)
{
    lock_take(&table.lock);
    ASSERT(table.count <= RUNS && table.pieces <= USER_MEMORY_MAX);
    atomic_store_explicit(&table.version, table.version | 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
}

static void make_even(void)
{
    atomic_store_explicit(&table.version, (table.version | 1) + 1, memory_order_release);
}

static void end_change(void)
{
    make_even();
    ASSERT_WALK(table.count, are_sorted());
    lock_give(&table.lock);
}

/* The first run that ends behind an address; count if there is none. */
static unsigned search(uintptr_t address, unsigned count)
{
    ASSERT(count <= RUNS);
    unsigned low = 0, high = count;
    while (low < high) {
        unsigned middle = (low + high) / 2;
        if (atomic_load_explicit(&table.at[middle].end, memory_order_relaxed) > address)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* --- changes --------------------------------------------------------------------------------- */

static void set(unsigned i, uintptr_t start, uintptr_t end, uintptr_t piece, uintptr_t piece_end)
{
    ASSERT(i < RUNS && start < end && piece <= start && end <= piece_end);
    atomic_store_explicit(&table.at[i].start, start, memory_order_relaxed);
    atomic_store_explicit(&table.at[i].end, end, memory_order_relaxed);
    atomic_store_explicit(&table.at[i].piece, piece, memory_order_relaxed);
    atomic_store_explicit(&table.at[i].piece_end, piece_end, memory_order_relaxed);
}

static void copy(unsigned to, unsigned from)
{
    const struct run *run = &table.at[from];
    set(to, run->start, run->end, run->piece, run->piece_end);
}

static void insert(unsigned i, uintptr_t start, uintptr_t end, uintptr_t piece, uintptr_t piece_end)
{
    ASSERT(lock_is_mine(&table.lock) && table.count < RUNS && i <= table.count);
    for (unsigned k = table.count; k > i; k--) copy(k, k - 1);
    set(i, start, end, piece, piece_end);
    atomic_store_explicit(&table.count, table.count + 1, memory_order_relaxed);
}

static void drop(unsigned i)
{
    unsigned count = table.count;
    ASSERT(i < count && lock_is_mine(&table.lock));
    for (unsigned k = i + 1; k < count; k++) copy(k - 1, k);
    atomic_store_explicit(&table.count, count - 1, memory_order_relaxed);
}

/* Returns true if a piece can go into run i, or if there is room for it before the run. */
static bool has_place(unsigned i, uintptr_t start, uintptr_t end)
{
    const struct run *run = &table.at[i];
    if (i == table.count || end <= run->start) return true;
    return start >= run->start && start > run->piece && end <= run->end;
}

/* Enters a piece into run i, or before it. */
static void enter(unsigned i, uintptr_t start, uintptr_t end)
{
    ASSERT(start < end && i <= table.count);
    const struct run *run = &table.at[i];
    bool within = i < table.count && run->start < end;
    uintptr_t outer = run->piece, outer_end = run->piece_end, before = run->start, behind = run->end;
    insert(i, start, end, start, end);
    if (!within) return;
    if (behind > end)
        set(i + 1, end, behind, outer, outer_end);
    else
        drop(i + 1);
    if (before < start) insert(i, before, start, outer, outer_end);
}

int user_memory_add(void *at, size_t size)
{
    ASSERT(at != NULL && size != 0 && (uintptr_t)at % USER_MEMORY_ALIGN == 0 &&
           size % USER_MEMORY_ALIGN == 0);
    uintptr_t start = (uintptr_t)at, end = start + size;
    begin_change();
    unsigned i = search(start, table.count);
    int error = table.pieces == USER_MEMORY_MAX ? ENOMEM : has_place(i, start, end) ? 0 : EINVAL;
    if (error == 0) {
        enter(i, start, end);
        table.pieces++;
        atomic_fetch_add_explicit(&user_memory_any, 1, memory_order_relaxed);
    }
    end_change();
    return error;
}

/* A run of the piece around the one that begins with run i and has this end; i if there is none. All runs
 * between the two touch. */
static unsigned outer_of(unsigned i, uintptr_t end)
{
    for (unsigned k = i; k > 0 && table.at[k - 1].end == table.at[k].start; k--)
        if (table.at[k - 1].piece_end >= end) return k - 1;
    return i;
}

/* Joins a run with the one before it, if both are of one piece. */
static bool join(unsigned i)
{
    if (i == 0) return false;
    struct run *run = &table.at[i - 1];
    if (run->end != table.at[i].start || run->piece != table.at[i].piece) return false;
    atomic_store_explicit(&run->end, table.at[i].end, memory_order_relaxed);
    drop(i);
    return true;
}

/* Gives the piece's runs to the piece around it, or drops them if there is none. (The piece has several runs
 * if another piece in it is still there.) */
static void leave(uintptr_t piece)
{
    unsigned i = search(piece, table.count), outer = outer_of(i, table.at[i].piece_end);
    ASSERT(i < table.count && table.at[i].piece == piece && outer < table.count);
    uintptr_t end = table.at[i].piece_end, around = table.at[outer].piece,
              around_end = table.at[outer].piece_end;
    while (i < table.count && table.at[i].start <= end) {
        if (table.at[i].piece != piece) {
            i += !join(i);
        } else if (around != piece) {
            set(i, table.at[i].start, table.at[i].end, around, around_end);
            i += !join(i);
        } else {
            drop(i);
        }
    }
}

void user_memory_remove(const void *start)
{
    begin_change();
    ASSERT(table.pieces != 0 && user_memory_any != 0);
    leave((uintptr_t)start);
    table.pieces--;
    atomic_fetch_sub_explicit(&user_memory_any, 1, memory_order_relaxed);
    end_change();
}

/* --- searches -------------------------------------------------------------------------------- */

void *user_memory_search(const void *pointer, size_t *size)
{
    for (;;) {
        unsigned version = atomic_load_explicit(&table.version, memory_order_acquire);
        unsigned count = atomic_load_explicit(&table.count, memory_order_relaxed);
        unsigned i = search((uintptr_t)pointer, count);
        const struct run *run = &table.at[i % RUNS];
        uintptr_t start = atomic_load_explicit(&run->start, memory_order_relaxed);
        uintptr_t piece = atomic_load_explicit(&run->piece, memory_order_relaxed);
        uintptr_t piece_end = atomic_load_explicit(&run->piece_end, memory_order_relaxed);
        atomic_thread_fence(memory_order_acquire);
        if (version % 2 || version != atomic_load_explicit(&table.version, memory_order_relaxed)) continue;
        if (i == count || (uintptr_t)pointer < start) return guarded_map_find(pointer, size);
        if (size != NULL) *size = piece_end - piece;
        return (void *)piece;
    }
}

void user_memory_freeze(void) { lock_take(&table.lock); }

void user_memory_thaw(void) { lock_give(&table.lock); }

int user_memory_walk(int (*fn)(void *start, size_t size, void *arg), void *arg)
{
    int result = 0;
    for (unsigned i = 0; i < table.count && result == 0; i++) {
        const struct run *run = &table.at[i];
        if (run->start == run->piece) result = fn((void *)run->piece, run->piece_end - run->piece, arg);
    }
    return result;
}

void user_memory_begin_apart(void) { atomic_fetch_add_explicit(&user_memory_any, 1, memory_order_relaxed); }

void user_memory_fork_prepare(void)
{
    lock_for_fork(&table.lock);
    guarded_map_fork_prepare();
}

void user_memory_fork_parent(void)
{
    guarded_map_fork_parent();
    lock_after_fork(&table.lock);
}

/* A signal's handler may have forked during a change (lock.h), which goes on in the child when the handler
 * returns. A search meanwhile may miss the pieces that the change moves, but it must not wait for the
 * change's end. */
void user_memory_fork_child(void)
{
    guarded_map_fork_child();
    make_even();
    lock_reset(&table.lock);
}
