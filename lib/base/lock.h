/* SPDX-License-Identifier: Apache-2.0 */
/* lock.h: a mutex that spins briefly and then sleeps, and a gate that is mostly open.
 *
 * Spin-then-block is the best of the three kinds compared for servers (McDowell, Eggers, Gribble, PPoPP 2003,
 * 2.4 and table 2). A lock that is all zero is unlocked. A forked child may simply zero a lock that a thread
 * of its parent held. Any thread may take a lock that becomes free; one sleeper is woken at a time.
 *
 * Rank: doc/design/concurrency.md has the order in which threads, and fork, take locks. A debug build asserts
 * that a thread which may wait for a lock holds none of that rank or of a later one.
 *
 * Fork takes all locks but those of shared reaps. A signal handler must not fork: it may have interrupted a
 * thread that holds one. lock_depth counts the locks that a thread holds or is about to take, and the gates
 * that it passes. A thread that forks holds no lock but those of shared reaps, whose function it may be in.
 */
#ifndef LOCK_H
#define LOCK_H

#include <sys/single_threaded.h>

#include "base/base.h"

enum {
    LOCK_FREE,
    LOCK_HELD,
    LOCK_WANTED /* held, and a thread sleeps */
};

/* In the order in which threads take them. A program chooses the order of its shared reaps. */
enum lock_rank {
    RANK_NONE, /* not a lock of the library: it has no place in the order */
    RANK_SHARED_REAP,
    RANK_ADOPTERS,
    RANK_CHILDREN,
    RANK_FACES,
    RANK_TRANSIT,
    RANK_ARENAS,
    RANK_HEAP_TABLE,
    RANK_HEAP,
    RANK_GLOBAL_HEAP,
    RANK_USER_MEMORY,
    RANK_APART,
    RANKS
};

struct lock {
    _Atomic uint32_t state;
    const void *forker; /* the thread whose fork holds it, by the address of its lock_depth; or NULL */
#ifdef REAP_DEBUG
    _Atomic uint32_t holder; /* its thread, by the address of its lock_depth; 0: none, or a fork */
    uint8_t rank;            /* enum lock_rank */
#endif
};

/* LOCK_OF_RANK initializes a lock of a rank. LOCK_SET_RANK sets the rank of a lock in zeroed memory. */
#ifdef REAP_DEBUG
#define LOCK_OF_RANK(r)                                                                                      \
    {                                                                                                        \
        .rank = (r)                                                                                          \
    }
#define LOCK_SET_RANK(lock, r) ((lock)->rank = (r))
#else
#define LOCK_OF_RANK(r)                                                                                      \
    {                                                                                                        \
        0                                                                                                    \
    }
#define LOCK_SET_RANK(lock, r) ((void)0)
#endif

extern HIDDEN __thread unsigned lock_depth __attribute__((tls_model("initial-exec")));

enum lock_kind { LOCK_BOTH, LOCK_SPIN, LOCK_BLOCK };

/* --- ranks and holders: debug builds ------------------------------------------------------------ */

/* For assertions: returns true if this thread holds the lock. */
bool lock_is_mine(const struct lock *lock);

/* Returns true if this thread holds no lock of this rank or of a later one. */
bool lock_rank_is_next(enum lock_rank rank);

#ifdef REAP_DEBUG

/* The locks that a thread holds, by rank. Tests exchange it to let one thread act as several. */
struct lock_ranks {
    const void *me; /* identifies the thread to locks; NULL: the address of lock_depth is used */
    uint8_t held[RANKS];
};
extern HIDDEN __thread struct lock_ranks lock_ranks __attribute__((tls_model("initial-exec")));

void lock_note_taken(struct lock *lock);
void lock_note_given(struct lock *lock);
void lock_note_rank(enum lock_rank rank, int n);

#else

static inline void lock_note_taken(struct lock *lock) { (void)lock; }
static inline void lock_note_given(struct lock *lock) { (void)lock; }
static inline void lock_note_rank(enum lock_rank rank, int n) { (void)rank, (void)n; }

#endif

/* Asserts that this thread may wait for the lock, or for the gate that the lock belongs to. */
static inline void lock_assert_next(const struct lock *lock)
{
#ifdef REAP_DEBUG
    ASSERT(lock_rank_is_next((enum lock_rank)lock->rank));
#else
    (void)lock;
#endif
}

/* Sets how all contended locks of the process wait; before this call it is LOCK_BOTH. `cpus` is the number of
 * CPUs that the process may run on: on one CPU spinning is of no use. */
void lock_configure(enum lock_kind kind, unsigned cpus);

