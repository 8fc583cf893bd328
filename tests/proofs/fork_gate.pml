/* SPDX-License-Identifier: Apache-2.0 */
/* A fork beside two threads: one moves a superblock, passes the gate of transit (0), and takes a heap's lock within it.
 * The other gives memory back, passes the gate of arenas (1), and within it a library before libc allocates: so it passes
 * the first gate within the second, and takes the lock. The fork closes one gate after the other, waits each time until
 * all are through, takes the lock, copies, and opens. Sleep and waking are futexes.
 *
 *     mover, giver: enter, leave   gate_enter, gate_leave, leave_gate (lock.c); is_nested
 *     forker: close                gate_close_for_fork, close_and_wait; lock_for_fork; the order of heap_fork_prepare
 *     forker: open                 gate_open_after_fork, open_closed; lock_after_fork
 *     sleep                        lock_sleep: sleeps only while the word still has the value
 *
 * What holds: at the copy nobody is within a gate and no lock is held by another; and all threads come to their end
 * (an end anywhere else is an error to spin).
 * fault LOOK_FIRST: a thread looks whether the gate is closed before it counts itself
 * fault NO_WAKE: the last one that leaves does not wake the forker
 * fault LOCK_FIRST: fork takes the heap's lock before it closes the gate of arenas
 * fault ARENAS_FIRST: fork closes the gate of arenas before that of transit
 * fault NEST_WAITS: a thread within the gate of arenas waits at that of transit
 * fault OPEN_QUIETLY: the gate is opened without waking those who sleep
 */
byte passing[2], closed[2], lock;
bool within[2];
/* who sleeps on which word (a closed gate's by thread and gate); a wake clears the bits */
bool asleep_on_closed[4], asleep_on_passing[2];

inline leave(g)
{
    atomic { passing[g]--; last = (passing[g] == 0) };
    if
    :: last && closed[g] != 0 ->
#ifndef NO_WAKE
        asleep_on_passing[g] = false
#else
        skip
#endif
    :: else
    fi
}

inline enter(t, g, nested)
{
    do
#ifdef LOOK_FIRST
    :: true ->
        c = closed[g];
        if
        :: c == 0 || nested -> passing[g]++; break
        :: else
        fi;
#else
    :: true ->
        passing[g]++;
        c = closed[g];
        if
        :: c == 0 || nested -> break
        :: else
        fi;
        leave(g);
#endif
        atomic { if :: closed[g] == 1 -> closed[g] = 2 :: else fi };
        atomic { if :: closed[g] == 2 -> asleep_on_closed[2 * g + t] = true :: else fi };
        !asleep_on_closed[2 * g + t]
    od
}

inline move(t)
{
    atomic { lock == 0 -> lock = t + 1 };
    within[t] = true; /* a superblock is on no list */
    assert(lock == t + 1);
    lock = 0;
    within[t] = false
}

proctype mover()
{
    byte c;
    bool last;
    byte rounds = 2;
    do
    :: rounds > 0 ->
        enter(0, 0, false);
        move(0);
        enter(0, 1, false); /* gives what is left to the OS */
        within[0] = true;
        within[0] = false;
        leave(1);
        leave(0);
        rounds--
    :: else -> break
    od
}

proctype giver()
{
    byte c;
    bool last;
    byte rounds = 2;
    do
    :: rounds > 0 ->
        enter(1, 1, false);
#ifdef NEST_WAITS
        enter(1, 0, false);
#else
        enter(1, 0, true);
#endif
        move(1);
        leave(0);
        leave(1);
        rounds--
    :: else -> break
    od
}

inline close(g)
{
    closed[g] = 1;
    do
    :: true ->
        p = passing[g];
        if
        :: p == 0 -> break
        :: else
        fi;
        atomic { if :: passing[g] == p -> asleep_on_passing[g] = true :: else fi };
        !asleep_on_passing[g]
    od
}

inline open(g)
{
    atomic { p = closed[g]; closed[g] = 0 };
#ifndef OPEN_QUIETLY
    if
    :: p == 2 -> asleep_on_closed[2 * g] = false; asleep_on_closed[2 * g + 1] = false
    :: else
    fi
#endif
}

proctype forker()
{
    byte p, rounds = 2;
    do
    :: rounds > 0 ->
#ifdef ARENAS_FIRST
        close(1);
        close(0);
#else
        close(0);
#ifdef LOCK_FIRST
        atomic { lock == 0 -> lock = 9 };
#endif
        close(1);
#endif
#ifndef LOCK_FIRST
        atomic { lock == 0 -> lock = 9 };
#endif
        assert(!within[0] && !within[1] && lock == 9); /* the copy */
        assert(!within[0] && !within[1] && lock == 9);
        lock = 0;
        open(1);
        open(0);
        rounds--
    :: else -> break
    od
}

init { atomic { run mover(); run giver(); run forker() } }
