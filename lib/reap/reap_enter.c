/* SPDX-License-Identifier: Apache-2.0 */
/* reap_enter.c: the reaps that threads have entered. */
#include "reap/reap_enter.h"

#include "reap.h"

#include <errno.h>

#include "base/report.h"
#include "hoard/redirect.h"
#include "reap/reap_shared.h"
#include "reap/reap_tree.h"

static __thread uint16_t first_heap;       /* how often the heap is entered below all reaps */
static __thread uint32_t shared_entered;   /* as `entered`, of this thread in the shared reap */
static __thread struct reap *shared_outer; /* the shared reap's `outer` */
static __thread struct reap *heap_outer;   /* the heap's: the reap that it is above, if it is innermost */
__thread uint8_t reap_kept_root;           /* here, since a library's static TLS is counted in eight bytes */

/* The entries of the heap above a reap are counted in the reap's `entered`, in the upper half. */
#define HEAP_ENTERED (1U << 16)

bool reap_is_entered(struct reap *reap)
{
    if (reap->flags & REAP_ENTERED && reap->entered_in != process_generation)
        reap->flags &= (uint8_t)~REAP_ENTERED;
    return reap->flags & REAP_ENTERED;
}

static void begin_entered(struct reap *reap)
{
    ASSERT(!(reap->flags & REAP_ENTERED));
    reap->flags |= REAP_ENTERED;
    reap->entered_in = process_generation;
    reap->entered = 0;
}

/* --- the chain ------------------------------------------------------------------------------- */

/* An `outer` with this bit says that the heap is between the two reaps. */
static struct reap *with_heap(struct reap *reap) { return reap ? (void *)((uintptr_t)reap | 1) : NULL; }
static bool has_heap(const struct reap *outer) { return (uintptr_t)outer & 1; }
static struct reap *without_heap(struct reap *outer) { return (void *)((uintptr_t)outer & ~(uintptr_t)1); }

/* Makes a reap the innermost one. Returns its `outer`. */
static struct reap *begin_innermost(struct reap *reap)
{
    struct reap *outer = redirect_reap ? redirect_reap : with_heap(heap_outer);
    heap_outer = NULL;
    redirect_reap = reap;
    return outer;
}

static void end_innermost(struct reap *outer)
{
    heap_outer = has_heap(outer) ? without_heap(outer) : NULL;
    redirect_reap = has_heap(outer) ? NULL : outer;
}

static uint32_t *entries(struct reap *reap)
{
    return reap_is_shared(reap) ? &shared_entered : &reap->entered;
}

/* The heap is innermost where `redirect_reap` is NULL, so malloc needs no test for it. */
static void enter_the_heap(void)
{
    if (redirect_reap) heap_outer = redirect_reap;
    redirect_reap = NULL;
    if (heap_outer)
        *entries(heap_outer) += HEAP_ENTERED;
    else
        first_heap++;
}

static void leave_the_heap(void)
{
    if (!heap_outer && first_heap-- == 0) report_misuse("reapLeave", NULL, "no reap is entered");
    if (heap_outer && (*entries(heap_outer) -= HEAP_ENTERED) < HEAP_ENTERED) end_innermost(heap_outer);
}

/* --- the calls ------------------------------------------------------------------------------- */

static void enter_shared(struct reap *reap, const char *call)
{
    if (shared_entered > 0 && reap != redirect_reap)
        report_misuse(call, reap_handle(reap), "a shared reap is entered, and not this one innermost");
    if (shared_entered++ > 0) return;
    if (!reap_is_entered(reap)) begin_entered(reap);
    reap->entered++;
    ASSERT(reap_is_shared(reap) && reap->flags & REAP_ENTERED);
    shared_outer = begin_innermost(reap);
}

static void leave_shared(struct reap *shared)
{
    ASSERT(shared_entered != 0);
    if (--shared_entered > 0) return;
    reap_shared_hold_again(shared);
    HELD struct reap *reap = shared;
    ASSERT(reap->entered != 0 && shared_outer != shared);
    if (--reap->entered == 0) reap->flags &= (uint8_t)~REAP_ENTERED;
    end_innermost(shared_outer);
}

static void enter(struct reap *reap, const char *call)
{
    if (!reap_is_entered(reap)) {
        begin_entered(reap);
        reap->outer = begin_innermost(reap);
    } else if (reap != redirect_reap) {
        report_misuse(call, reap, "reap is entered, and not the innermost");
    }
    reap->entered++;
    ASSERT(reap->flags & REAP_ENTERED && redirect_reap == reap && reap->outer != reap);
}

static void enter_any(void **handle, const char *call)
{
    if (!handle || !*handle) {
        enter_the_heap();
        return;
    }
    HELD struct reap *reap = reap_hold(handle, call);
    redirect_start();
    if (UNLIKELY(reap_is_shared(reap)))
        enter_shared(reap, call);
    else
        enter(reap, call);
}

/* Tells that malloc is another library's: by a line once in a process, and by errno each time. */
static COLD void tell_elsewhere(void)
{
    static _Atomic(bool) told;
    if (!atomic_exchange(&told, true))
        report_line(
            "reapEnter: malloc is not libreap-malloc's, so nothing that it gives comes from the reap: "
            "link libreap-malloc first, or preload it");
    errno = ENOTSUP;
}

void reapEnter(void **handle)
{
    enter_any(handle, "reapEnter");
    if (UNLIKELY(!redirect_on) && redirect_reap) tell_elsewhere();
}

void reapEnterQuietly(void **handle) { enter_any(handle, "reapEnterQuietly"); }

void *reapEntered(void)
{
    struct reap *reap = redirect_reap;
    return reap ? reap_handle(reap) : NULL;
}

void reapLeave(void)
{
    struct reap *reap = redirect_reap;
    if (!reap) {
        leave_the_heap();
        return;
    }
    if (UNLIKELY(reap_is_shared(reap))) {
        leave_shared(reap);
        return;
    }
    ASSERT(reap->entered != 0 && reap->flags & REAP_ENTERED);
    if (--reap->entered > 0) return;
    reap->flags &= (uint8_t)~REAP_ENTERED;
    end_innermost(reap->outer);
}

static struct reap *below(const struct reap *reap)
{
    return without_heap(reap_is_shared(reap) ? shared_outer : reap->outer);
}

static struct reap *innermost(void) { return redirect_reap ? redirect_reap : heap_outer; }

bool reap_is_entered_here(const struct reap *reap)
{
    const struct reap *entered = innermost();
    while (entered && entered != reap) entered = below(entered);
    return entered != NULL;
}

/* --- fork ------------------------------------------------------------------------------------ */

void reap_enter_take_along(void)
{
    for (struct reap *reap = innermost(); reap; reap = below(reap)) {
        reap->entered_in = process_generation;
        if (reap_is_shared(reap)) reap->entered = 1;
    }
}
