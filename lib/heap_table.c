#include "assign.h"
#include "cgroup.h"
#include "heap_state.h"
#include "options.h"
#include "pages.h"
#include "topology.h"

#include <errno.h>

_Alignas(64) struct heap_row heap_rows[IDS_MAX]; /* no line is of two heaps */
_Alignas(64) struct heap_outboxes heap_outboxes[IDS_MAX];
struct lock heap_table_lock;

static _Atomic(struct heap *) heap_table[IDS_MAX];
static _Atomic unsigned heap_made; /* ids below this may have a heap */
static _Atomic unsigned heap_count;

_Static_assert(sizeof(struct heap_row) == 1 << 9 && sizeof(struct heap_outboxes) == 1 << 9,
               "the fast path shifts ids by 9");
_Static_assert((int)IDS_MAX <= (int)HEAP_NONE, "ids fit a role");
_Static_assert(offsetof(struct superblock, word) == 0 && offsetof(struct superblock, origin) == 8,
               "the fast path knows where these are");

/* --- heaps and their locks ------------------------------------------------------------------- */

/* Now that there are two heaps to trade, and threads to wait for each other: on less than two processors'
 * time there is no use in spinning. */
static void know_the_machine(void)
{
    unsigned cpus = cgroup_mine().cpus;
    topology_find_caches();
    if (cpus < cpu.count) lock_configure(options.lock, cpus);
}

bool heap_is_alone(void) { return atomic_load_explicit(&heap_count, memory_order_relaxed) == 1; }

/* errno is kept: free may come here, and who allocates sets it himself. */
static COLD struct heap *heap_create(unsigned id)
{
    int saved = errno;
    lock_take(&heap_table_lock);
    struct heap *heap = atomic_load(&heap_table[id]);
    if (atomic_load(&heap_made) != 0) know_the_machine();
    if (heap == NULL && (heap = pages_metadata(sizeof *heap)) != NULL) {
        heap->id = (uint16_t)id;
        if (heap_is_alone()) heap_next(0)->was_alone = true;
        atomic_fetch_add(&heap_count, 1);
        atomic_store(&heap_table[id], heap);
        if (atomic_load(&heap_made) <= id) atomic_store(&heap_made, id + 1);
    }
    lock_give(&heap_table_lock);
    errno = saved;
    return heap;
}

struct heap *heap_get(unsigned id)
{
    struct heap *heap = atomic_load_explicit(&heap_table[id], memory_order_acquire);
    return LIKELY(heap != NULL) ? heap : heap_create(id);
}

struct heap *heap_next(unsigned id)
{
    unsigned made = atomic_load_explicit(&heap_made, memory_order_acquire);
    struct heap *heap = NULL;
    for (; heap == NULL && id < made; id++)
        heap = atomic_load_explicit(&heap_table[id], memory_order_acquire);
    return heap;
}

struct heap *heap_mine(void)
{
    unsigned id = cpu.ids != 0 ? cpu_id() : assign_last();
    return id != ASSIGN_NONE ? heap_get(id) : NULL;
}

struct heap *heap_lock_mine(void)
{
    struct heap *heap = heap_get(cpu.ids != 0 ? cpu_id() : assign_next());
    if (heap == NULL) return NULL;
    lock_take(&heap->lock);
    if (heap->orphan) heap->orphan = false; /* a store would be an atomic instruction each time */
    return heap;
}

/* Locks the heap that a superblock is on; NULL (nothing is locked) when that is the global heap. As in the
 * paper's free, what was read before the lock is read again under it. */
struct heap *heap_lock_of(struct superblock *sb)
{
    for (;;) {
        unsigned id = __atomic_load_n(&sb->role.heap, __ATOMIC_ACQUIRE);
        if (id >= HEAP_NONE) return NULL;
        struct heap *heap = heap_get(id);
        lock_take(&heap->lock);
        if (__atomic_load_n(&sb->role.heap, __ATOMIC_RELAXED) == id) return heap;
        lock_give(&heap->lock);
    }
}

/* --- totals and checks ----------------------------------------------------------------------- */

static void add_counts(struct heap_counts *sum, const struct heap_counts *counts)
{
    sum->slow_mallocs += counts->slow_mallocs;
    sum->slow_frees += counts->slow_frees;
    sum->remote_frees += counts->remote_frees;
    sum->transfers += counts->transfers;
}

struct heap_totals heap_totals(void)
{
    struct heap_totals totals = {0};
    struct heap *heap;
    for (unsigned id = 0; (heap = heap_next(id)) != NULL; id = heap->id + 1u) {
        totals.heaps++;
        totals.superblocks += heap->superblocks;
        add_counts(&totals.counts, &heap->counts);
    }
    return totals;
}
