/* SPDX-License-Identifier: Apache-2.0 */
/* user_memory.c: the table of memory of the user that reaps live in. */
#include "hoard/user_memory.h"

#include <errno.h>

#include "base/lock.h"
#include "hoard/apart_table.h"

_Atomic unsigned user_memory_any;

struct piece {
    _Atomic uintptr_t start, end;
};

/* Pieces that do not meet, sorted. */
struct pieces {
    _Atomic unsigned count;
    struct piece at[USER_MEMORY_MAX];
};

static SPARSE struct {
    struct lock lock;
    _Atomic unsigned version;   /* odd while the table changes */
    struct pieces outer, inner; /* each inner one came into an outer one */
} table = {.lock = LOCK_OF_RANK(RANK_USER_MEMORY)};

/* For assertions. */
static bool are_sorted(const struct pieces *pieces)
{
    for (unsigned i = 0; i < pieces->count; i++) {
        if (pieces->at[i].start >= pieces->at[i].end) return false;
        if (i > 0 && pieces->at[i - 1].end > pieces->at[i].start) return false;
    }
    return table.outer.count + table.inner.count <= user_memory_any;
}

static void begin_change(void)
{
    lock_take(&table.lock);
    ASSERT(table.outer.count + table.inner.count <= USER_MEMORY_MAX);
    atomic_store_explicit(&table.version, table.version + 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
}

static void end_change(void)
{
    atomic_store_explicit(&table.version, table.version + 1, memory_order_release);
    ASSERT_WALK(table.outer.count + table.inner.count, are_sorted(&table.outer) && are_sorted(&table.inner));
    lock_give(&table.lock);
}

/* The first piece that ends behind an address; count if there is none. */
static unsigned search(const struct pieces *pieces, uintptr_t address, unsigned count)
{
    ASSERT(count <= USER_MEMORY_MAX);
    unsigned low = 0, high = count;
    while (low < high) {
        unsigned middle = (low + high) / 2;
        if (atomic_load_explicit(&pieces->at[middle].end, memory_order_relaxed) > address)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* --- changes --------------------------------------------------------------------------------- */

static void set_piece(struct piece *piece, uintptr_t start, uintptr_t end)
{
    ASSERT(lock_is_mine(&table.lock) && start < end);
    atomic_store_explicit(&piece->start, start, memory_order_relaxed);
    atomic_store_explicit(&piece->end, end, memory_order_relaxed);
}

static void insert_piece(struct pieces *pieces, uintptr_t start, uintptr_t end)
{
    unsigned i = search(pieces, start, pieces->count);
    for (unsigned k = pieces->count; k > i; k--)
        set_piece(&pieces->at[k], pieces->at[k - 1].start, pieces->at[k - 1].end);
    set_piece(&pieces->at[i], start, end);
    atomic_store_explicit(&pieces->count, pieces->count + 1, memory_order_relaxed);
}

/* Returns false if no piece starts there. */
static bool drop_piece(struct pieces *pieces, uintptr_t start)
{
    unsigned i = search(pieces, start, pieces->count);
    if (i == pieces->count || pieces->at[i].start != start) return false;
    for (; i + 1 < pieces->count; i++)
        set_piece(&pieces->at[i], pieces->at[i + 1].start, pieces->at[i + 1].end);
    atomic_store_explicit(&pieces->count, pieces->count - 1, memory_order_relaxed);
    return true;
}

enum place { APART, WITHIN, ACROSS };
static enum place place_among(const struct pieces *pieces, uintptr_t start, uintptr_t end)
{
    const struct piece *piece = &pieces->at[search(pieces, start, pieces->count)];
    if (piece == &pieces->at[pieces->count] || piece->start >= end) return APART;
    return start > piece->start && end <= piece->end ? WITHIN : ACROSS;
}

int user_memory_add(void *at, size_t size)
{
    ASSERT(at != NULL && size != 0 && (uintptr_t)at % USER_MEMORY_ALIGN == 0 &&
           size % USER_MEMORY_ALIGN == 0);
    uintptr_t start = (uintptr_t)at, end = start + size;
    begin_change();
    enum place outer = place_among(&table.outer, start, end), inner = place_among(&table.inner, start, end);
    int error = 0;
    if (table.outer.count + table.inner.count == USER_MEMORY_MAX)
        error = ENOMEM;
    else if (outer == ACROSS || inner == ACROSS)
        error = EEXIST;
    else if (inner == WITHIN)
        error = EINVAL;
    if (error == 0) {
        insert_piece(outer == WITHIN ? &table.inner : &table.outer, start, end);
        atomic_fetch_add_explicit(&user_memory_any, 1, memory_order_relaxed);
    }
    end_change();
    return error;
}

void user_memory_remove(const void *start)
{
    begin_change();
    ASSERT(user_memory_any != 0);
    bool was_there = drop_piece(&table.inner, (uintptr_t)start) || drop_piece(&table.outer, (uintptr_t)start);
    ASSERT(was_there);
    (void)was_there;
    atomic_fetch_sub_explicit(&user_memory_any, 1, memory_order_relaxed);
    end_change();
}

/* --- searches -------------------------------------------------------------------------------- */

/* Reads the piece that holds an address; what it reads is right if no change goes on. */
static bool find_piece(const struct pieces *pieces, uintptr_t address, uintptr_t *start, uintptr_t *end)
{
    unsigned count = atomic_load_explicit(&pieces->count, memory_order_relaxed);
    unsigned i = search(pieces, address, count);
    if (i == count) return false;
    *start = atomic_load_explicit(&pieces->at[i].start, memory_order_relaxed);
    *end = atomic_load_explicit(&pieces->at[i].end, memory_order_relaxed);
    return address >= *start;
}

void *user_memory_search(const void *pointer, size_t *size)
{
    for (;;) {
        uintptr_t start, end, address = (uintptr_t)pointer;
        unsigned version = atomic_load_explicit(&table.version, memory_order_acquire);
        bool found = find_piece(&table.inner, address, &start, &end) ||
                     find_piece(&table.outer, address, &start, &end);
        atomic_thread_fence(memory_order_acquire);
        if (version % 2 || version != atomic_load_explicit(&table.version, memory_order_relaxed)) continue;
        if (size != NULL) *size = found ? end - start : 0;
        return found ? (void *)start : apart_find(pointer);
    }
}

void user_memory_freeze(void) { lock_take(&table.lock); }

void user_memory_thaw(void) { lock_give(&table.lock); }

int user_memory_walk(int (*fn)(void *start, size_t size, void *arg), void *arg)
{
    const struct pieces *const both[] = {&table.outer, &table.inner};
    int result = 0;
    for (unsigned k = 0; k < 2; k++)
        for (unsigned i = 0; i < both[k]->count && result == 0; i++)
            result = fn((void *)both[k]->at[i].start, both[k]->at[i].end - both[k]->at[i].start, arg);
    return result;
}

void user_memory_begin_apart(void) { atomic_fetch_add_explicit(&user_memory_any, 1, memory_order_relaxed); }

void user_memory_fork_prepare(void)
{
    lock_for_fork(&table.lock);
    apart_fork_prepare();
}

void user_memory_fork_parent(void)
{
    apart_fork_parent();
    lock_after_fork(&table.lock);
}

void user_memory_fork_child(void)
{
    apart_fork_child();
    lock_reset(&table.lock);
}
