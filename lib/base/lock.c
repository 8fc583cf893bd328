/* SPDX-License-Identifier: Apache-2.0 */
#include "base/lock.h"

#include "base/kernel.h"

#include <limits.h>
#include <linux/futex.h>

/* About the time of a short critical section. Longer spinning only takes processor time from the holder. */
enum { SPINS = 100 };

static enum lock_kind lock_kind = LOCK_BOTH;
static unsigned lock_spins = SPINS;

void lock_configure(enum lock_kind kind, unsigned cpus)
{
    lock_kind = kind;
    lock_spins = kind == LOCK_BLOCK ? 0 : cpus < 2 ? 1 : SPINS;
}

static void futex(_Atomic uint32_t *word, int what, uint32_t value)
{
    int saved = errno;
    KERNEL(SYS_futex, word, what | FUTEX_PRIVATE_FLAG, value, NULL, NULL, 0);
    errno = saved;
}

void lock_sleep(_Atomic uint32_t *word, uint32_t value) { futex(word, FUTEX_WAIT, value); }

void lock_wake_sleeper(_Atomic uint32_t *word) { futex(word, FUTEX_WAKE, 1); }

/* --- ranks: debug builds ------------------------------------------------------------------------ */

#ifdef REAP_DEBUG

__thread struct lock_ranks lock_ranks;

static const void *me(void) { return lock_ranks.me != NULL ? lock_ranks.me : &lock_depth; }

static uint32_t holder_me(void) { return (uint32_t)((uintptr_t)me() >> 4); }

static uint32_t holder_of(const struct lock *lock)
{
    return atomic_load_explicit(&lock->holder, memory_order_relaxed);
}

static void set_holder(struct lock *lock, uint32_t holder)
{
    atomic_store_explicit(&lock->holder, holder, memory_order_relaxed);
}

bool lock_is_mine(const struct lock *lock) { return holder_of(lock) == holder_me(); }

/* The program chooses the order in which it takes its shared reaps. */
bool lock_rank_is_next(enum lock_rank rank)
{
    if (rank == RANK_NONE) return true;
    for (unsigned r = rank == RANK_SHARED_REAP ? rank + 1u : rank; r < RANKS; r++)
        if (lock_ranks.held[r] != 0) return false;
    return true;
}

void lock_note_rank(enum lock_rank rank, int n)
{
    ASSERT(rank < RANKS && (n > 0 || lock_ranks.held[rank] != 0));
    lock_ranks.held[rank] = (uint8_t)(lock_ranks.held[rank] + n);
}

void lock_note_taken(struct lock *lock)
{
    ASSERT(holder_of(lock) == 0);
    set_holder(lock, holder_me());
    lock_note_rank((enum lock_rank)lock->rank, 1);
}

void lock_note_given(struct lock *lock)
{
    set_holder(lock, 0);
    lock_note_rank((enum lock_rank)lock->rank, -1);
}

/* A fork takes all locks, in an order of its own, and no thread is noted as their holder. */
static __thread unsigned fork_rank;

static void note_taken_by_fork(struct lock *lock)
{
    ASSERT(lock->rank >= fork_rank);
    fork_rank = lock->rank;
    lock_note_given(lock);
}

static void note_left_by_fork(struct lock *lock)
{
    fork_rank = 0;
    lock_note_taken(lock);
}

static void note_passing(const struct gate *gate, int n)
{
    lock_note_rank((enum lock_rank)gate->closers.rank, n);
}

static void note_reset(struct lock *lock)
{
    fork_rank = 0;
    set_holder(lock, 0);
}

#else

static void note_taken_by_fork(struct lock *lock) { (void)lock; }
static void note_left_by_fork(struct lock *lock) { (void)lock; }
static void note_passing(const struct gate *gate, int n) { (void)gate, (void)n; }
static void note_reset(struct lock *lock) { (void)lock; }

#endif

/* --- waiting ------------------------------------------------------------------------------------ */

/* Takes the lock with the given state if it becomes free soon. Looks less and less often, so that a holder
 * that soon wants the lock again can work in its own cache meanwhile. */
static bool spin(struct lock *lock, uint32_t state)
{
    for (unsigned i = 0, wait = 1; i < lock_spins; i += wait, wait *= 2) {
        uint32_t seen = atomic_load_explicit(&lock->state, memory_order_relaxed);
        if (seen == LOCK_FREE && atomic_compare_exchange_strong_explicit(
                                     &lock->state, &seen, state, memory_order_acquire, memory_order_relaxed))
            return true;
        for (unsigned k = 0; k < wait; k++) lock_pause();
    }
    return false;
}

void lock_pause_or_yield(unsigned n)
{
    if (n < 64)
        lock_pause();
    else
        KERNEL(SYS_sched_yield);
}

