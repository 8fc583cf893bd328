/* SPDX-License-Identifier: Apache-2.0 */
/* A fork beside two threads that move superblocks: they pass the gate of transit, and take a heap's lock within it. The
 * fork closes the gate, waits until all are through, takes the lock, copies, and opens. Sleep and waking are futexes.
 *
 *     pass: enter, leave     gate_enter, gate_leave, leave_gate (lock.c)
 *     forker: close          gate_close_for_fork, close_and_wait; lock_for_fork; the order of heap_fork_prepare
 *     forker: open           gate_open_after_fork, open_closed; lock_after_fork
 *     sleep                  lock_sleep: sleeps only while the word still has the value
 *
 * What holds: at the copy nobody is in transit and no lock is held by another; and all threads come to their end
 * (an end anywhere else is an error to spin).
 * fault LOOK_FIRST: a thread looks whether the gate is closed before it counts itself
 * fault NO_WAKE: the last one that leaves does not wake the forker
 * fault LOCK_FIRST: fork takes the heap's lock before it closes the gate
 * fault OPEN_QUIETLY: the gate is opened without waking those who sleep
 */
byte passing, closed, lock;
bool transit[2];
/* who sleeps on which word; a wake clears the bits */
bool asleep_on_closed[2], asleep_on_passing;

inline leave()
{
    atomic { passing--; last = (passing == 0) };
    if
    :: last && closed != 0 ->
#ifndef NO_WAKE
        asleep_on_passing = false
#else
        skip
#endif
    :: else
    fi
}

inline enter(t)
{
    do
#ifdef LOOK_FIRST
    :: true ->
        c = closed;
        if
        :: c == 0 -> passing++; break
        :: else
        fi;
#else
    :: true ->
        passing++;
        c = closed;
        if
        :: c == 0 -> break
        :: else
        fi;
        leave();
#endif
        atomic { if :: closed == 1 -> closed = 2 :: else fi };
        atomic { if :: closed == 2 -> asleep_on_closed[t] = true :: else fi };
        !asleep_on_closed[t]
    od
}

proctype pass(byte t)
{
    byte c;
    bool last;
    byte rounds = 2;
    do
    :: rounds > 0 ->
        enter(t);
        atomic { lock == 0 -> lock = t + 1 };
        transit[t] = true; /* a superblock is on no list */
        assert(lock == t + 1);
        lock = 0;
        transit[t] = false;
        leave();
        rounds--
    :: else -> break
    od
}

proctype forker()
{
    byte p, rounds = 2;
    do
    :: rounds > 0 ->
#ifdef LOCK_FIRST
        atomic { lock == 0 -> lock = 9 };
#endif
        closed = 1;
        do
        :: true ->
            p = passing;
            if
            :: p == 0 -> break
            :: else
            fi;
            atomic { if :: passing == p -> asleep_on_passing = true :: else fi };
            !asleep_on_passing
        od;
#ifndef LOCK_FIRST
        atomic { lock == 0 -> lock = 9 };
#endif
        assert(!transit[0] && !transit[1] && lock == 9); /* the copy */
        assert(!transit[0] && !transit[1] && lock == 9);
        lock = 0;
        atomic { p = closed; closed = 0 };
#ifndef OPEN_QUIETLY
        if
        :: p == 2 -> asleep_on_closed[0] = false; asleep_on_closed[1] = false
        :: else
        fi;
#endif
        rounds--
    :: else -> break
    od
}

init { atomic { run pass(0); run pass(1); run forker() } }
