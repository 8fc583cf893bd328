/* SPDX-License-Identifier: Apache-2.0 */
/* quota.c: limits on live bytes. */
#include "reap/quota.h"

#include <errno.h>

#include "base/report.h"
#include "reap/instrument.h"
#include "reap/reap_shared.h"
#include "reap/reap_trace.h"
#include "reap/reap_tree.h"
#include "reap/validate.h"
#include "region/reap_free.h"

enum {
    SLACK_SHARE = 16,      /* the rooms of all reaps together are at most 1/16 of a limit */
    EXTRA_SHARE = 4,       /* a reap takes 1/4 of the slack that is left as its extra */
    EXTRA_MAX = 256 * 1024 /* bytes; with more, draws would not be noticeably rarer */
};

__thread struct reap_quota_notice *reap_quota_notice;
#define notice reap_quota_notice

static size_t whole_units(size_t bytes) { return bytes & -(size_t)REAP_UNIT; }

/* --- accounts -------------------------------------------------------------------------------- */

/* One of the two accounts of a limiter. */
static _Atomic(size_t) *account(struct reap *limiter, bool slack)
{
    ASSERT(limiter->flags & REAP_LIMITED && limiter->share.bytes != 0);
    return slack ? &limiter->share.slack : &limiter->share.left;
}

static bool draw_one(_Atomic(size_t) *from, size_t bytes)
{
    size_t have = atomic_load_explicit(from, memory_order_relaxed);
    do
        if (have < bytes) return false;
    while (!atomic_compare_exchange_weak_explicit(from, &have, have - bytes, memory_order_relaxed,
                                                  memory_order_relaxed));
    return true;
}

/* Gives back bytes to the limiters from the first one up to, but without, the last one. */
static void undraw(struct reap *first, const struct reap *last, bool slack, size_t bytes)
{
    for (struct reap *limiter = first; limiter != last; limiter = limiter->share.above)
        atomic_fetch_add_explicit(account(limiter, slack), bytes, memory_order_relaxed);
}

/* Draws bytes on all of these limiters, or on none. Returns NULL, or the limiter that had too little. */
static struct reap *draw(struct reap *first, const struct reap *last, bool slack, size_t bytes)
{
    for (struct reap *limiter = first; limiter != last; limiter = limiter->share.above) {
        if (draw_one(account(limiter, slack), bytes)) continue;
        undraw(first, limiter, slack, bytes);
        return limiter;
    }
    return NULL;
}

bool reap_quota_draw(struct reap *reap, size_t bytes)
{
    ASSERT(reap->flags & REAP_LIMITED && bytes % REAP_UNIT == 0);
    if (!draw(reap->share.limiter, NULL, false, bytes)) return true;
    errno = ENOMEM;
    return false;
}

void reap_quota_undraw(struct reap *reap, size_t bytes) { undraw(reap->share.limiter, NULL, false, bytes); }

/* --- one reap's share ------------------------------------------------------------------------ */

void reap_quota_open(struct reap *reap)
{
    struct reap_share *share = &reap->share;
    ASSERT(reap->flags & REAP_LIMITED);
    ASSERT(!share->from || (size_t)(reap->bump - share->from) <= share->room);
    if (share->from) share->room -= (size_t)(reap->bump - share->from);
    share->from = NULL;
    reap_choose_mode(reap);
}

void reap_quota_close(struct reap *reap)
{
    struct reap_share *share = &reap->share;
    ASSERT(reap->flags & REAP_LIMITED && share->room <= share->drawn);
    share->from = reap->bump;
    if ((size_t)(reap->end - reap->bump) > share->room) reap->end = reap->bump + share->room;
    ASSERT(reap->bump <= reap->end && reap->end <= reap->bump_max);
}

