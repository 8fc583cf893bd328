/* SPDX-License-Identifier: Apache-2.0 */
#include "heap/heap_table.h"

#include "base/options.h"
#include "os/cgroup.h"
#include "os/metadata.h"
#include "os/topology.h"

#include <errno.h>

SPARSE_FIRST _Alignas(64) struct heap_row heap_rows[IDS_MAX]; /* no two heaps share a cache line */
SPARSE _Alignas(64) struct heap_batches heap_batches[IDS_MAX];
struct lock heap_table_lock = LOCK_OF_RANK(RANK_HEAP_TABLE);
struct gate heap_transit = GATE_OF_RANK(RANK_TRANSIT, LOCK_GATE);

static SPARSE_ONCE_START _Atomic(struct heap *) heap_table[IDS_MAX];
static _Atomic unsigned heap_made; /* ids below this may have a heap */
static _Atomic unsigned heap_count;

_Static_assert(sizeof(struct heap_row) == 1 << 9 && sizeof(struct heap_batches) == 1 << 9,
               "the fast path shifts ids by 9");
_Static_assert((int)IDS_MAX <= (int)HEAP_NONE, "ids fit a role");
_Static_assert(offsetof(struct superblock, word) == 0 && offsetof(struct superblock, origin) == 8,
               "the fast path knows where these are");

/* Called when there are two heaps that trade, and threads that wait for each other. With less than the time
 * of two processors, spinning is of no use. The calls read files, so no lock is held. */
static unsigned know_the_machine(void)
{
    unsigned cpus = cgroup_mine().cpus;
    if (cpus < cpu.count) lock_configure(options.lock, cpus);
    return topology_find_caches();
}

void heap_know_the_machine(void)
{
    unsigned caches = know_the_machine();
    lock_take(&heap_table_lock);
    topology_use_caches(caches);
    lock_give(&heap_table_lock);
}

bool heap_is_alone(void) { return atomic_load_explicit(&heap_count, memory_order_relaxed) == 1; }

/* Memory for a heap that another thread has made first; it serves for the next heap. */
static _Atomic(struct heap *) heap_memory;

static struct heap *enter_heap(unsigned id, struct heap *memory)
{
    ASSERT(lock_is_mine(&heap_table_lock) && atomic_load(&heap_table[id]) == NULL);
    memory->id = (uint16_t)id;
    LOCK_SET_RANK(&memory->lock, RANK_HEAP);
    if (heap_is_alone()) {
        heap_next(0)->was_alone = true;
        arena_begin_sharing();
    }
    atomic_fetch_add(&heap_count, 1);
    atomic_store(&heap_table[id], memory);
    if (atomic_load(&heap_made) <= id) atomic_store(&heap_made, id + 1);
    return memory;
}

/* Keeps errno, as free must. The lock keeps out fork, and other threads of the same id. */
static COLD struct heap *heap_create(unsigned id)
{
    ASSERT(id < IDS_MAX);
    int saved = errno;
    unsigned caches = atomic_load(&heap_made) != 0 ? know_the_machine() : 0;
    struct heap *memory = atomic_exchange(&heap_memory, NULL);
    if (memory == NULL) memory = metadata_alloc(sizeof *memory);
    lock_take(&heap_table_lock);
    topology_use_caches(caches);
    struct heap *heap = atomic_load(&heap_table[id]);
    if (heap == NULL && memory != NULL) {
        heap = enter_heap(id, memory);
        memory = NULL;
    }
    lock_give(&heap_table_lock);
    if (memory != NULL) atomic_store(&heap_memory, memory);
    errno = saved;
    return heap;
}

struct heap *heap_get(unsigned id)
{
    ASSERT(id < IDS_MAX);
    struct heap *heap = atomic_load_explicit(&heap_table[id], memory_order_acquire);
    return LIKELY(heap != NULL) ? heap : heap_create(id);
}

struct heap *heap_next(unsigned id)
{
    unsigned made = atomic_load_explicit(&heap_made, memory_order_acquire);
    struct heap *heap = NULL;
    for (; heap == NULL && id < made; id++)
        heap = atomic_load_explicit(&heap_table[id], memory_order_acquire);
    ASSERT(heap == NULL || heap->id + 1u == id);
    return heap;
}

struct heap *heap_mine(void)
{
    unsigned id = heap_path_id();
    return id != HEAP_POLICY_NONE ? heap_get(id) : NULL;
}

struct heap *heap_for_malloc(void) { return heap_get(heap_path_id_for_malloc()); }

bool heap_lock_soon(struct heap *heap)
{
    if (!heap_path_lock_soon(&heap->lock, &heap->detours, HEAP_DETOURS)) return false;
    if (heap->orphan) heap->orphan = false;
    ASSERT(lock_is_mine(&heap->lock));
    return true;
}

/* As in the paper's free, the role is read before the lock is taken, and again under it. */
struct heap *heap_lock_of(struct superblock *sb)
{
    for (;;) {
        unsigned id = superblock_role(sb).heap;
        if (id >= HEAP_NONE) return NULL;
        struct heap *heap = heap_get(id);
        lock_take(&heap->lock);
        if (superblock_role(sb).heap == id) return heap;
        lock_give(&heap->lock);
    }
}

struct heap_totals heap_totals(void)
{
    struct heap_totals totals = {0};
    for (struct heap *heap = heap_next(0); heap != NULL; heap = heap_next(heap->id + 1u)) {
        totals.heaps++;
        totals.slots += heap->slots;
        totals.counts.slow_mallocs += heap->counts.slow_mallocs;
        totals.counts.slow_frees += heap->counts.slow_frees;
        totals.counts.remote_frees += heap->counts.remote_frees;
        totals.counts.transfers += heap->counts.transfers;
    }
    return totals;
}
