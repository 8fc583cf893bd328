/* SPDX-License-Identifier: Apache-2.0 */
/* apr_pool_process.c: processes that end with a pool.
 *
 * They are no ordinary cleanups, because each that must be asked to end gets time to do so: all are
 * asked at once, and then wait together.
 */
#include "apr_pool.h"

#include <apr_time.h>
#include <signal.h>

/* The time between SIGTERM and SIGKILL: slept in steps that double, three seconds in all. */
enum { GRACE_USECS = 3000000, FIRST_STEP_USECS = GRACE_USECS / 64 };

struct subprocess {
    struct subprocess *next;
    apr_proc_t *process;
    apr_kill_conditions_e how; /* APR_KILL_NEVER: there is nothing left to do */
};

void apr_pool_note_subprocess(apr_pool_t *pool, apr_proc_t *process, apr_kill_conditions_e how)
{
    struct subprocess *noted = apr_palloc(pool, sizeof *noted);
    if (!noted) return;
    *noted = (struct subprocess){.next = pool->subprocesses, .process = process, .how = how};
    pool->subprocesses = noted;
}

/* Whether it still runs; one that does not, or is no child of ours, is done with. */
static bool runs(struct subprocess *noted)
{
    if (apr_proc_wait(noted->process, NULL, NULL, APR_NOWAIT) == APR_CHILD_NOTDONE) return true;
    noted->how = APR_KILL_NEVER;
    return false;
}

/* Sends each the first signal that it is to have; true when some were asked to end. */
static bool signal_all(struct subprocess *list)
{
    bool asked = false;
    for (struct subprocess *noted = list; noted; noted = noted->next) {
        if (noted->how == APR_KILL_AFTER_TIMEOUT || noted->how == APR_KILL_ONLY_ONCE)
            asked |= apr_proc_kill(noted->process, SIGTERM) == APR_SUCCESS;
        else if (noted->how == APR_KILL_ALWAYS)
            apr_proc_kill(noted->process, SIGKILL);
    }
    return asked;
}

/* Whether one that will be killed at the end of the grace still runs. */
static bool any_in_grace(struct subprocess *list)
{
    bool any = false;
    for (struct subprocess *noted = list; noted; noted = noted->next)
        if (noted->how == APR_KILL_AFTER_TIMEOUT) any |= runs(noted);
    return any;
}

static void wait_grace(struct subprocess *list)
{
    apr_interval_time_t step = FIRST_STEP_USECS;
    apr_sleep(step);
    for (; any_in_grace(list) && step < GRACE_USECS; step *= 2) apr_sleep(step);
}

void pool_end_subprocesses(struct subprocess *list)
{
    struct subprocess *noted = list;
    for (; noted; noted = noted->next) runs(noted);
    if (signal_all(list)) wait_grace(list);
    for (noted = list; noted; noted = noted->next)
        if (noted->how == APR_KILL_AFTER_TIMEOUT) apr_proc_kill(noted->process, SIGKILL);
    for (noted = list; noted; noted = noted->next)
        if (noted->how != APR_KILL_NEVER) apr_proc_wait(noted->process, NULL, NULL, APR_WAIT);
}
