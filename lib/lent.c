/* lent.c: memory of the user that reaps live in. */
#include "lent.h"

#include "apart_map.h"
#include "lock.h"

_Atomic unsigned lent_any;

static struct {
    struct lock lock;
    _Atomic unsigned count;
    _Atomic unsigned version; /* odd while the table changes */
    struct {
        _Atomic uintptr_t start, end;
    } at[LENT_MAX];
} lent;

static void begin_change(void)
{
    lock_take(&lent.lock);
    atomic_store_explicit(&lent.version, lent.version | 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
}

static void make_even(void)
{
    atomic_store_explicit(&lent.version, (lent.version | 1) + 1, memory_order_release);
}

static void end_change(void)
{
    make_even();
    lock_give(&lent.lock);
}

/* The first piece that ends behind an address; count when there is none. */
static unsigned search(uintptr_t address, unsigned count)
{
    unsigned low = 0, high = count;
    while (low < high) {
        unsigned middle = (low + high) / 2;
        if (atomic_load_explicit(&lent.at[middle].end, memory_order_relaxed) > address)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static void copy(unsigned to, unsigned from)
{
    atomic_store_explicit(&lent.at[to].start, lent.at[from].start, memory_order_relaxed);
    atomic_store_explicit(&lent.at[to].end, lent.at[from].end, memory_order_relaxed);
}

bool lent_add(void *start, size_t size)
{
    begin_change();
    unsigned count = lent.count, i = search((uintptr_t)start, count);
    bool room = count < LENT_MAX;
    if (room) {
        for (unsigned k = count; k > i; k--) copy(k, k - 1);
        atomic_store_explicit(&lent.at[i].start, (uintptr_t)start, memory_order_relaxed);
        atomic_store_explicit(&lent.at[i].end, (uintptr_t)start + size, memory_order_relaxed);
        atomic_store_explicit(&lent.count, count + 1, memory_order_relaxed);
        atomic_fetch_add_explicit(&lent_any, 1, memory_order_relaxed);
    }
    end_change();
    return room;
}

void lent_remove(const void *start)
{
    begin_change();
    unsigned count = lent.count;
    for (unsigned k = search((uintptr_t)start, count) + 1; k < count; k++) copy(k - 1, k);
    atomic_store_explicit(&lent.count, count - 1, memory_order_relaxed);
    atomic_fetch_sub_explicit(&lent_any, 1, memory_order_relaxed);
    end_change();
}

void *lent_search(const void *pointer, size_t *size)
{
    for (;;) {
        unsigned version = atomic_load_explicit(&lent.version, memory_order_acquire);
        unsigned count = atomic_load_explicit(&lent.count, memory_order_relaxed);
        unsigned i = search((uintptr_t)pointer, count);
        uintptr_t start = atomic_load_explicit(&lent.at[i % LENT_MAX].start, memory_order_relaxed);
        uintptr_t end = atomic_load_explicit(&lent.at[i % LENT_MAX].end, memory_order_relaxed);
        atomic_thread_fence(memory_order_acquire);
        if (version % 2 || version != atomic_load_explicit(&lent.version, memory_order_relaxed)) continue;
        if (i == count || (uintptr_t)pointer < start) return apart_map_find(pointer, size);
        if (size != NULL) *size = end - start;
        return (void *)start;
    }
}

void lent_freeze(void) { lock_take(&lent.lock); }

void lent_thaw(void) { lock_give(&lent.lock); }

int lent_walk(int (*fn)(void *start, size_t size, void *arg), void *arg)
{
    int result = 0;
    for (unsigned i = 0; i < lent.count && result == 0; i++)
        result = fn((void *)lent.at[i].start, lent.at[i].end - lent.at[i].start, arg);
    return result;
}

void lent_begin_apart(void) { atomic_fetch_add_explicit(&lent_any, 1, memory_order_relaxed); }

void lent_fork_prepare(void)
{
    lock_for_fork(&lent.lock);
    apart_map_fork_prepare();
}

void lent_fork_parent(void)
{
    apart_map_fork_parent();
    lock_after_fork(&lent.lock);
}

/* A handler may have forked within a change (lock.h), which goes on when the handler returns. What that looks
 * for meanwhile it may not find, but it must not wait for the end of the change. */
void lent_fork_child(void)
{
    apart_map_fork_child();
    make_even();
    lock_reset(&lent.lock);
}