bool lock_try_for_a_while(struct lock *lock)
{
    lock_count(1);
    if (lock_is_got(lock) || spin(lock, LOCK_HELD)) {
        lock_note_taken(lock);
        return true;
    }
    lock_count(-1);
    return false;
}

/* A thread that has slept takes the lock as LOCK_WANTED, since other threads may sleep and only the state
 * tells of them: one wake-up too many costs less than one too few. */
void lock_wait(struct lock *lock)
{
    int saved = errno;
    uint32_t state = LOCK_HELD;
    while (!spin(lock, state)) {
        if (lock_kind == LOCK_SPIN) {
            KERNEL(SYS_sched_yield); /* the holder may be waiting for this CPU */
            continue;
        }
        state = LOCK_WANTED;
        if (atomic_exchange_explicit(&lock->state, LOCK_WANTED, memory_order_acquire) == LOCK_FREE) break;
        lock_sleep(&lock->state, LOCK_WANTED);
    }
    errno = saved;
    ASSERT(atomic_load(&lock->state) == LOCK_HELD || atomic_load(&lock->state) == LOCK_WANTED);
}

void lock_give_on(struct lock *lock)
{
    atomic_store(&lock->state, LOCK_FREE);
    lock_wake_sleeper(&lock->state);
}

/* --- fork ------------------------------------------------------------------------------------ */

__thread unsigned lock_depth;

bool lock_forks_alone;

void lock_for_fork(struct lock *lock)
{
    if (lock_is_for_one_thread()) return;
    lock_take(lock);
    note_taken_by_fork(lock);
    lock->forker = &lock_depth;
}

void lock_after_fork(struct lock *lock)
{
    if (lock->forker != &lock_depth) return;
    lock->forker = NULL;
    note_left_by_fork(lock);
    lock_give(lock);
}

void lock_reset(struct lock *lock)
{
    note_reset(lock);
    if (lock->forker == &lock_depth) lock_count(-1);
    if (lock->forker == NULL && atomic_load_explicit(&lock->state, memory_order_relaxed) == LOCK_FREE) return;
    lock->forker = NULL;
    atomic_store_explicit(&lock->state, LOCK_FREE, memory_order_relaxed);
}

/* --- gates ------------------------------------------------------------------------------------ */

static void leave_gate(struct gate *gate)
{
    bool last = atomic_fetch_sub(&gate->passing, 1) == 1;
    if (last && atomic_load(&gate->closed) != 0) lock_wake_sleeper(&gate->passing);
}

/* True: this thread, which is counted, has been within the gate before, or within the next one. */
static bool is_nested(const struct gate *gate) { return lock_depth >= 2u * (unsigned)gate->unit; }

/* Either this thread sees the gate closed, or the thread that closes it sees this one passing. */
void gate_enter(struct gate *gate)
{
    lock_count(gate->unit);
    if (!is_nested(gate)) lock_assert_next(&gate->closers);
    while (atomic_fetch_add(&gate->passing, 1), atomic_load(&gate->closed) != 0 && !is_nested(gate)) {
        uint32_t closed = 1;
        leave_gate(gate);
        atomic_compare_exchange_strong(&gate->closed, &closed, 2);
        lock_sleep(&gate->closed, 2);
    }
    note_passing(gate, 1);
}

void gate_leave(struct gate *gate)
{
    note_passing(gate, -1);
    leave_gate(gate);
    lock_count(-gate->unit);
}

/* These two are for the holder of gate->closers. */
static void close_and_wait(struct gate *gate)
{
    uint32_t passing;
    ASSERT(atomic_load(&gate->closed) == 0);
    atomic_store(&gate->closed, 1);
    while ((passing = atomic_load(&gate->passing)) != 0) lock_sleep(&gate->passing, passing);
}

static void open_closed(struct gate *gate)
{
    ASSERT(atomic_load(&gate->closed) != 0);
    if (atomic_exchange(&gate->closed, 0) == 2) futex(&gate->closed, FUTEX_WAKE, INT_MAX);
}

void gate_close(struct gate *gate)
{
    lock_take(&gate->closers);
    close_and_wait(gate);
}

void gate_open(struct gate *gate)
{
    ASSERT(lock_is_mine(&gate->closers));
    open_closed(gate);
    lock_give(&gate->closers);
}

void gate_close_for_fork(struct gate *gate)
{
    lock_for_fork(&gate->closers);
    if (gate->closers.forker == &lock_depth) close_and_wait(gate);
}

void gate_open_after_fork(struct gate *gate)
{
    if (gate->closers.forker == &lock_depth) open_closed(gate);
    lock_after_fork(&gate->closers);
}

void gate_reset(struct gate *gate)
{
    if (atomic_load(&gate->passing) != 0) atomic_store(&gate->passing, 0);
    if (atomic_load(&gate->closed) != 0) atomic_store(&gate->closed, 0);
    lock_reset(&gate->closers);
}
