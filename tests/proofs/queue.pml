/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks that threads of other heaps free come home: by the batch of an id, the superblock's pending list, and the heap's
 * queue. Two threads free, one id has a batch, a third thread takes that batch and collects.
 *
 *     freer: put             heap_batch_put (heap_remote.c): a section that looks whether the batch is closed
 *     freer: make_pending    heap_make_pending, superblock_put_pending, superblock_pending_is_due (STEP for f)
 *     enqueue                heap_enqueue (heap_remote.c)
 *     heap: unqueue          heap_take_queued, superblock_unqueue
 *     heap: collect          heap_collect (heap_emptiness.c), with its second look
 *     heap: take a batch     close_word, rseq_fence, take_closed, take_all (heap_remote.c)
 *
 * What holds when all is still: no block is lost, and a superblock of which much is pending, or nothing lives, is queued.
 * fault COLLECT_FIRST: the mark goes after the blocks were taken
 * fault NO_SECOND_LOOK: collect does not look again whether the last block was freed meanwhile
 * fault MARK_LATE: a superblock is put on the list before it is marked
 * fault BATCH_WITHOUT_FENCE: a batch is taken without a fence
 */
#define BLOCKS 4
#define STEP 2
#define CLOSED 8

byte word_free, pending, list, batch, freed, delivered;
bool queued, hit;
byte done;

inline enqueue()
{
    atomic { was = queued };
    if
    :: was
    :: else ->
#ifdef MARK_LATE
        atomic { assert(list < 1); list++ };
        queued = true
#else
        atomic { was = queued; queued = true };
        if
        :: was
        :: else -> atomic { assert(list < 1); list++ }
        fi
#endif
    fi
}

/* n blocks at once. superblock_live reads two fields, one after the other. */
inline make_pending(n)
{
    atomic { pending = pending + n; after = pending; delivered = delivered + n };
    due = (after % STEP) < n;
    if
    :: !due -> p = pending; due = (word_free + p >= BLOCKS)
    :: else
    fi;
    if
    :: due -> enqueue()
    :: else
    fi;
    p = 0; after = 0; due = false
}

/* One of them runs on the id of the batch. */
proctype freer(bool has_batch)
{
    byte p, after, w, i;
    bool due, was, put;
    do
    :: i < BLOCKS / 2 ->
        i++; freed++; put = false;
        do
        :: has_batch && !put ->
            hit = false;
            w = batch;
            if
            :: w >= CLOSED || w == 2 -> break
            :: else -> atomic { if :: hit -> skip :: else -> batch = w + 1; put = true fi }
            fi
        :: else -> break
        od;
        if :: put -> skip :: else -> make_pending(1) fi
    :: else -> break
    od;
    done++
}

inline collect()
{
    atomic { chain = pending; pending = 0 };
    word_free = word_free + chain;
    chain = 0;
#ifndef NO_SECOND_LOOK
    p = pending;
    if
    :: word_free + p >= BLOCKS && pending != 0 -> enqueue()
    :: else
    fi;
    p = 0
#endif
}

proctype heap()
{
    byte chain, p, after, w;
    bool due, was;
    do
    :: atomic { list > 0 -> list-- };
#ifdef COLLECT_FIRST
        collect();
        assert(queued);
        queued = false
#else
        assert(queued);
        queued = false;
        collect()
#endif
    :: batch != 0 -> /* take_all */
        do
        :: true ->
            atomic { if :: batch != 0 && batch < CLOSED -> batch = batch + CLOSED :: else fi };
#ifndef BATCH_WITHOUT_FENCE
            hit = true;
#endif
            w = batch;
            if
            :: w >= CLOSED -> batch = 0; w = w - CLOSED; break
            :: else
            fi
        od;
        if :: w > 0 -> make_pending(w) :: else fi;
        w = 0
    :: done == 2 && list == 0 && batch == 0 -> break
    od;
    assert(word_free + pending == BLOCKS && delivered == freed); /* nothing is lost */
    assert(pending == 0); /* all blocks were freed, so the superblock was queued and collected */
}

init { atomic { run freer(true); run freer(false); run heap() } }