/* lock_sleep sleeps while *word has the value, or less long; lock_wake_sleeper wakes one. errno is kept. */
void lock_sleep(_Atomic uint32_t *word, uint32_t value);
void lock_wake_sleeper(_Atomic uint32_t *word);

/* To be called in each turn of a loop that waits for another processor. (isb takes about as long as x86-64's
 * pause; yield takes no time.) */
static inline void lock_pause(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb");
#endif
}

/* The same, for the nth turn: from the 64th on the thread offers its processor. */
void lock_pause_or_yield(unsigned n);

void lock_wait(struct lock *lock);
void lock_give_on(struct lock *lock); /* gives back a lock that a thread waits for */

static inline void lock_count(int n)
{
    lock_depth += (unsigned)n;
    ASSERT((int16_t)lock_depth >= 0); /* the thread gives back only locks that it has taken */
}

/* Takes the lock if it is free. Taking and giving are sequentially consistent. One thread leaves work for the
 * holder, and then fails to get the lock. The holder gives it back, and then looks for work. So either the
 * holder sees the work, or the other thread gets the lock. */
static inline bool lock_is_got(struct lock *lock)
{
    uint32_t expected = LOCK_FREE;
    return atomic_compare_exchange_strong(&lock->state, &expected, LOCK_HELD);
}

static inline bool lock_try(struct lock *lock)
{
    lock_count(1);
    if (lock_is_got(lock)) {
        lock_note_taken(lock);
        return true;
    }
    lock_count(-1);
    return false;
}

static inline void lock_take(struct lock *lock)
{
    lock_assert_next(lock);
    lock_count(1);
    if (!lock_is_got(lock)) lock_wait(lock);
    lock_note_taken(lock);
}

/* What each passage of a gate adds to lock_depth: of the first gate in order of rank, and of the second. */
enum { LOCK_GATE = 1 << 16, LOCK_GATE_2 = 1 << 24 };

/* The number of locks that this thread holds or is about to take. Gates do not count. */
static inline unsigned lock_held(void) { return lock_depth & (LOCK_GATE - 1); }

/* Spins until it has the lock, but does not sleep. false: the lock was not free in that time. */
bool lock_try_for_a_while(struct lock *lock);

static inline void lock_give(struct lock *lock)
{
    uint32_t expected = LOCK_HELD;
    ASSERT(lock_is_mine(lock));
    lock_note_given(lock);
    if (!atomic_compare_exchange_strong(&lock->state, &expected, LOCK_FREE)) lock_give_on(lock);
    lock_count(-1);
}

/* Around fork: lock_for_fork on each lock in order of rank. Afterwards the parent calls lock_after_fork on
 * each lock, and the child lock_reset, also on locks that other threads of the parent held. In a process of
 * one thread no lock is taken, and none that is free is written to: the page of each would then be the
 * parent's and each child's own. But a handler that a program has registered before the library runs after
 * the library's, and may start a thread. So the first fork takes locks: it shows whether there is such one.
 */
extern HIDDEN bool lock_forks_alone; /* in a fork before this one no handler has started a thread */
static inline bool lock_is_for_one_thread(void) { return __libc_single_threaded && lock_forks_alone; }
void lock_for_fork(struct lock *lock);
void lock_after_fork(struct lock *lock);
void lock_reset(struct lock *lock);

/* --- gates ------------------------------------------------------------------------------------ */

/* Many threads may pass a gate at once, for a system call or two each. They wait for nobody and take no lock.
 * A thread that closes the gate waits until they have left it. Threads that come later wait until it is
 * opened.
 *
 * A system call may be a function of a library that calls malloc, which comes to a gate again. So a thread
 * within a gate passes it, and those of earlier rank, also when they are closed: a fork, which closes both
 * before it takes the locks of heaps, waits for that thread. */
struct gate {
    _Atomic uint32_t passing; /* threads */
    _Atomic uint32_t closed;  /* 1: closed; 2: and a thread waits until it is opened */
    int unit;                 /* LOCK_GATE or LOCK_GATE_2 */
    struct lock closers;
};

#define GATE_OF_RANK(r, u)                                                                                   \
    {                                                                                                        \
        .unit = (u), .closers = LOCK_OF_RANK(r)                                                              \
    }

void gate_enter(struct gate *gate);
void gate_leave(struct gate *gate);
void gate_close(struct gate *gate);
void gate_open(struct gate *gate);

/* Around fork: close before it, open in the parent, reset in the child. */
void gate_close_for_fork(struct gate *gate);
void gate_open_after_fork(struct gate *gate);
void gate_reset(struct gate *gate);

#endif
