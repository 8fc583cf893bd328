/* SPDX-License-Identifier: Apache-2.0 */
/* A shared reap of two parts ends beside threads that free its objects, one that asks whose an address is, and one that
 * surveys all reaps. Part 0 is the reap itself, and has the face; part 1 is a hidden child.
 *
 *     freer                  free_shared, free_any, free_there (shared_use.c): by way of its own part, or by the object's
 *     freer: enter           reap_part_try (reap_parts.h); reap_part_enter, wait_for_part (reap_shared.c): after some
 *                            tries with the lock of the face, so that nobody takes the reap while it waits
 *     freer: send            send_to_part (shared_use.c), reap_push_pending (reap_chunk.h): onto the other part's list
 *     freer: due             free_pending (shared_use.c): too much waits there, and it has left its own part
 *     drain                  reap_alloc_take_remote, drain_remote (reap_alloc.c)
 *     ender: hold, take      hold, take_parts (reap_shared.c), for each call on the whole reap; let_go (reap_shared.c)
 *     ender: end             end_one, end_special (lifecycle.c): reap_tree_remove (reap_tree.c), reap_shared_end
 *                            (reap_shared.c), reap_chunk_give_back (reap_chunk.c)
 *     asker                  reapOf, owner_by (reap_api.c), reap_face_of_others (reap_shared.c): enters and locks nothing
 *     surveyor               collect_all, collect_list (reap_survey.c): frozen chunks, then the lock of the tree's list
 *     frozen                 chunk_freeze, chunk_thaw, chunk_is_readable (chunk_provider.c): no memory goes meanwhile
 *
 * The program may not free objects of a reap that it destroys: the ender waits until the frees have returned, as a
 * program must. The asker and the surveyor come at any time.
 * What holds: no thread touches memory that went, or a part that ended; each object is freed once, by one thread at a
 * time in a part; nothing is pending in a taken reap; who has the lock finds no reap that another has taken; and all
 * threads come to their end.
 * fault NO_FREEZE: the asker reads while memory may go
 * fault TREE_LAST: the hidden children end before the reap has left the tree
 * fault GIVES_LOCKED: the ender gives memory back while it has the lock of the tree's list
 * fault LISTS_FIRST: the ender empties the lists before it has taken the parts
 * fault NO_WAIT: it takes a part that a thread is in
 * fault LET_GO_FIRST: a call gives the lock back before it leaves the parts
 * fault WAITS_INSIDE: a freer enters the part where too much waits while it is in its own
 */
#define PARTS 2
#define ENDER 3
#define TAKEN 9

byte owner, holder[PARTS], pending[PARTS], free_in[PARTS];
bool tree_lock, in_tree = true, tag = true, frozen;
bool ended[PARTS], gone[PARTS]; /* no part any more; nor memory */
byte objects = 4, returned;

#define TOUCH(p) assert(!ended[p] && !ended[0])

/* One object, or n, as whoever is in a part frees them: plain stores. */
inline free_here(p, n)
{
    TOUCH(p);
    now = free_in[p];
    free_in[p] = now + n
}

inline drain(p)
{
    atomic { n = pending[p]; pending[p] = 0 };
    if
    :: n > 0 -> free_here(p, n)
    :: else
    fi;
    n = 0
}

inline enter(p)
{
    if
    :: atomic { holder[p] == 0 -> holder[p] = me }
    :: atomic { holder[p] != 0 && owner == 0 -> owner = me }; /* it has tried for a while */
        TOUCH(0);
        assert(holder[p] != TAKEN);
        atomic { holder[p] == 0 -> holder[p] = me };
        owner = 0
    fi
}

inline leave(p)
{
    TOUCH(p);
    assert(holder[p] == me);
    holder[p] = 0
}

proctype freer(byte me; byte own)
{
    byte left = 2, where, n, now;
    bool due;
    do
    :: left > 0 ->
        where = (left == 2 -> own : 1 - own);
        if
        :: atomic { holder[own] == 0 -> holder[own] = me };
            if
            :: where == own -> free_here(own, 1)
            :: else ->
                TOUCH(where);
                pending[where]++;
                if :: due = true :: skip fi
            fi;
#ifdef WAITS_INSIDE
            if :: due -> enter(where); drain(where); leave(where); due = false :: else fi;
#endif
            leave(own);
            if
            :: due -> enter(where); drain(where); leave(where); due = false
            :: else
            fi
        :: enter(where); free_here(where, 1); leave(where) /* it has no part, or somebody is in it */
        fi;
        left--
    :: else -> break
    od;
    returned++
}

inline drain_all() { for (p : 0 .. PARTS - 1) { drain(p) } }

inline leave_tree()
{
    atomic { !tree_lock -> tree_lock = true };
    in_tree = false
}

inline give_back(p) { atomic { !frozen -> gone[p] = true } }

/* Any call on the whole reap, such as reapStats or reapTrim, beside the frees; then the end. */
proctype ender()
{
    byte p, n, now;
    bool last;
    do
    :: last -> break
    :: else ->
        last = (returned == 2);
#ifdef LISTS_FIRST
        drain_all();
#endif
        atomic { owner == 0 -> owner = ENDER };
        for (p : 0 .. PARTS - 1) {
#ifdef NO_WAIT
            holder[p] = TAKEN
#else
            atomic { holder[p] == 0 -> holder[p] = TAKEN }
#endif
        }
#ifndef LISTS_FIRST
        drain_all();
#endif
        assert(pending[0] == 0 && pending[1] == 0); /* only who is in a part sends */
        if
        :: last -> break
        :: else ->
#ifdef LET_GO_FIRST
            owner = 0;
#endif
            for (p : 0 .. PARTS - 1) { holder[p] = 0 }
            owner = 0
        fi
    od;
    assert(free_in[0] + free_in[1] == objects);
#ifndef TREE_LAST
    leave_tree();
#ifndef GIVES_LOCKED
    tree_lock = false;
#endif
#endif
    tag = false; /* under the lock of the list of faces */
    ended[1] = true;
    give_back(1);
#ifdef TREE_LAST
    leave_tree();
#endif
    tree_lock = false;
    owner = 0; /* the holders stay taken */
    ended[0] = true;
    give_back(0)
}

/* Asks whose an object of part 1 is. Each word may be of another time, so it looks whether there is memory. */
proctype asker()
{
    bool found;
#ifndef NO_FREEZE
    atomic { !frozen -> frozen = true };
#endif
    if
    :: !gone[1] -> /* the chunk, its reap, and the part */
        assert(!gone[1]);
        if
        :: !gone[0] -> assert(!gone[0]); found = tag
        :: else
        fi
    :: else
    fi;
    assert(!found || !gone[0]); /* the answer is of a reap that was there */
#ifndef NO_FREEZE
    frozen = false
#endif
}

/* Sums up all parts of the reaps that it finds. */
proctype surveyor()
{
    atomic { !frozen -> frozen = true };
    atomic { !tree_lock -> tree_lock = true };
    if
    :: in_tree -> TOUCH(0); TOUCH(1); assert(!gone[0] && !gone[1])
    :: else
    fi;
    tree_lock = false;
    frozen = false
}

init { atomic { run freer(1, 0); run freer(2, 1); run ender(); run asker(); run surveyor() } }
