/* SPDX-License-Identifier: Apache-2.0 */
/* quota.h: limits on the live bytes of a reap and of all reaps below it.
 *
 * A limit is an account from which the reaps below it are paid. What a reap has drawn covers its live
 * objects and its room, which the bump pointer may go through without asking anybody: `end` is lowered
 * to where the room ends, so the fast path is the same as without a limit.
 *
 *     drawn   |<------ live objects ------>|<--- room --->|
 *     hole                            bump ^          end ^            ^ limit of the chunk
 *
 * Vocabulary
 *     limiter   the nearest reap upwards, itself included, that has a limit; then each one above it
 *     left      what can still be drawn on a limit
 *     drawn     what a reap has drawn on each of its limiters
 *     extra     the most room that a reap may have. It is drawn too, on an account of its own (`slack`)
 *               that begins with a sixteenth of the limit: so however many reaps share a limit, all their
 *               rooms together are no more than that, and nobody is refused earlier than by it
 *
 * Invariants (reap_is_valid checks them)
 *     - drawn = live bytes + room, and room <= extra, after each call
 *     - left + the sum of drawn over all reaps below = the limit, in whole units
 *     - slack + the sum of extra over all reaps below = a sixteenth of the limit
 *
 * Frees and free blocks would have to be counted too: so all calls on a limited reap but the bump take
 * the slow paths, between reap_quota_open and reap_quota_close; what they do in between knows nothing of
 * limits. A free block that is used again costs nothing but its bytes; records are not counted.
 *
 * Threads: the reap's own; left and slack of its limiters are atomic. Who sets a limit must be the only
 * one in that reap and below it. Limits are drawn upwards, one atomic step each, and no lock is held.
 */
#ifndef QUOTA_H
#define QUOTA_H

#include "region/reap_chunk.h"

/* --- around each slow path of a limited reap ------------------------------------------------- */

/* Takes in what the bump pointer has used, and gives it the whole hole again. */
void reap_quota_open(struct reap *reap);

/* Pays for bytes; asked is what the user asked for, for the function of reapOnLimit, which may be called
 * from here and must leave `object` alone (NULL: a new one). False: a limit would be exceeded (ENOMEM). The
 * reap is open. */
bool reap_quota_take(struct reap *reap, size_t bytes, size_t asked, const void *object);

/* Bytes are free again. The reap is open. */
void reap_quota_give(struct reap *reap, size_t bytes);

/* The bytes that no limit of a reap would refuse just now, or fewer. */
size_t reap_quota_left(const struct reap *reap);

/* Lowers the end of what may be bumped to where the room ends. */
void reap_quota_close(struct reap *reap);

/* Around what allocates in a reap, limited or not. */
static inline void reap_open(struct reap *reap)
{
    if (reap->flags & REAP_LIMITED) reap_quota_open(reap);
}

static inline void reap_close(struct reap *reap)
{
    if (reap->flags & REAP_LIMITED) reap_quota_close(reap);
}

/* --- lives ----------------------------------------------------------------------------------- */

/* A new reap comes below the limits that its parent is below. */
void reap_quota_begin(struct reap *reap, const struct reap *parent);

/* A reap is empty, or about to be: gives back all that it has drawn. It may go on. */
void reap_quota_end(struct reap *reap);

/* Sets the reap's own limit; 0 takes it away. False: more than that lives already (ENOMEM). */
bool reap_quota_set(struct reap *reap, size_t bytes);

/* Has fn called when the reap's own limit is met; NULL: nothing. */
void reap_quota_notify(struct reap *reap, void (*fn)(void **reap, size_t size, void *arg), void *arg);

/* The reap's own limit, or 0. */
size_t reap_quota_of(const struct reap *reap);

/* --- from reap to reap ----------------------------------------------------------------------- */

/* An object of bytes is to move: `to` pays on the limiters that it does not share with `from`, for which the
 * function of reapOnLimit may be called. False: a limit would be exceeded (ENOMEM). Both are closed. */
bool reap_quota_pass(struct reap *from, const void *object, struct reap *to, size_t bytes);

/* It has moved: `from` gets back what `to` has paid; or it has not, and `to` does. */
void reap_quota_passed(struct reap *from, struct reap *to, size_t bytes);
void reap_quota_pass_back(struct reap *from, struct reap *to, size_t bytes);

/* A tree is to go below parent (NULL: below nobody). False: a limit above would be exceeded (ENOMEM). */
bool reap_quota_adopt(struct reap *top, const struct reap *parent);

/* --- what a function does ---------------------------------------------------------------------- */

/* A function of reapOnLimit that runs in this thread, what it was called for, and whether it took away what
 * it was to leave alone. Memory that was given back may be an object, or a reap, again when the function
 * returns: so it is noted when it goes. */
struct reap_quota_notice {
    _Atomic bool taken; /* by a thread */
    const struct reap *asking, *met;
    const struct reap *from; /* the object's reap */
    const void *object;      /* resized or moved, or NULL */
    const void *gone;        /* the handle of one of these reaps */
    bool lost;               /* the object */
};

/* This thread's; NULL: no function runs, or too many do, of which nothing is noted then. */
extern HIDDEN __thread struct reap_quota_notice *reap_quota_notice __attribute__((tls_model("initial-exec")));

/* An object is about to be freed, resized or moved. */
static inline void reap_quota_touch(const void *object)
{
    if (UNLIKELY(reap_quota_notice != NULL) && reap_quota_notice->object == object)
        reap_quota_notice->lost = true;
}

/* Objects of a reap were freed together; or it ends with all of them. */
void reap_quota_freed(const struct reap *reap);
void reap_quota_gone(struct reap *reap);

/* --- from other threads ---------------------------------------------------------------------- */

/* Draws bytes for an object that another thread makes for this reap, which counts them when it takes the
 * object in; and gives them back when there will be no such object. */
bool reap_quota_draw(struct reap *reap, size_t bytes);
void reap_quota_undraw(struct reap *reap, size_t bytes);

#endif
