/* SPDX-License-Identifier: Apache-2.0 */
#include "hoard/init.h"

#include "arena/arena.h"
#include "base/kernel.h"
#include "base/lock.h"
#include "base/options.h"
#include "base/report.h"
#include "heap/heap.h"
#include "heap/heap_path.h"
#include "heap/heap_policy.h"
#include "hoard/hardened.h"
#include "hoard/purge_thread.h"
#include "hoard/reap_hooks.h"
#include "hoard/redirect.h"
#include "hoard/usage.h"
#include "hoard/user_memory.h"
#include "os/pages.h"
#include "os/rseq.h"
#include "os/topology.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/single_threaded.h>
#include <unistd.h>

static _Atomic pid_t starter;            /* the process whose thread is in start */
static _Atomic(const void *) starter_is; /* that thread, by the address of its lock_depth */
static _Atomic bool started;
static bool late_is_done;             /* start_late was called */
static _Atomic bool registered;       /* the fork handlers */
static _Atomic pid_t registering;     /* the process whose thread is about it, or was */
static _Atomic(void (*)(void)) later; /* what the next slow path calls; NULL: nothing */
_Atomic unsigned hoard_due;

/* libc's lock of the list of streams, which is recursive. */
void _IO_list_lock(void) __attribute__((weak));
void _IO_list_unlock(void) __attribute__((weak));
void _IO_list_resetlock(void) __attribute__((weak));
static bool streams_locked; /* by the forking thread */

/* fork in libc takes this lock after the handlers have run. Its holder, as in fflush(NULL), may wait for a
 * thread in getline, which resizes its line and so may wait for malloc's locks. So where malloc is this
 * library's, this lock comes before them. In a process of one thread libc takes no lock, and resets none in
 * the child. */
static void streams_fork_prepare(void)
{
    if (!redirect_on || __libc_single_threaded || _IO_list_lock == NULL) return;
    _IO_list_lock();
    streams_locked = true;
}

static void streams_fork_parent(void)
{
    if (!streams_locked) return;
    streams_locked = false;
    _IO_list_unlock();
}

/* fork in libc resets the lock, but not if another handler has started the second thread. */
static void streams_fork_child(void)
{
    if (streams_locked) _IO_list_resetlock();
    streams_locked = false;
}

/* Functions of shared reaps may close a stream, so their locks come before the streams'. */
static void fork_prepare(void)
{
    if (reap_hooks != NULL) reap_hooks->fork_prepare();
    streams_fork_prepare();
    heap_fork_prepare();
    user_memory_fork_prepare();
}

static void fork_parent(void)
{
    user_memory_fork_parent();
    heap_fork_parent();
    streams_fork_parent();
    if (reap_hooks != NULL) reap_hooks->fork_parent();
    if (UNLIKELY(!lock_forks_alone)) lock_forks_alone = __libc_single_threaded;
}

/* This handler runs only if start_late had registered it, and start_all was done by then. */
static void fork_child(void)
{
    registered = true;
    process_generation++;
    atomic_store(&started, true);
    atomic_store(&later, NULL);
    user_memory_fork_child();
    heap_fork_child();
    streams_fork_child();
    if (reap_hooks != NULL) {
        reap_hooks->fork_child();
        reap_hooks->take_along();
    }
    atomic_store(&hoard_due, purge_thread_fork_child() ? HOARD_DUE_THREAD : 0);
}

/* It may run twice. A malloc of a library that stands before libc comes here in the midst of it, and finds no
 * size classes yet: then its object is a large one. */
static void start_all(void)
{
    options_read();
    pages_find_clock();
    if (redirect_has_malloc != NULL) arena_name = PAGES_HEAP;
    superblock_init();
    rseq_init(options.heaps == HEAPS_CPU, options.path == PATH_LOCKED || heap_policy_needs_locks());
    topology_init(options.topology, options.heaps == HEAPS_CORE);
    heap_policy_init();
    lock_configure(options.lock, cpu.count);
    hardened_start();
    sizeclass_init();
    if (heap_path_is_locked() || hardened_level != 0) return;
    rseq_fence(); /* rseq_init's came before the classes, and who sees the fast table must see them */
    sizeclass_open_fast();
}

