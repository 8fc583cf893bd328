/* SPDX-License-Identifier: Apache-2.0 */
/* quota.h: limits on the live bytes of a reap and of all reaps below it.
 *
 * A limit is an account, and the reaps below it draw bytes on it. The drawn bytes of a reap cover its live
 * objects and its room (reserved bytes). The bump pointer may use the room without a further draw: `end` is
 * lowered to the end of the room, so the fast path is the same as without a limit.
 *
 *     drawn   |<------ live objects ------>|<--- room --->|
 *     hole                            bump ^          end ^            ^ bump_max
 *
 * Vocabulary
 *     limiter   a reap with a limit. A reap's limiters are itself, if it has a limit, and those above it;
 *               its `limiter` is the nearest of them
 *     left      the bytes that reaps can still draw on a limit
 *     drawn     the bytes that a reap has drawn on each of its limiters
 *     room      drawn bytes without an object
 *     extra     the most room that a reap may have. A reap draws it too, on an account of its own (`slack`).
 *               So a limit refuses no object before fifteen sixteenths of it live
 *     pending   the bytes of objects that other threads have freed, and the reap has yet to look at. The
 *               free counts them before it puts the object on the list, and touches no limiter. Before a
 *               limit refuses, it claims all that are pending below it, and gives the bytes back in the place
 *               of the reap, which then lowers `drawn` alone. One word has both numbers
 *
 * Invariants (reap_is_valid checks them)
 *     - drawn = live bytes + room, and room <= extra, after each call
 *     - left + the sum of drawn less claimed over all reaps below = the limit, in whole units
 *     - pending and claimed bytes are live ones; a claim moves the bytes from one to the other at once
 *     - slack + the sum of extra over all reaps below = a sixteenth of the limit
 *
 * Frees and gaps count too; records do not. So on a limited reap all calls but bumping take the slow paths,
 * between limit_suspend and limit_resume, and the code in between knows nothing of limits.
 *
 * Threads: the reap's own; left and slack of its limiters are atomic, and a draw takes no lock. A thread that
 * sets a limit must be the only one in that reap and below it; free() may come meanwhile. Claims, new limits
 * and adopting exclude each other by the lock of adopters: so a reap in a locked list is alive, and so is its
 * way up. A fork may lose bytes, and never has any twice: a share is lowered before an account is raised.
 */
#ifndef QUOTA_H
#define QUOTA_H

#include "region/reap_chunk.h"

/* limit_suspend subtracts the bumped bytes from the room, and gives the bump pointer the whole hole again;
 * limit_resume lowers `end` to where the room ends. They enclose each slow path that allocates or frees. */
void reap_quota_suspend(struct reap *reap);
void reap_quota_resume(struct reap *reap);
static inline void limit_suspend(struct reap *reap)
{
    if (reap->flags & REAP_LIMITED) reap_quota_suspend(reap);
}

static inline void limit_resume(struct reap *reap)
{
    if (reap->flags & REAP_LIMITED) reap_quota_resume(reap);
}

/* Draws for bytes of a reap whose limit is suspended. May call the function of reapOnLimit, with the size
 * asked for; that must leave `object` (NULL: a new one) alone. In a part of a shared reap that this thread
 * has not taken it calls no function. False: a limit would be exceeded (ENOMEM). */
bool reap_quota_take(struct reap *reap, size_t bytes, size_t asked, const void *object);

/* Gives back bytes that were freed while the limit was suspended. */
void reap_quota_give(struct reap *reap, size_t bytes);

/* Gives back the room of a reap whose limit is not suspended, for other reaps and parts. */
void reap_quota_give_room(struct reap *reap);

/* A number of bytes that no limit of the reap refuses at the moment. */
size_t reap_quota_left(const struct reap *reap);

/* Puts a new reap below the limiters of its parent. */
void reap_quota_begin(struct reap *reap, const struct reap *parent);

/* Gives back all drawn bytes of a reap that is empty or about to be emptied. The reap may be used further. */
void reap_quota_end(struct reap *reap);

/* Sets the own limit of a reap, and of a tree of which this thread holds all; 0 takes it away. False: more
 * bytes live already (ENOMEM), and nothing has changed. */
bool reap_quota_set(struct reap *reap, size_t bytes);

/* The reap's own limit, or 0. */
static inline size_t reap_quota_of(const struct reap *reap)
{
    return reap->flags & REAP_LIMITED ? reap_share(reap)->bytes : 0;
}

/* Before a tree of which this thread holds all goes below parent (NULL: becomes a root): draws for it on the
 * limiters there. False: one of them would be exceeded (ENOMEM). */
bool reap_quota_adopt(struct reap *top, const struct reap *parent);

/* Returns true if other limiters will be above the tree there. */
bool reap_quota_adopt_changes(const struct reap *top, const struct reap *parent);

/* Before an object of `bytes` bytes moves: `to` draws for it on the limiters that it does not share with
 * `from`. This may call a function of reapOnLimit. False: a limit would be exceeded (ENOMEM). No limit of the
 * two is suspended. */
bool reap_quota_pass(struct reap *from, const void *object, struct reap *to, size_t bytes);

/* Afterwards: gives back what went from one reap to the other; reversed when the object has not moved. */
void reap_quota_passed(struct reap *from, struct reap *to, size_t bytes);

/* Before a reap ends. Aborts if a function of reapOnLimit that runs in this thread must leave it alone: the
 * reap asks for memory, or its limit is met. After the return the memory may be a reap again. */
void reap_quota_gone(struct reap *reap);

/* Before an object of a limited reap becomes pending: counts its bytes. False: there are too many. */
bool reap_quota_count(struct reap *reap, size_t bytes);

/* Before such an object is freed and given back. Returns how many bytes the limiters have already. */
size_t reap_quota_settle(struct reap *reap, size_t bytes);

/* Draws bytes for an object that another thread makes for this reap, which counts them as its own when it
 * links the object's chunk; and gives them back when there is no such object. */
bool reap_quota_draw(struct reap *reap, size_t bytes);
void reap_quota_undraw(struct reap *reap, size_t bytes);

#endif
