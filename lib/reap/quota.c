/* SPDX-License-Identifier: Apache-2.0 */
/* quota.c: limits on live bytes. */
#include "reap/quota.h"

#include <errno.h>

#include "base/report.h"
#include "reap/misuse.h"
#include "reap/reap_tree.h"
#include "reap/validate.h"
#include "region/reap_free.h"

enum {
    SLACK_SHARE = 16,      /* the rooms of all reaps together are at most 1/16 of a limit */
    EXTRA_SHARE = 4,       /* a reap takes 1/4 of the slack that is left as its extra */
    EXTRA_MAX = 256 * 1024 /* bytes; with more, draws would not be noticeably rarer */
};

static size_t whole_units(size_t bytes) { return bytes & -(size_t)REAP_UNIT; }

static bool refuse(void)
{
    errno = ENOMEM;
    return false;
}

/* --- accounts -------------------------------------------------------------------------------- */

/* One of the two accounts of a limiter. */
static _Atomic(size_t) *account(struct reap *limiter, bool slack)
{
    ASSERT(reap_share(limiter)->bytes != 0);
    return slack ? &reap_share(limiter)->slack : &reap_share(limiter)->left;
}

/* Gives back bytes to the limiters from the first one up to, but without, the last one. */
static void undraw_from(struct reap *first, const struct reap *last, bool slack, size_t bytes)
{
    for (struct reap *limiter = first; limiter != last; limiter = reap_share(limiter)->above)
        atomic_fetch_add_explicit(account(limiter, slack), bytes, memory_order_relaxed);
}

/* Draws bytes on all of these limiters, or on none. Returns NULL, or the limiter that had too little. */
static struct reap *draw_on(struct reap *first, const struct reap *last, bool slack, size_t bytes)
{
    for (struct reap *limiter = first; limiter != last; limiter = reap_share(limiter)->above) {
        _Atomic(size_t) *from = account(limiter, slack);
        size_t have = atomic_load_explicit(from, memory_order_relaxed);
        while (have >= bytes && !atomic_compare_exchange_weak_explicit(
                                    from, &have, have - bytes, memory_order_relaxed, memory_order_relaxed)) {
        }
        if (have >= bytes) continue;
        undraw_from(first, limiter, slack, bytes);
        return limiter;
    }
    return NULL;
}

/* --- what other threads have freed ----------------------------------------------------------- */

static _Atomic(bool) were_pending; /* without any such object no limit looks */

static size_t claimed(uint64_t pending) { return pending >> 32; }

bool reap_quota_count(struct reap *reap, size_t bytes)
{
    _Atomic(uint64_t) *pending = &reap_share(reap)->pending;
    uint64_t was = *pending, units = bytes / REAP_UNIT;
    do
        if (units + (uint32_t)was + claimed(was) > UINT32_MAX) return false;
    while (!atomic_compare_exchange_weak(pending, &was, was + units));
    if (!were_pending) were_pending = true;
    return true;
}

size_t reap_quota_settle(struct reap *reap, size_t bytes)
{
    struct reap_share *share = reap_share(reap);
    if (!(reap->flags & REAP_LIMITED)) return 0;
    size_t drawn = share->drawn, units = bytes / REAP_UNIT, had, rest;
    uint64_t was = share->pending;
    do {
        had = claimed(was) < units ? claimed(was) : units;
        rest = (uint32_t)was < units - had ? (uint32_t)was : units - had;
        share->drawn = drawn - had * REAP_UNIT; /* first: see retire_share */
    } while (!atomic_compare_exchange_weak(&share->pending, &was, was - ((uint64_t)had << 32) - rest));
    return had * REAP_UNIT;
}

static bool claim_pending(struct reap *reap, unsigned depth, void *is_any)
{
    if (!(__atomic_load_n(&reap->flags, __ATOMIC_ACQUIRE) & REAP_LIMITED)) return true;
    uint64_t was = reap_share(reap)->pending;
    do
        if (!(uint32_t)was) return true;
    while (!atomic_compare_exchange_weak(&reap_share(reap)->pending, &was, (was << 32) + (was >> 32 << 32)));
    undraw_from(reap_share(reap)->limiter, NULL, false, (uint32_t)was * (size_t)REAP_UNIT);
    *(bool *)is_any = true;
    return (void)depth, true;
}