/* Draws an extra from the slack of the limiters; none, when many reaps have drawn theirs already. */
static void take_extra(struct reap_share *share)
{
    size_t extra = EXTRA_MAX;
    for (struct reap *limiter = share->limiter; limiter; limiter = limiter->share.above) {
        size_t part = atomic_load_explicit(&limiter->share.slack, memory_order_relaxed) / EXTRA_SHARE;
        if (part < extra) extra = part;
    }
    extra = whole_units(extra);
    if (extra && !draw(share->limiter, NULL, true, extra)) share->extra = extra;
    ASSERT(share->extra % REAP_UNIT == 0 && share->room <= share->drawn);
}

/* Draws bytes, and more for room if the limiters have them. Returns NULL, or the limiter that had too
 * little. */
static struct reap *draw_for(struct reap_share *share, size_t bytes)
{
    ASSERT(bytes > share->room);
    if (!share->extra) take_extra(share);
    size_t missing = bytes - share->room, room = whole_units(share->extra / 2);
    struct reap *met = draw(share->limiter, NULL, false, missing + room);
    if (met) met = draw(share->limiter, NULL, false, missing + (room = 0));
    if (met) return met;
    share->drawn += missing + room;
    share->room += missing + room;
    ASSERT(share->room >= bytes && share->drawn >= share->room);
    return NULL;
}

/* --- the function ---------------------------------------------------------------------------- */

static bool is_live(const void *object)
{
    struct reap_chunk *chunk = chunk_of(object, NULL);
    return chunk && reap_chunk_is_live(chunk) && reap_is_object(chunk, object);
}

void reap_quota_freed(const struct reap *reap)
{
    if (LIKELY(notice == NULL) || notice->from != reap) return;
    if (notice->object != NULL && !is_live(notice->object)) notice->lost = true;
}

void reap_quota_gone(struct reap *reap)
{
    if (LIKELY(notice == NULL)) return;
    if (reap == notice->asking || reap == notice->met || reap == notice->from)
        notice->gone = reap_handle(reap);
}

/* Aborts when the function has taken away a reap, or the object, that it had to leave alone. */
static void check_done(const struct reap_quota_notice *done)
{
    const void *object = done->object;
    if (done->gone) reap_misuse_handle("reapOnLimit", (void *)(uintptr_t)done->gone);
    if (object && (done->lost || !is_live(object) || reap_instrument_is_pending(object)))
        report_misuse("reapOnLimit", object, "not a live object");
}

/* Returns true if functions must not run now, because this thread has only entered a part of a shared reap.
 * Then it fails, takes the reap, and tries again (shared_use.h). */
static bool is_within_part(const struct reap *reap)
{
    return reap_is_part(reap) && !reap_shared_is_taken(reap);
}

/* Calls the function of the limiter that is met. The function may use the reap: so the reap is closed
 * meanwhile, and may be below other limits afterwards. False: there is no function, or the allocation is one
 * of a function that runs. */
static NOINLINE bool notify(struct reap *reap, struct reap *met, size_t asked, const void *object,
                            const struct reap *from)
{
    ASSERT(!reap->share.from && reap->flags & REAP_LIMITED);
    void *handle = reap_handle(met), *given = handle, *asking = reap_handle(reap);
    if (!met->share.fn || notice != NULL) return false;
    struct reap_quota_notice mine = {
        .asking = reap_known(reap), .met = met, .from = reap_known(from), .object = object};
    notice = &mine;
    reap_quota_close(reap);
    met->share.fn(&given, asked, met->share.arg);
    notice = NULL;
    check_done(&mine);
    reap_check(&handle, "reapOnLimit");
    reap_check(&asking, "reapOnLimit");
    reap_open(reap);
    return true;
}

/* Makes a reap's frees take the slow path, so that a notice can record them. True: they did not before. */
static bool watch_frees(struct reap *reap)
{
    if (reap->flags & REAP_SPECIAL) return false;
    reap->flags |= REAP_WATCHED;
    reap_free_close(reap);
    return true;
}

