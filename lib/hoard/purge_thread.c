/* SPDX-License-Identifier: Apache-2.0 */
#include "hoard/purge_thread.h"

#include "arena/arena.h"
#include "arena/reclaim.h"
#include "base/options.h"
#include "base/report.h"
#include "heap/global_heap.h"
#include "heap/heap_table.h"
#include "hoard/reap_hooks.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>

enum {
    CHILD_MORE = 4 * MIB, /* a child of fork has a thread once it holds so much more */
    LITTLE = 4 * MIB      /* what a program soon has again: a quarter of a millisecond for each MiB */
};

static _Atomic bool begun, asked;
static _Atomic size_t least; /* bytes held */

static void sleep_ms(unsigned ms)
{
    struct timespec left = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};
    while (clock_nanosleep(CLOCK_MONOTONIC, 0, &left, &left) == EINTR) continue;
}

/* Returns true if ids keep blocks, heaps empty superblocks, or depots dead reaps. */
static bool keeps_any(void)
{
    if (heap_keeps_any() || global_heap_keeps_any()) return true;
    return reap_hooks_now() != NULL && reap_hooks_now()->kept() != 0;
}

/* A thread keeps a block, and then looks whether this thread sleeps. The look may pass the store on its way
 * to memory: so this thread looks again, long after the store has arrived. A fence would be a call that a
 * sandbox may forbid. */
static bool any_is_kept(void)
{
    if (keeps_any()) return true;
    sleep_ms(1);
    return keeps_any();
}

/* What is kept goes home when two looks have found it the same, and is then unused for purge_ms, of which it
 * has been idle from look to look: eight looks in that time, so that all has gone before twice the time has.
 * Little goes after half of it: within purge_ms of its last use. */
static void *purge_forever(void *unused)
{
    (void)unused;
    unsigned ms = options.purge_ms >= 8 ? options.purge_ms / 8 : 1;
    for (;;) {
        arena_wait_for_unused(any_is_kept);
        sleep_ms(ms);
        arena_note_idle_for(ms);
        if (reap_hooks_now() != NULL) reap_hooks_now()->give_idle();
        heap_send_idle_home(true);
        arena_note_idle_for(0);
        arena_purge(arena_held().unused <= LITTLE ? options.purge_ms / 2 : options.purge_ms);
    }
    return NULL;
}

/* Its stack is small, or larger if the program's thread-local storage does not leave enough of that. */
COLD void purge_thread_start(void)
{
    static const size_t stacks[] = {64 * KIB, 8 * MIB};
    pthread_t thread;
    pthread_attr_t attributes;
    sigset_t all, before;
    int error = EINVAL;
    heap_know_the_machine();
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    for (unsigned i = 0; i < 2 && error == EINVAL; i++) {
        pthread_attr_setstacksize(&attributes, stacks[i]);
        error = pthread_create(&thread, &attributes, purge_forever, NULL);
    }
    pthread_attr_destroy(&attributes);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error == 0)
        pthread_setname_np(thread, "reap-purge");
    else
        report_line("REAP_OPTIONS: no thread reap-purge: error %u of pthread_create", (unsigned)error);
}

static bool purge_thread_is_due(void)
{
    unsigned option = options.purge_thread;
    return begun && (option == PURGE_THREAD_ALWAYS || (option == PURGE_THREAD_AUTO && asked));
}

bool purge_thread_begin(void)
{
    atomic_store(&begun, true);
    return purge_thread_is_due();
}

bool purge_thread_ask(void)
{
    if (atomic_exchange(&asked, true)) return false;
    atomic_store(&least, 0);
    return purge_thread_is_due();
}

bool purge_thread_fork_child(void)
{
    atomic_store(&asked, false);
    atomic_store(&least, arena_held().now + CHILD_MORE);
    return purge_thread_is_due();
}

bool purge_thread_is_worth(void) { return arena_held().now >= atomic_load(&least); }