/* As draw_on, but before it gives up it claims what is pending below the limiter that has too little. */
static struct reap *draw_claiming(struct reap *first, const struct reap *last, size_t bytes, bool is_adopting)
{
    struct reap *met = draw_on(first, last, false, bytes);
    if (!met || !were_pending) return met;
    if (!is_adopting) reap_tree_adopt_begin();
    for (bool is_any = true; met && is_any; met = draw_on(first, last, false, bytes)) {
        is_any = false;
        claim_pending(met, 0, &is_any);
        reap_tree_lock(&met->below);
        reap_tree_walk(&met->below, claim_pending, &is_any);
        reap_tree_unlock(&met->below);
    }
    if (!is_adopting) reap_tree_adopt_end();
    return met;
}

bool reap_quota_draw(struct reap *reap, size_t bytes)
{
    ASSERT(reap->flags & REAP_LIMITED && bytes % REAP_UNIT == 0);
    return !draw_claiming(reap_share(reap)->limiter, NULL, bytes, false) || refuse();
}

void reap_quota_undraw(struct reap *reap, size_t bytes)
{
    undraw_from(reap_share(reap)->limiter, NULL, false, bytes);
}

size_t reap_quota_left(const struct reap *reap)
{
    size_t least = SIZE_MAX;
    if (!(reap->flags & REAP_LIMITED)) return least;
    const struct reap *limiter = reap_share(reap)->limiter;
    for (; limiter; limiter = reap_share(limiter)->above) {
        size_t left = atomic_load_explicit(&reap_share(limiter)->left, memory_order_relaxed);
        if (left < least) least = left;
    }
    return least;
}

/* --- one reap's share ------------------------------------------------------------------------ */

void reap_quota_suspend(struct reap *reap)
{
    struct reap_share *share = reap_share(reap);
    ASSERT(reap->flags & REAP_LIMITED);
    ASSERT(!share->from || (size_t)(reap->bump - share->from) <= share->room);
    if (share->from) share->room -= (uint32_t)(reap->bump - share->from);
    share->from = NULL;
    reap_choose_mode(reap);
}

void reap_quota_resume(struct reap *reap)
{
    struct reap_share *share = reap_share(reap);
    ASSERT(reap->flags & REAP_LIMITED && share->room <= share->drawn);
    share->from = reap->bump;
    if ((size_t)(reap->end - reap->bump) > share->room) reap->end = reap->bump + share->room;
    ASSERT(reap->bump <= reap->end && reap->end <= reap->bump_max);
}

/* Draws an extra from the slack of the limiters; none, when many reaps have drawn theirs already. */
static void take_extra(struct reap_share *share)
{
    size_t extra = EXTRA_MAX;
    for (struct reap *limiter = share->limiter; limiter; limiter = reap_share(limiter)->above) {
        size_t part = atomic_load_explicit(&reap_share(limiter)->slack, memory_order_relaxed) / EXTRA_SHARE;
        if (part < extra) extra = part;
    }
    extra = whole_units(extra);
    if (extra && !draw_on(share->limiter, NULL, true, extra)) share->extra = (uint32_t)extra;
}

/* Takes bytes of the room, after a draw if need be: also of half of the extra more, if the limiters have it.
 * Returns NULL, or the limiter that had too little. */
static struct reap *take_room(struct reap_share *share, size_t bytes)
{
    if (share->room < bytes && !share->extra) take_extra(share);
    size_t missing = share->room < bytes ? bytes - share->room : 0;
    size_t more = missing ? missing + whole_units(share->extra / 2) : 0;
    struct reap *met = draw_on(share->limiter, NULL, false, more);
    if (met) met = draw_claiming(share->limiter, NULL, more = missing, false);
    if (met) return met;
    share->drawn += more;
    share->room = (uint32_t)(share->room + more - bytes);
    return NULL;
}

/* Gives back drawn bytes, and the extra too. First the share is lowered, here and elsewhere: so the child of
 * a fork in between may lose bytes, but never has them twice. */
