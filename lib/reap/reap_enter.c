/* SPDX-License-Identifier: Apache-2.0 */
/* reap_enter.c: the reaps that threads have entered. */
#include "reap/reap_enter.h"

#include "reap.h"

#include <errno.h>

#include "base/report.h"
#include "hoard/redirect.h"
#include "reap/reap_shared.h"
#include "reap/reap_tree.h"

static __thread unsigned shared_entered;   /* how often this thread has entered the shared reap */
static __thread struct reap *shared_outer; /* the reap that was entered before the shared reap */
__thread uint8_t reap_kept_root;           /* here, since a library's static TLS is counted in eight bytes */

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

/* --- the calls ------------------------------------------------------------------------------- */

static void enter_shared(struct reap *reap, const char *call)
{
    if (shared_entered > 0 && reap != redirect_reap)
        report_misuse(call, reap_handle(reap), "a shared reap is entered, and not this one innermost");
    if (shared_entered++ > 0) return;
    if (!reap_is_entered(reap)) begin_entered(reap);
    reap->entered++;
    ASSERT(reap_is_shared(reap) && reap->flags & REAP_ENTERED);
    shared_outer = redirect_reap;
    redirect_reap = reap;
}

static void leave_shared(struct reap *shared)
{
    ASSERT(shared_entered != 0);
    if (--shared_entered > 0) return;
    reap_shared_hold_again(shared);
    HELD struct reap *reap = shared;
    ASSERT(reap->entered != 0 && shared_outer != shared);
    if (--reap->entered == 0) reap->flags &= (uint8_t)~REAP_ENTERED;
    redirect_reap = shared_outer;
}

static void enter(struct reap *reap, const char *call)
{
    if (!reap_is_entered(reap)) {
        begin_entered(reap);
        reap->outer = redirect_reap;
        redirect_reap = reap;
    } else if (reap != redirect_reap) {
        report_misuse(call, reap, "reap is entered, and not the innermost");
    }
    reap->entered++;
    ASSERT(reap->flags & REAP_ENTERED && redirect_reap == reap && reap->outer != reap);
}

static void enter_any(void **handle, const char *call)
{
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
    if (UNLIKELY(!redirect_on)) tell_elsewhere();
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
    if (!reap) report_misuse("reapLeave", NULL, "no reap is entered");
    if (UNLIKELY(reap_is_shared(reap))) {
        leave_shared(reap);
        return;
    }
    ASSERT(reap->entered != 0 && reap->flags & REAP_ENTERED);
    if (--reap->entered > 0) return;
    reap->flags &= (uint8_t)~REAP_ENTERED;
    redirect_reap = reap->outer;
}

/* --- fork ------------------------------------------------------------------------------------ */

void reap_enter_take_along(void)
{
    for (struct reap *reap = redirect_reap; reap;) {
        bool shared = reap_is_shared(reap);
        reap->entered_in = process_generation;
        if (shared) reap->entered = 1;
        reap = shared ? shared_outer : reap->outer;
    }
}
