/* SPDX-License-Identifier: Apache-2.0 */
/* A superblock that changes hands beside a thread that allocates and frees in sections. Both threads lose their id, or get
 * another one, at any instruction. Memory is in order here; what orders the code needs on other processors stands in
 * concurrency.md.
 *
 *     worker: pop            heap_pop (heap_fast_x86_64.h)
 *     worker: give           heap_give, and heap_make_pending for a superblock of another id
 *     worker: refill         heap_refill.c: from the bins, under the lock, by rseq_store (rseq.h)
 *     mover: pull, fence     pull_out and give_pulled (heap_reclaim.c), heap_visit; detach (heap_emptiness.c)
 *     mover: splice          superblock_absorb (superblock.c), on an unowned superblock
 *     mover: publish         rseq_store on the id that it was prepared for
 *     scheduler              the kernel; it sets `hit`, and a section that was hit does not commit
 *
 * What holds: malloc gives no block that lives; a row's superblock is never overwritten; no block is lost.
 * fault NO_FENCE: the mover edits the superblock without a fence
 * fault OWNER_STAYS: it takes the superblock out of the row, but leaves its owner
 * fault ROW_STAYS: it makes the superblock unowned, but leaves it in the row
 * fault PUBLISH_UNCHECKED: it stores to the row of an id that it may no longer have
 */
#define BLOCKS 2
#define NONE 3
#define S 1 /* the superblock */
#define T 2 /* another one, without free blocks, so that rows have something else to hold */
#define MOVER 1

byte id_of[2] = NONE, row[2], owner = NONE, first = 1, pending, link[BLOCKS + 1], spares = 1, mine /* the worker's block */;
bool hit[2], live[BLOCKS + 1], lock, binned;

#define BEGIN(t) atomic { hit[t] = false; my = id_of[t] }
#define FENCE atomic { hit[0] = true; hit[1] = true }
#define LOCK atomic { !lock -> lock = true }

#define IS_FREE(i) (id_of[0] != i && id_of[1] != i)
#define SCHEDULE(t) \
    :: atomic { id_of[t] != NONE -> id_of[t] = NONE; hit[t] = true } \
    :: atomic { id_of[t] == NONE && IS_FREE(0) -> id_of[t] = 0 } \
    :: atomic { id_of[t] == NONE && IS_FREE(1) -> id_of[t] = 1 }

active proctype scheduler()
{
end:
    do
    SCHEDULE(0)
    SCHEDULE(1)
    od
}

proctype worker(byte t) provided (id_of[t] != NONE)
{
    byte my, s, f, n;
end:
    do
    :: mine == 0 -> /* pop */
pop:    BEGIN(t);
        s = row[my];
        if
        :: s == S ->
            f = first;
            if
            :: f != 0 ->
                n = link[f];
                atomic {
                    if
                    :: hit[t] -> goto pop
                    :: else -> first = n; mine = f; f = 0; n = 0; assert(!live[mine]); live[mine] = true
                    fi
                }
            :: else
            fi
        :: s == 0 -> /* refill */
            LOCK;
            BEGIN(t);
            n = 0;
            if
            :: atomic { binned && owner == my -> binned = false; n = S }
            :: atomic { spares > 0 -> spares--; n = T }
            :: true
            fi;
            if
            :: n != 0 ->
                atomic {
                    if
                    :: hit[t] || row[my] != 0 ->
                        if :: n == S -> binned = true :: else -> spares++ fi
                    :: else -> row[my] = n
                    fi; n = 0
                }
            :: else
            fi;
            lock = false
        :: s == T -> atomic { if :: !hit[t] && row[my] == T -> row[my] = 0; spares++ :: else fi } /* displaced */
        :: else
        fi; s = 0
    :: mine != 0 -> /* give */
        live[mine] = false;
give:   BEGIN(t);
        if
        :: owner == my ->
            f = first;
            link[mine] = f;
            atomic {
                if
                :: hit[t] -> goto give
                :: else -> first = mine; mine = 0; f = 0
                fi
            }
        :: else -> atomic { link[mine] = pending; pending = mine; mine = 0 }
        fi
    od
}

proctype mover() provided (id_of[MOVER] != NONE)
{
    byte my, h, p, l, f;
end:
    do
    :: LOCK; /* pull */
#ifndef ROW_STAYS
        if :: row[0] == S -> row[0] = 0 :: row[1] == S -> row[1] = 0 :: else -> binned = false fi;
#else
        if :: row[0] == S :: row[1] == S :: else -> binned = false fi;
#endif
#ifndef OWNER_STAYS
        owner = NONE;
#endif
        lock = false;
#ifndef NO_FENCE
        FENCE;
#endif
        /* splice the pending blocks, in plain steps */
        atomic { p = pending; pending = 0 }
        if
        :: p != 0 ->
            l = p;
            do :: link[l] != 0 -> l = link[l] :: else -> break od;
            f = first;
            link[l] = f;
            first = p; p = 0; l = 0; f = 0
        :: else
        fi;
        /* what is free, pending and in use adds up, for nobody else may change the list now */
        atomic {
            l = 0; f = first;
            do :: f != 0 && l <= BLOCKS -> l++; assert(!live[f]); f = link[f] :: else -> break od;
            f = pending;
            do :: f != 0 && l <= BLOCKS -> l++; f = link[f] :: else -> break od;
            if :: mine != 0 -> l++ :: else fi;
            assert(l == BLOCKS); l = 0; f = 0
        }
        /* publish */
        atomic { h = id_of[MOVER]; owner = h }
#ifdef PUBLISH_UNCHECKED
        if
        :: row[h] == 0 -> atomic { assert(row[h] == 0); row[h] = S }
        :: else -> binned = true
        fi;
#else
        BEGIN(MOVER);
        atomic {
            if
            :: !hit[MOVER] && my == h && row[h] == 0 -> row[h] = S
            :: else -> binned = true
            fi
        }
#endif
        h = 0; my = 0
    od
}

init {
    atomic { link[1] = 2; row[0] = S; owner = 0; run worker(0); run mover() }
}