static void report_at_exit(void)
{
    report_end();
    usage_report(NULL);
}

/* libc may have no memory for the handlers. Then the next slow path tries again. Who comes here meanwhile, as
 * by a malloc of libc's, does nothing. */
static void register_handlers(void)
{
    int saved = errno;
    pid_t me = (pid_t)KERNEL(SYS_getpid), other = atomic_load(&registering);
    if (other == me || !atomic_compare_exchange_strong(&registering, &other, me)) return;
    registered = pthread_atfork(fork_prepare, fork_parent, fork_child) == 0;
    if (!registered) {
        registering = 0;
        hoard_set_due(HOARD_DUE_HANDLERS);
    }
    errno = saved;
}

static void start_late(void)
{
    late_is_done = true;
    register_handlers();
    if (purge_thread_begin()) hoard_set_due(HOARD_DUE_THREAD);
    if (options.stats || options.leaks) report_keep_stderr();
    if (options.stats) atexit(report_at_exit);
}

/* ld.so calls a preloaded malloc before libc's own start-up code has run, which sets environ. Then
 * libreap-malloc's constructor does the rest. */
static void start_here(void)
{
    extern char **environ;
    atomic_store(&starter_is, &lock_depth);
    start_all();
    if (environ != NULL) start_late();
    atomic_store(&started, true);
}

/* There is no lock: a child whose parent was just starting in another thread has to start by itself, unless
 * the fork handlers were registered by then and have run. Registering them may call malloc, which comes here
 * again in the same thread. */
static COLD void start_or_wait(void)
{
    pid_t me = (pid_t)KERNEL(SYS_getpid), other = 0;
    while (!atomic_load(&started)) {
        if (atomic_compare_exchange_strong(&starter, &other, me))
            start_here();
        else if (other == me && atomic_load(&starter_is) == &lock_depth)
            return;
        else if (other == me)
            KERNEL(SYS_sched_yield);
        if (other == me) other = 0;
    }
}

void hoard_start(void)
{
    if (UNLIKELY(!atomic_load_explicit(&started, memory_order_acquire))) start_or_wait();
}

void hoard_start_late(void)
{
    hoard_start();
    if (!late_is_done) start_late();
}

bool hoard_handles_forks(void)
{
    hoard_start();
    if (UNLIKELY(!registered)) hoard_do_what_is_due();
    while (!registered && registering == (pid_t)KERNEL(SYS_getpid) && !kernel_in_libc)
        KERNEL(SYS_sched_yield);
    return registered;
}

void hoard_start_later(void (*fn)(void))
{
    atomic_store(&later, fn);
    if (fn != NULL) hoard_set_due(HOARD_DUE_CALL);
}

void hoard_set_due(enum hoard_due what) { atomic_fetch_or(&hoard_due, what); }

/* What was due is not any more, so what allocates meanwhile does not do it again. */
static bool take_due(enum hoard_due what)
{
    return (atomic_fetch_and(&hoard_due, ~(unsigned)what) & what) != 0;
}

static void do_what_is_due(void)
{
    take_due(HOARD_DUE_HANDLERS);
    if (!registered) register_handlers();
    if (!registered) return;
    if (purge_thread_is_worth() && take_due(HOARD_DUE_THREAD)) purge_thread_start();
    void (*fn)(void) = take_due(HOARD_DUE_CALL) ? atomic_exchange(&later, NULL) : NULL;
    if (fn != NULL) fn();
}

/* The thread may be in a reap that is asking for memory. */
COLD void hoard_do_what_is_due(void)
{
    int saved = errno;
    bool nested = kernel_in_libc;
    kernel_in_libc = true;
    do_what_is_due();
    kernel_in_libc = nested;
    errno = saved;
}
