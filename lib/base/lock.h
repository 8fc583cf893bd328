/* SPDX-License-Identifier: Apache-2.0 */
/* lock.h: a mutex that spins briefly and then sleeps, and a gate that is open mostly.
 *
 * Spin-then-block is the best of the three kinds compared for servers (McDowell, Eggers, Gribble,
 * PPoPP 2003, 2.4 and table 2). All zero is an unlocked lock; nothing is allocated and nothing has
 * to be destroyed, and a forked child may simply zero one that its parent's thread held.
 *
 * A lock that becomes free is for whoever comes first, since it would stand idle while a sleeper wakes. One
 * sleeper is woken at a time. A thread that was woken in vain LOCK_PATIENCE times waits for the lock to be
 * handed to it: then nobody else can take it.
 *
 * Rank: doc/design/concurrency.md has the order in which locks are taken, by fork too. A debug build counts
 * what a thread holds of each rank, and asserts that a thread which takes a lock, waiting for it if need be,
 * holds none of that rank or of a later one.
 *
 * A signal handler may interrupt a thread that holds locks, and fork. Then fork cannot wait for this thread,
 * nor for those that wait for it: it tries each lock for a while and does without. The parent is left as it
 * was; the child, in which the call that was interrupted goes on alone, may have lost what other threads had
 * under way. So a thread counts the locks that it holds or is about to take.
 */
#ifndef LOCK_H
#define LOCK_H

#include "base/base.h"

enum {
    LOCK_FREE,
    LOCK_HELD,
    LOCK_WANTED, /* held, and somebody sleeps */
    LOCK_HANDED  /* held by nobody yet: for one of the impatient */
};

enum { LOCK_PATIENCE = 8 /* wake-ups in vain */ };

/* In the order in which they are taken. Locks of programs are taken in an order of theirs. */
enum lock_rank {
    RANK_NONE, /* no lock of the library's: in no order */
    RANK_SHARED_REAP,
    RANK_ADOPTERS,
    RANK_CHILDREN,
    RANK_FACES,
    RANK_TRANSIT,
    RANK_HEAP_TABLE,
    RANK_HEAP,
    RANK_GLOBAL_HEAP,
    RANK_ARENAS,
    RANK_USER_MEMORY,
    RANK_GUARDED,
    RANKS
};

struct lock {
    _Atomic uint32_t state;
    _Atomic uint32_t impatient; /* threads that wait for it to be handed over */
    const void *forker;         /* the thread that took it for its fork, by its lock_depth's address */
#ifdef REAP_DEBUG
    _Atomic uint32_t holder; /* the thread that has it, by its lock_depth's address; 0: none, or a fork */
    uint8_t rank;            /* enum lock_rank */
#endif
};

/* A lock of a rank as it begins; and for one in memory that is zero. */
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

/* --- what a debug build knows of locks --------------------------------------------------------- */

/* Does this thread have the lock? Or does somebody else, or nobody? Both are true where a debug build does
 * not know: after a signal handler has forked within a call that held a lock. */
bool lock_is_mine(const struct lock *lock);
bool lock_is_not_mine(const struct lock *lock);

/* Does this thread hold nothing of this rank, and nothing of a later one? */
bool lock_rank_is_next(enum lock_rank rank);

/* Is it unknown who has what? */
bool lock_ranks_are_lost(void);

#ifdef REAP_DEBUG

/* Of a thread; tests in which a thread acts as several exchange it. */
struct lock_ranks {
    const void *me; /* who it is to locks; NULL: lock_depth's address */
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

/* What may be waited for: a lock, or a gate by its lock. */
static inline void lock_assert_next(const struct lock *lock)
{
#ifdef REAP_DEBUG
    ASSERT(lock_rank_is_next((enum lock_rank)lock->rank));
#else
    (void)lock;
#endif
}

/* How contended locks wait, for the whole process; LOCK_BOTH before it is called. On one CPU there is no
 * use in spinning, so callers pass the number that they may run on. */
void lock_configure(enum lock_kind kind, unsigned cpus);

/* Sleeps while *word has the value, or less long; wakes who sleeps so. errno is kept. */
void lock_sleep(_Atomic uint32_t *word, uint32_t value);
void lock_wake_sleeper(_Atomic uint32_t *word);

/* For each turn of a loop that waits for another processor. (isb takes about as long as x86-64's pause; yield
 * takes no time.) */
static inline void lock_pause(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb");
#endif
}

void lock_wait(struct lock *lock);
void lock_give_on(struct lock *lock); /* one that somebody waits for */

/* Seen in this order by a handler in this thread. */
static inline void lock_count(int n)
{
    atomic_signal_fence(memory_order_seq_cst);
    lock_depth += (unsigned)n;
    ASSERT((int16_t)lock_depth >= 0); /* no more was given than taken */
    atomic_signal_fence(memory_order_seq_cst);
}

/* Sequentially consistent, as giving is: of one that leaves work for the holder, and then fails to get the
 * lock, and of one that gives it back, and then looks for work, one sees the other. */
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

/* In lock_depth: a gate that the thread passes. */
enum { LOCK_GATE = 1 << 16 };

/* How many locks this thread has, or is about to take; gates are none. */
static inline unsigned lock_held(void) { return lock_depth & (LOCK_GATE - 1); }

/* Spins for it, but does not sleep. */
bool lock_try_for_a_while(struct lock *lock);

static inline void lock_give(struct lock *lock)
{
    uint32_t expected = LOCK_HELD;
    ASSERT(lock_is_mine(lock));
    lock_note_given(lock);
    if (!atomic_compare_exchange_strong(&lock->state, &expected, LOCK_FREE)) lock_give_on(lock);
    lock_count(-1);
}

/* Around fork: lock_fork_begin, then lock_for_fork on every lock in order of rank; afterwards, in the parent
 * lock_after_fork on each, in the child lock_reset; lock_fork_end in both. */
void lock_fork_begin(void);
void lock_for_fork(struct lock *lock);
void lock_after_fork(struct lock *lock);
void lock_reset(struct lock *lock);
void lock_fork_end(void);

/* One thread less that waits, passes or looks; how many there were. In the child of a fork that has
 * interrupted one, nobody is counted. */
static inline uint32_t lock_uncount(_Atomic uint32_t *threads)
{
    uint32_t seen = atomic_load(threads);
    while (seen != 0 && !atomic_compare_exchange_weak(threads, &seen, seen - 1)) continue;
    return seen;
}

/* --- gates ------------------------------------------------------------------------------------ */

/* Many threads may pass at once, for a system call or two each, and wait for nobody; who closes the gate
 * waits until they are through, and those that come then wait until it is opened. A thread that passes takes
 * no lock. */
struct gate {
    _Atomic uint32_t passing; /* threads */
    _Atomic uint32_t closed;  /* 2: and somebody waits */
    struct lock closers;
};

#define GATE_OF_RANK(r)                                                                                      \
    {                                                                                                        \
        .closers = LOCK_OF_RANK(r)                                                                           \
    }

void gate_enter(struct gate *gate);
void gate_leave(struct gate *gate);
void gate_close(struct gate *gate);
void gate_open(struct gate *gate);

/* The same around fork, as for locks. */
void gate_close_for_fork(struct gate *gate);
void gate_open_after_fork(struct gate *gate);
void gate_reset(struct gate *gate);

#endif