/* Calls the function while an object of `from` is about to move to `to`. */
static bool notify_passing(struct reap *from, const void *object, struct reap *to, struct reap *met,
                           size_t bytes)
{
    if (!met->share.fn) return false;
    bool watches = watch_frees(from);
    bool called = notify(to, met, bytes, object, from);
    if (watches) {
        from->flags &= (uint8_t)~REAP_WATCHED;
        reap_free_reopen(from);
    }
    return called;
}

/* --- paying ---------------------------------------------------------------------------------- */

static bool refuse(const struct reap *met, size_t asked)
{
    if (reap_trace_on) reap_trace_limit(met, asked);
    errno = ENOMEM;
    return false;
}

bool reap_quota_take(struct reap *reap, size_t bytes, size_t asked, const void *object)
{
    ASSERT(reap->flags & REAP_LIMITED && bytes % REAP_UNIT == 0 && !reap->share.from);
    struct reap_share *share = &reap->share;
    struct reap *met = share->room < bytes ? draw_for(share, bytes) : NULL;
    if (met && is_within_part(reap)) return false;
    if (met && notify(reap, met, asked, object, reap)) {
        if (!(reap->flags & REAP_LIMITED)) return true;
        met = share->room < bytes ? draw_for(share, bytes) : NULL;
    }
    if (met) return refuse(met, asked);
    ASSERT(share->room >= bytes);
    share->room -= bytes;
    return true;
}

/* Half of the extra stays as room: so one object that comes and goes does not draw each time. */
void reap_quota_give(struct reap *reap, size_t bytes)
{
    ASSERT(reap->flags & REAP_LIMITED && bytes % REAP_UNIT == 0 && !reap->share.from);
    struct reap_share *share = &reap->share;
    share->room += bytes;
    ASSERT(share->room <= share->drawn);
    if (share->room <= share->extra) return;
    size_t surplus = share->room - whole_units(share->extra / 2);
    ASSERT(surplus <= share->room && surplus <= share->drawn);
    share->room -= surplus;
    share->drawn -= surplus;
    atomic_signal_fence(memory_order_release);
    undraw(share->limiter, NULL, false, surplus);
}

/* Gives back the room, and with `all` the bytes of the objects too. First the share is lowered, here and
 * elsewhere: so the child of a fork in between may lose bytes, but never has them twice. */
static void retire(struct reap_share *share, bool all)
{
    size_t bytes = all ? share->drawn : share->room, extra = share->extra;
    ASSERT(share->drawn >= bytes && share->limiter);
    share->drawn -= bytes;
    share->room = share->extra = 0;
    atomic_signal_fence(memory_order_release);
    undraw(share->limiter, NULL, false, bytes);
    undraw(share->limiter, NULL, true, extra);
}

void reap_quota_give_rooms(struct reap *known)
{
    FOR_EACH_PART(part, known) {
        ASSERT(part->flags & REAP_LIMITED);
        reap_quota_open(part);
        retire(&part->share, false);
        reap_quota_close(part);
    }
}

/* --- lives ----------------------------------------------------------------------------------- */

/* Puts a reap below a limiter, with nothing drawn yet. */
static void join(struct reap *reap, struct reap *limiter)
{
    ASSERT(!(reap->flags & REAP_LIMITED));
    struct reap_share *share = &reap->share;
    share->limiter = limiter;
    share->above = NULL;
    share->from = NULL;
    share->drawn = share->room = share->extra = share->bytes = 0;
    if (!(reap->flags & REAP_ON_LIMIT)) share->fn = NULL;
    reap->flags |= REAP_LIMITED;
}

void reap_quota_begin(struct reap *reap, const struct reap *parent)
{
    ASSERT(parent->flags & REAP_LIMITED && parent->share.limiter);
    join(reap, parent->share.limiter);
    reap_quota_close(reap);
}

/* Sets the accounts of a limiter when the reaps below it have drawn `bytes` in all, and no room or extra. */
static void set_account(struct reap *reap, size_t bytes)
{
    ASSERT(whole_units(reap->share.bytes) >= bytes);
    struct reap_share *share = &reap->share;
    atomic_store_explicit(&share->left, whole_units(share->bytes) - bytes, memory_order_relaxed);
    atomic_store_explicit(&share->slack, whole_units(share->bytes / SLACK_SHARE), memory_order_relaxed);
}

