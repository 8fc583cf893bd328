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

static SPARSE struct {
    struct lock lock;
    _Atomic unsigned version; /* odd while the table changes */
    _Atomic unsigned count;
    struct piece at[USER_MEMORY_MAX]; /* that do not meet, sorted */
} table = {.lock = LOCK_OF_RANK(RANK_USER_MEMORY)};

/* For assertions. */
static bool are_sorted(void)
{
    for (unsigned i = 0; i < table.count; i++) {
        if (table.at[i].start >= table.at[i].end) return false;
        if (i > 0 && table.at[i - 1].end > table.at[i].start) return false;
    }
    return table.count <= user_memory_any;
}

static void begin_change(void)
{
    lock_take(&table.lock);
    ASSERT(table.count <= USER_MEMORY_MAX);
    atomic_store_explicit(&table.version, table.version + 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
}

static void end_change(void)
{
    atomic_store_explicit(&table.version, table.version + 1, memory_order_release);
    ASSERT_WALK(table.count, are_sorted());
    lock_give(&table.lock);
}

/* The first piece that ends behind an address; count if there is none. */
static unsigned search(uintptr_t address, unsigned count)
{
    ASSERT(count <= USER_MEMORY_MAX);
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

static void set_piece(struct piece *piece, uintptr_t start, uintptr_t end)
{
    ASSERT(lock_is_mine(&table.lock) && start < end);
    atomic_store_explicit(&piece->start, start, memory_order_relaxed);
    atomic_store_explicit(&piece->end, end, memory_order_relaxed);
}

static void insert_piece(uintptr_t start, uintptr_t end)
{
    unsigned i = search(start, table.count);
    for (unsigned k = table.count; k > i; k--)
        set_piece(&table.at[k], table.at[k - 1].start, table.at[k - 1].end);
    set_piece(&table.at[i], start, end);
    atomic_store_explicit(&table.count, table.count + 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&user_memory_any, 1, memory_order_relaxed);
}

/* 0: the addresses are nobody's. */
static int error_of(uintptr_t start, uintptr_t end)
{
    unsigned i = search(start, table.count);
    if (table.count == USER_MEMORY_MAX) return ENOMEM;
    if (i == table.count || table.at[i].start >= end) return 0;
    return start > table.at[i].start && end <= table.at[i].end ? EINVAL : EEXIST;
}

int user_memory_add(void *at, size_t size)
{
    ASSERT(at != NULL && size != 0 && (uintptr_t)at % USER_MEMORY_ALIGN == 0 &&
           size % USER_MEMORY_ALIGN == 0);
    uintptr_t start = (uintptr_t)at, end = start + size;
    begin_change();
    int error = error_of(start, end);
    if (error == 0) insert_piece(start, end);
    end_change();
    return error;
}

void user_memory_remove(const void *start)
{
    begin_change();
    unsigned i = search((uintptr_t)start, table.count);
    ASSERT(user_memory_any != 0 && i < table.count && table.at[i].start == (uintptr_t)start);
    for (; i + 1 < table.count; i++) set_piece(&table.at[i], table.at[i + 1].start, table.at[i + 1].end);
    atomic_store_explicit(&table.count, table.count - 1, memory_order_relaxed);
    atomic_fetch_sub_explicit(&user_memory_any, 1, memory_order_relaxed);
    end_change();
}

/* --- searches -------------------------------------------------------------------------------- */

/* Reads the piece that holds an address; what it reads is right if no change goes on. */
static bool find_piece(uintptr_t address, uintptr_t *start, uintptr_t *end)
{
    unsigned count = atomic_load_explicit(&table.count, memory_order_relaxed);
    unsigned i = search(address, count);
    if (i == count) return false;
    *start = atomic_load_explicit(&table.at[i].start, memory_order_relaxed);
    *end = atomic_load_explicit(&table.at[i].end, memory_order_relaxed);
    return address >= *start;
}

void *user_memory_search(const void *pointer, size_t *size)
{
    for (;;) {
        uintptr_t start, end, address = (uintptr_t)pointer;
        unsigned version = atomic_load_explicit(&table.version, memory_order_acquire);
        bool found = find_piece(address, &start, &end);
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
    int result = 0;
    for (unsigned i = 0; i < table.count && result == 0; i++)
        result = fn((void *)table.at[i].start, table.at[i].end - table.at[i].start, arg);
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