static void retire_share(struct reap_share *share, size_t bytes)
{
    size_t extra = share->extra;
    ASSERT(share->drawn >= bytes && share->limiter);
    share->drawn -= bytes;
    share->room = share->extra = 0;
    atomic_signal_fence(memory_order_release);
    undraw_from(share->limiter, NULL, false, bytes);
    undraw_from(share->limiter, NULL, true, extra);
}

void reap_quota_give_room(struct reap *reap)
{
    if (!(reap->flags & REAP_LIMITED)) return;
    reap_quota_suspend(reap);
    retire_share(reap_share(reap), reap_share(reap)->room);
    reap_quota_resume(reap);
}

/* Half of the extra stays as room: so one object that comes and goes does not draw each time. */
void reap_quota_give(struct reap *reap, size_t bytes)
{
    struct reap_share *share = reap_share(reap);
    size_t room = share->room + bytes, keep = whole_units(share->extra / 2), surplus = room - keep;
    ASSERT(reap->flags & REAP_LIMITED && bytes % REAP_UNIT == 0 && !share->from && room <= share->drawn);
    share->room = (uint32_t)(room <= share->extra ? room : keep);
    if (room <= share->extra) return;
    share->drawn -= surplus;
    atomic_signal_fence(memory_order_release);
    undraw_from(share->limiter, NULL, false, surplus);
}

/* --- the function ---------------------------------------------------------------------------- */

/* The reaps that the function that runs in this thread must not end, on the stack of its caller: the one that
 * asks, and the one whose limit is met. NULL: no function runs. */
static __thread struct reap *const *needed __attribute__((tls_model("initial-exec")));

void reap_quota_gone(struct reap *reap)
{
    if (UNLIKELY(needed != NULL) && (reap == needed[0] || reap == needed[1]))
        reap_misuse_handle("reapOnLimit", reap_handle(reap));
}

/* Where an object lives, and how long it is; all zero: none lives there. */
struct place {
    const struct reap_chunk *chunk;
    const struct reap *owner;
    size_t end;
};

static struct place object_place(const void *object)
{
    const struct reap_chunk *chunk = object ? chunk_of(object, NULL) : NULL;
    bool is_live = chunk && reap_chunk_is_live(chunk) && reap_is_object(chunk, object);
    if (!is_live || reap_is_freed(object)) return (struct place){NULL, NULL, 0};
    return (struct place){chunk, chunk->owner, reap_block_end(chunk, reap_unit(object))};
}

/* Calls the function of the limiter that is met. The function may use the reap, whose limit is resumed, and
 * which may be below other limits afterwards. Aborts if the object to be resized or moved (NULL: none) is
 * another one then. False: there is no function, or one runs that asks for this. */
static NOINLINE bool notify(struct reap *reap, struct reap *met, size_t asked, const void *object)
{
    ASSERT(reap->flags & REAP_LIMITED);
    void *given = reap_handle(met);
    if (!reap_share(met)->fn || needed) return false;
    struct reap *const mine[] = {reap_known(reap), met};
    const struct place was = object_place(object);
    needed = mine;
    reap_share(met)->fn(&given, asked, reap_share(met)->arg);
    needed = NULL;
    const struct place is = object_place(object);
    if (is.chunk != was.chunk || is.owner != was.owner || is.end != was.end)
        report_misuse("reapOnLimit", object, "not a live object");
    return true;
}

/* In a part of a shared reap that this thread has only entered, functions must not run. The call fails then,
 * and is tried again when the thread has taken the reap (shared_use.h). */
static NOINLINE bool take_more(struct reap *reap, size_t bytes, size_t asked, const void *object)
{
    struct reap *met = take_room(reap_share(reap), bytes);
    if (met && reap_is_part(reap) && !reap_shared_is_taken(reap)) return false;
    if (met) {
        reap_quota_resume(reap);
        bool is_called = notify(reap, met, asked, object);
        if (!(reap->flags & REAP_LIMITED)) return true;
        reap_quota_suspend(reap);
        if (is_called) met = take_room(reap_share(reap), bytes);
    }
    return !met || refuse();
}

bool reap_quota_take(struct reap *reap, size_t bytes, size_t asked, const void *object)
{
    struct reap_share *share = reap_share(reap);
    ASSERT(reap->flags & REAP_LIMITED && bytes % REAP_UNIT == 0 && !share->from);
    if (UNLIKELY(share->room < bytes)) return take_more(reap, bytes, asked, object);
    share->room -= (uint32_t)bytes;
    return true;
}