/* In the child of a fork some threads are missing, perhaps amid a draw. So an empty limiter sets its accounts
 * anew there. */
void reap_quota_end(struct reap *reap)
{
    ASSERT(reap->flags & REAP_LIMITED && reap->share.limiter);
    reap_chunk_adopt(reap);
    retire(&reap->share, true);
    if (reap_tree_generation > 1 && reap->share.bytes && !reap->children) set_account(reap, 0);
    reap_choose_mode(reap);
    reap_quota_close(reap);
}

size_t reap_quota_left(const struct reap *reap)
{
    size_t least = SIZE_MAX;
    if (!(reap->flags & REAP_LIMITED)) return least;
    for (const struct reap *limiter = reap->share.limiter; limiter; limiter = limiter->share.above) {
        size_t left = atomic_load_explicit(&limiter->share.left, memory_order_relaxed);
        if (left < least) least = left;
    }
    return least;
}

size_t reap_quota_of(const struct reap *reap) { return reap->flags & REAP_LIMITED ? reap->share.bytes : 0; }

void reap_quota_notify(struct reap *reap, void (*fn)(void **reap, size_t size, void *arg), void *arg)
{
    reap->share.fn = fn;
    reap->share.arg = arg;
    reap->flags = (uint8_t)(fn ? reap->flags | REAP_ON_LIMIT : reap->flags & ~REAP_ON_LIMIT);
}

/* --- setting --------------------------------------------------------------------------------- */

/* As reap_tree_after, with the hidden children of shared reaps. */
static struct reap *after(const struct reap *top, const struct reap *reap)
{
    struct reap *part = reap_next_part(reap);
    return part ? part : reap_tree_after(top, reap_known(reap));
}

/* Gives back the rooms and extras of all reaps of a held tree. Returns the live bytes of the tree. */
static size_t squeeze(struct reap *top)
{
    size_t live = 0;
    for (struct reap *reap = top; reap; reap = after(top, reap)) {
        reap_chunk_adopt(reap);
        if (reap->flags & REAP_LIMITED) {
            reap_quota_open(reap);
            retire(&reap->share, false);
            reap_quota_close(reap);
        }
        live += reap_chunk_live_bytes(reap);
    }
    return live;
}

/* Makes a reap unlimited, when neither it nor a reap above it has a limit. */
static void leave(struct reap *reap)
{
    ASSERT(!reap->share.limiter && !reap->share.bytes);
    reap_quota_open(reap);
    reap->flags &= (uint8_t)~REAP_LIMITED;
    reap_free_reopen(reap);
}

/* Puts those reaps of a held tree that were directly below one limiter directly below another one. NULL:
 * none. */
static void relink(struct reap *top, struct reap *from, struct reap *to)
{
    for (struct reap *reap = top; reap; reap = after(top, reap)) {
        struct reap_share *share = &reap->share;
        bool limited = reap->flags & REAP_LIMITED;
        if (limited && share->bytes && share->above == from && reap != to) share->above = to;
        if ((limited ? share->limiter : NULL) != from) continue;
        if (!limited) {
            join(reap, to);
            share->drawn = reap_chunk_live_bytes(reap);
            reap_free_close(reap);
            reap_choose_mode(reap);
        }
        share->limiter = to;
        if (to)
            reap_quota_close(reap);
        else
            leave(reap);
    }
}

/* Makes a reap a limiter: it comes between the reaps below it and their former limiter. */
static void add(struct reap *reap)
{
    ASSERT(!reap_quota_of(reap));
    struct reap *above = reap->flags & REAP_LIMITED ? reap->share.limiter : NULL;
    relink(reap, above, reap);
    reap->share.above = above;
}

