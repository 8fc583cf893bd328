/* SPDX-License-Identifier: Apache-2.0 */
/* cleanup.c: functions that a reap calls when it ends. */
#include "reap/cleanup.h"

#include "reap/reap_alloc.h"

static void retire(struct reap *reap, struct reap_cleanup *cleanup)
{
    ASSERT(cleanup != reap->spare_cleanups && cleanup != reap->cleanups);
    cleanup->next = reap->spare_cleanups;
    reap->spare_cleanups = cleanup;
}

bool reap_cleanup_add(struct reap *reap, void (*fn)(void *arg), void *arg)
{
    struct reap_cleanup *cleanup = reap->spare_cleanups;
    if (cleanup)
        reap->spare_cleanups = cleanup->next;
    else
        cleanup = reap_alloc_record(reap, sizeof *cleanup);
    if (!cleanup) return false;
    ASSERT(!reap->cleanups || reap->cleanups->depth <= reap_depth(reap));
    *cleanup = (struct reap_cleanup){.next = reap->cleanups, .fn = fn, .arg = arg, .depth = reap_depth(reap)};
    reap->cleanups = cleanup;
    return true;
}

bool reap_cleanup_cancel(struct reap *reap, void (*fn)(void *arg), void *arg)
{
    for (struct reap_cleanup **link = &reap->cleanups; *link; link = &(*link)->next) {
        struct reap_cleanup *cleanup = *link;
        if (cleanup->fn != fn || cleanup->arg != arg) continue;
        *link = cleanup->next;
        retire(reap, cleanup);
        return true;
    }
    return false;
}

bool reap_cleanup_run_latest(struct reap *reap, unsigned depth)
{
    struct reap_cleanup *cleanup = reap->cleanups;
    if (!cleanup || cleanup->depth < depth) return false;
    struct reap_cleanup call = *cleanup;
    ASSERT(call.fn != NULL);
    reap->cleanups = cleanup->next;
    retire(reap, cleanup);
    call.fn(call.arg);
    return true;
}