/* --- limits ---------------------------------------------------------------------------------- */

static struct reap *first_limiter(const struct reap *reap)
{
    return reap && reap->flags & REAP_LIMITED ? reap_share(reap)->limiter : NULL;
}

static struct reap *limiter_above(const struct reap *reap)
{
    return reap_quota_of(reap) ? reap_share(reap)->above : first_limiter(reap);
}

/* Gives a reap a share, with so many bytes drawn. The flag comes last: at every moment (a fork) a limited
 * reap has a share, and each of its limiters has accounts. */
static void join_limiter(struct reap *reap, struct reap *limiter, struct reap *above, size_t drawn)
{
    struct reap_share *share = reap_share(reap);
    ASSERT(!(reap->flags & REAP_LIMITED));
    share->limiter = limiter;
    share->above = above;
    share->from = NULL;
    share->drawn = drawn;
    share->room = share->extra = 0;
    atomic_init(&share->pending, 0);
    if (limiter != reap) share->bytes = 0;
    if (!(reap->flags & REAP_ON_LIMIT)) share->fn = NULL;
    __atomic_store_n(&reap->flags, reap->flags | REAP_LIMITED, __ATOMIC_RELEASE); /* for reap_quota_count */
}

void reap_quota_begin(struct reap *reap, const struct reap *parent)
{
    ASSERT(parent->flags & REAP_LIMITED && reap_share(parent)->limiter);
    join_limiter(reap, reap_share(parent)->limiter, NULL, 0);
    reap_quota_resume(reap);
}

/* Sets the accounts of a limiter of so many bytes below which `drawn` are drawn, and no room or extra. */
static void set_accounts(struct reap *limiter, size_t bytes, size_t drawn)
{
    struct reap_share *share = reap_share(limiter);
    ASSERT(whole_units(bytes) >= drawn);
    share->bytes = bytes;
    atomic_store_explicit(&share->left, whole_units(bytes) - drawn, memory_order_relaxed);
    atomic_store_explicit(&share->slack, whole_units(bytes / SLACK_SHARE), memory_order_relaxed);
}

/* Forgets what is pending in a reap that ends: what was claimed is drawn no more. (A fork loses bytes.) */
static NOINLINE void forget_pending(struct reap_share *share)
{
    size_t had = claimed(atomic_fetch_and(&share->pending, -(UINT64_C(1) << 32))) * REAP_UNIT;
    share->drawn = share->drawn > had ? share->drawn - had : 0;
    atomic_signal_fence(memory_order_release);
    share->pending = 0;
}

/* Threads that a forked child lacks may have been amid a draw: an empty limiter sets its accounts anew. */
void reap_quota_end(struct reap *reap)
{
    struct reap_share *share = reap_share(reap);
    ASSERT(reap->flags & REAP_LIMITED && share->limiter);
    reap_chunk_adopt(reap);
    if (UNLIKELY(atomic_load_explicit(&share->pending, memory_order_relaxed) != 0)) forget_pending(share);
    retire_share(share, share->drawn);
    if (process_generation > 1 && share->bytes && !reap->below.first) set_accounts(reap, share->bytes, 0);
    reap_choose_mode(reap);
    reap_quota_resume(reap);
}

/* Gives back all rooms and extras of a held tree. Returns its live bytes, without the pending ones. */
static size_t squeeze(struct reap *top)
{
    size_t live = 0;
    bool is_any = false;
    for (struct reap *reap = top; reap; reap = reap_part_after(top, reap)) {
        reap_chunk_adopt(reap);
        reap_quota_give_room(reap);
        claim_pending(reap, 0, &is_any);
        live += reap_chunk_live_bytes(reap);
        if (reap->flags & REAP_LIMITED) live -= claimed(reap_share(reap)->pending) * REAP_UNIT;
    }
    return live;
}

/* Gives a reap with objects a share. */
static void join_with_objects(struct reap *reap, struct reap *limiter, struct reap *above)
{
    join_limiter(reap, limiter, above, reap_chunk_live_bytes(reap));
    reap_hide_tables(reap);
    reap_choose_mode(reap);
    reap_quota_resume(reap);
}

