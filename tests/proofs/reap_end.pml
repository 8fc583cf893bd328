/* SPDX-License-Identifier: Apache-2.0 */
/* A shared reap ends beside threads that free its objects. Two threads free objects of both parts; a third destroys
 * the reap; a fourth knows a part by its address alone, as reapOf and surveys do, and asks while the reap may end.
 *
 *     freer: enter           reap_part_try, reap_part_enter (reap_shared.c): a compare-and-swap on the part's holder
 *     freer: send            send (shared_use.c), reap_push_pending (reap_types.h): onto the other part's list
 *     freer: leave           reap_part_leave
 *     destroyer: take        hold, take (reap_shared.c), reap_alloc_take_remote for each part
 *     destroyer: end         reap_shared_end, delist: the tag goes under the list's lock, then the memory
 *     asker                  reap_shared_try, is_part_of: with the list's lock, so that the face lasts meanwhile
 *
 * The program may not free objects of a reap that it destroys, so the frees have begun before the end, and the destroyer
 * waits for their return as a program must; only the asker may come at any time.
 * What holds: no thread touches memory that went; each object is freed once; nothing is pending when the reap ends.
 * fault TAG_ONLY: the asker reads the tag without the list's lock, and never looks again
 * fault LISTS_FIRST: the destroyer empties the lists before it has taken the parts
 * fault NO_WAIT: it takes a part that a thread is in
 */
#define PARTS 2
#define TAKEN 9

bool list_lock, tag = true, gone;
byte holder[PARTS], pending[PARTS], free_in[PARTS], sent;
byte objects = 4, returned;

#define TOUCH assert(!gone)

proctype freer(byte me; byte own)
{
    byte left = 2;
    do
    :: left > 0 ->
        atomic { holder[own] == 0 -> holder[own] = me }; /* enter */
        TOUCH;
        if
        :: left == 2 -> /* an object of this part */
            atomic { assert(holder[own] == me); free_in[own]++ }
        :: else -> atomic { pending[1 - own]++; sent++ } /* one of the other */
        fi;
        TOUCH;
        assert(holder[own] == me); /* nobody else was in */
        holder[own] = 0;
        left--
    :: else -> break
    od;
    returned++
}

/* Any call on the whole reap, such as reapStats or reapTrim, beside the frees; then the end. */
proctype destroyer()
{
    byte p, n;
    bool last;
    do
    :: last -> break
    :: else ->
        last = (returned == 2);
#ifdef LISTS_FIRST
        for (p : 0 .. PARTS - 1) { atomic { n = pending[p]; pending[p] = 0; free_in[p] = free_in[p] + n } }
#endif
        for (p : 0 .. PARTS - 1) {
#ifdef NO_WAIT
            holder[p] = TAKEN
#else
            atomic { holder[p] == 0 -> holder[p] = TAKEN }
#endif
        }
#ifndef LISTS_FIRST
        for (p : 0 .. PARTS - 1) { atomic { n = pending[p]; pending[p] = 0; free_in[p] = free_in[p] + n } }
#endif
        assert(pending[0] == 0 && pending[1] == 0); /* only who is in a part sends */
        if
        :: last -> break
        :: else -> for (p : 0 .. PARTS - 1) { holder[p] = 0 }
        fi
    od;
    assert(free_in[0] + free_in[1] == objects && pending[0] + pending[1] == 0);
    atomic { !list_lock -> list_lock = true };
    tag = false;
    list_lock = false;
    /* the holders stay taken; the memory goes */
    gone = true
}

proctype asker()
{
    bool entered;
#ifdef TAG_ONLY
    if
    :: tag -> entered = true
    :: else
    fi;
#else
    atomic { !list_lock -> list_lock = true };
    if
    :: tag -> TOUCH; atomic { if :: holder[0] == 0 -> holder[0] = 5; entered = true :: else fi }
    :: else
    fi;
    list_lock = false;
#endif
    if
    :: entered -> TOUCH; TOUCH; if :: holder[0] == 5 -> holder[0] = 0 :: else fi
    :: else
    fi
}

init { atomic { run freer(1, 0); run freer(2, 1); run destroyer(); run asker() } }