static void remove_own(struct reap *reap)
{
    if (!reap_quota_of(reap)) return;
    struct reap *above = reap->share.above;
    reap->share.bytes = 0;
    reap->share.above = NULL;
    ASSERT(above != reap);
    relink(reap, reap, above);
}

bool reap_quota_set(struct reap *reap, size_t bytes)
{
    ASSERT_SOUND(reap);
    size_t live = squeeze(reap);
    if (!bytes) {
        remove_own(reap);
        return true;
    }
    if (live > whole_units(bytes)) {
        errno = ENOMEM;
        return false;
    }
    if (!reap_quota_of(reap)) add(reap);
    reap->share.bytes = bytes;
    set_account(reap, live);
    return true;
}

/* --- from reap to reap ----------------------------------------------------------------------- */

static struct reap *first_limiter(const struct reap *reap)
{
    return reap && reap->flags & REAP_LIMITED ? reap->share.limiter : NULL;
}

/* The first limiter of one chain that is also in the other one, or NULL. */
static struct reap *common(struct reap *limiter, struct reap *other)
{
    for (; limiter; limiter = limiter->share.above)
        for (struct reap *it = other; it; it = it->share.above)
            if (it == limiter) return limiter;
    return NULL;
}

/* Draws for an object that moves, on the limiters of the moment. Returns NULL, or the one that had too
 * little. */
static struct reap *draw_passing(const struct reap *from, const struct reap *to, size_t bytes)
{
    struct reap *first = first_limiter(to);
    return draw(first, common(first, first_limiter(from)), false, bytes);
}

bool reap_quota_pass(struct reap *from, const void *object, struct reap *to, size_t bytes)
{
    ASSERT(from != to && bytes % REAP_UNIT == 0);
    struct reap *met = draw_passing(from, to, bytes);
    if (met) {
        reap_quota_open(to);
        retire(&to->share, false); /* its room may cover the missing bytes */
        met = draw_passing(from, to, bytes);
        if (met && notify_passing(from, object, to, met, bytes)) met = draw_passing(from, to, bytes);
        reap_close(to);
    }
    if (met) return refuse(met, bytes);
    if (to->flags & REAP_LIMITED) to->share.drawn += bytes;
    return true;
}

void reap_quota_passed(struct reap *from, struct reap *to, size_t bytes)
{
    struct reap *first = first_limiter(from);
    if (first) from->share.drawn -= bytes;
    ASSERT(bytes % REAP_UNIT == 0);
    atomic_signal_fence(memory_order_release);
    undraw(first, common(first, first_limiter(to)), false, bytes);
}

void reap_quota_pass_back(struct reap *from, struct reap *to, size_t bytes)
{
    reap_quota_passed(to, from, bytes);
}

void reap_quota_lend(struct reap *from, struct reap *to, size_t bytes)
{
    if (!(from->flags & REAP_LIMITED)) return;
    ASSERT(to->flags & REAP_LIMITED && from->share.limiter == to->share.limiter);
    ASSERT(from->share.drawn >= bytes);
    from->share.drawn -= bytes;
    to->share.drawn += bytes;
}

/* Draws for a held tree on the limiters of `to`, and gives its bytes back to those of `from`. */
static bool pass_tree(struct reap *top, struct reap *from, struct reap *to)
{
    struct reap *shared = common(to, from);
    size_t live = squeeze(top);
    if (draw(to, shared, false, live)) {
        errno = ENOMEM;
        return false;
    }
    undraw(from, shared, false, live);
    relink(top, from, to);
    return true;
}

/* The nearest limiter above a reap. */
static struct reap *limiter_above(const struct reap *reap)
{
    return reap_quota_of(reap) ? reap->share.above : first_limiter(reap);
}

bool reap_quota_adopt_changes(const struct reap *top, const struct reap *parent)
{
    return limiter_above(top) != first_limiter(parent);
}

bool reap_quota_adopt(struct reap *top, const struct reap *parent)
{
    return pass_tree(top, limiter_above(top), first_limiter(parent));
}