static void leave_limiter(struct reap *reap)
{
    reap_quota_suspend(reap);
    reap->flags &= (uint8_t)~REAP_LIMITED;
    reap_show_tables(reap);
}

static void change_limiter(struct reap *reap, struct reap *limiter, struct reap *above)
{
    if (limiter == reap) reap_share(reap)->above = above;
    atomic_signal_fence(memory_order_release); /* a fork finds a whole way up */
    reap_share(reap)->limiter = limiter;
    if (limiter != reap) reap_share(reap)->above = NULL;
}

/* Tells the reaps of a held and squeezed tree their limiters anew, parents before their children: a reap with
 * a limit is its own, and others have their parent's. The top's are given. */
static void settle_tree(struct reap *top, struct reap *limiter, struct reap *above)
{
    for (struct reap *reap = top; reap; reap = reap_part_after(top, reap)) {
        if (reap != top) above = first_limiter(reap->parent);
        if (reap != top) limiter = reap_quota_of(reap) ? reap : above;
        bool is_limited = reap->flags & REAP_LIMITED;
        if (limiter && is_limited)
            change_limiter(reap, limiter, above);
        else if (limiter)
            join_with_objects(reap, limiter, limiter == reap ? above : NULL);
        else if (is_limited)
            leave_limiter(reap);
    }
}

bool reap_quota_set(struct reap *reap, size_t bytes)
{
    ASSERT_SOUND(reap);
    if (!bytes && !(reap->flags & REAP_LIMITED)) return true;
    size_t live = squeeze(reap);
    if (bytes && live > whole_units(bytes)) return refuse();
    struct reap *above = limiter_above(reap);
    if (bytes) set_accounts(reap, bytes, live);
    settle_tree(reap, bytes ? reap : above, above);
    if (!bytes) reap_share(reap)->bytes = 0; /* when no reap draws here any more */
    return true;
}

/* --- from reap to reap ----------------------------------------------------------------------- */

/* The first limiter of one chain that is also in the other one, or NULL. */
static struct reap *common(struct reap *limiter, struct reap *other)
{
    for (; limiter; limiter = reap_share(limiter)->above)
        for (struct reap *it = other; it; it = reap_share(it)->above)
            if (it == limiter) return limiter;
    return NULL;
}

/* Draws for an object that moves, on the limiters of the moment. Returns the one that refuses, or NULL. */
static struct reap *draw_passing(const struct reap *from, const struct reap *to, size_t bytes)
{
    struct reap *first = first_limiter(to);
    return draw_claiming(first, common(first, first_limiter(from)), bytes, false);
}

bool reap_quota_pass(struct reap *from, const void *object, struct reap *to, size_t bytes)
{
    ASSERT(from != to && bytes % REAP_UNIT == 0);
    struct reap *met = draw_passing(from, to, bytes);
    if (met) {
        reap_quota_give_room(to); /* it may cover the missing bytes */
        met = draw_passing(from, to, bytes);
        if (met && notify(to, met, bytes, object)) met = draw_passing(from, to, bytes);
    }
    if (met) return refuse();
    if (to->flags & REAP_LIMITED) reap_share(to)->drawn += bytes;
    return true;
}

void reap_quota_passed(struct reap *from, struct reap *to, size_t bytes)
{
    struct reap *first = first_limiter(from);
    if (first) reap_share(from)->drawn -= bytes;
    atomic_signal_fence(memory_order_release);
    undraw_from(first, common(first, first_limiter(to)), false, bytes);
}

/* --- to another parent ----------------------------------------------------------------------- */

bool reap_quota_adopt_changes(const struct reap *top, const struct reap *parent)
{
    return limiter_above(top) != first_limiter(parent);
}

bool reap_quota_adopt(struct reap *top, const struct reap *parent)
{
    struct reap *from = limiter_above(top), *to = first_limiter(parent), *shared = common(to, from);
    size_t live = squeeze(top);
    if (draw_claiming(to, shared, live, true)) return refuse();
    settle_tree(top, reap_quota_of(top) ? top : to, to);
    undraw_from(from, shared, false, live); /* last: see retire_share */
    return true;
}
