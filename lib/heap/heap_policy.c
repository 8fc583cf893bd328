/* SPDX-License-Identifier: Apache-2.0 */
#include "heap/heap_policy.h"

#include "base/kernel.h"
#include "base/options.h"
#include "os/rseq.h"
#include "os/topology.h"

#include <errno.h>
#include <pthread.h>

__thread uint16_t heap_of_thread;
static __thread uint32_t left
    __attribute__((tls_model("initial-exec"))); /* allocations until the next heap */

_Static_assert((int)TOPOLOGY_CPUS <= (int)IDS_MAX, "a core's number is a heap's id");

static unsigned use_id(unsigned id)
{
    ASSERT(id < IDS_MAX);
    heap_of_thread = (uint16_t)(id + 1);
    return id;
}

static unsigned next_in_turn(void)
{
    static _Atomic unsigned turn;
    unsigned heaps = 2 * cpu.count < IDS_MAX ? 2 * cpu.count : IDS_MAX;
    return atomic_fetch_add_explicit(&turn, 1, memory_order_relaxed) % heaps;
}

static unsigned dealt_for(unsigned allocations)
{
    if (left == 0) {
        use_id(next_in_turn());
        left = allocations;
    }
    ASSERT(left != 0 && heap_of_thread != 0);
    left--;
    return heap_of_thread - 1u;
}

/* A thread holds the robust mutex of its heap to its very end. The kernel marks a mutex that a thread leaves
 * locked, after all destructors, however the thread ended. So the library needs no hook at the end of a
 * thread, after which other destructors would still allocate, and no call that allocates itself. No thread
 * has ever taken an id from `used` on. */
enum { COMMON = 0 };

static SPARSE pthread_mutex_t owners[IDS_MAX];
static _Atomic unsigned used;

static void make_owners(unsigned end)
{
    pthread_mutexattr_t robust;
    pthread_mutexattr_init(&robust);
    pthread_mutexattr_setrobust(&robust, PTHREAD_MUTEX_ROBUST);
    for (unsigned id = 0; id < end; id++) pthread_mutex_init(&owners[id], &robust);
    pthread_mutexattr_destroy(&robust);
}

/* Takes an id that no thread has, or whose thread has ended; *ended tells which. */
static bool take_id(unsigned id, bool *ended)
{
    ASSERT(options.heaps == HEAPS_THREAD && id < IDS_MAX);
    int result = pthread_mutex_trylock(&owners[id]);
    *ended = result == EOWNERDEAD;
    if (*ended) pthread_mutex_consistent(&owners[id]);
    return result == 0 || *ended;
}

/* Takes the least id that is free; COMMON if there is none. */
static unsigned claim_id(void)
{
    bool ended;
    for (unsigned id = COMMON + 1; id < IDS_MAX; id++) {
        if (!take_id(id, &ended)) continue;
        unsigned seen = atomic_load(&used);
        while (seen <= id && !atomic_compare_exchange_weak(&used, &seen, id + 1)) continue;
        ASSERT(atomic_load(&used) > id);
        return id;
    }
    return COMMON;
}

/* A malloc of who stands between this and libc's mutexes comes from the common heap. */
static unsigned own_id(void)
{
    if (heap_of_thread == 0) {
        use_id(COMMON);
        use_id(claim_id());
    }
    return heap_of_thread - 1u;
}

bool heap_policy_has_ended(unsigned id)
{
    bool ended;
    if (options.heaps != HEAPS_THREAD || id == COMMON || kernel_in_libc) return false;
    kernel_in_libc = true; /* a malloc of who stands between does not come here again */
    bool taken = take_id(id, &ended);
    if (taken) pthread_mutex_unlock(&owners[id]);
    kernel_in_libc = false;
    return taken && ended;
}

bool heap_policy_needs_locks(void) { return options.heaps != HEAPS_CID && options.heaps != HEAPS_CPU; }

void heap_policy_init(void)
{
    if (options.heaps == HEAPS_THREAD) make_owners(IDS_MAX);
}

unsigned heap_policy_next(void)
{
    switch (options.heaps) {
    case HEAPS_CORE: return use_id(topology_core(rseq_cpu_now()));
    case HEAPS_THREAD: return own_id();
    case HEAPS_DYNAMIC: return dealt_for(options.dynamic);
    case HEAPS_ROUNDROBIN: return dealt_for(1);
    case HEAPS_SINGLE: return use_id(0);
    default: return heap_of_thread != 0 ? heap_of_thread - 1u : use_id(next_in_turn());
    }
}

unsigned heap_policy_last(void)
{
    return heap_of_thread != 0 ? heap_of_thread - 1u : (unsigned)HEAP_POLICY_NONE;
}

/* The kernel does not know the mutexes of a child, so the child makes them again. */
void heap_policy_fork_child(void)
{
    bool ended;
    if (options.heaps != HEAPS_THREAD) return;
    make_owners(atomic_load(&used));
    if (heap_of_thread > COMMON + 1) take_id(heap_of_thread - 1u, &ended);
}
