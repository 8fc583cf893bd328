/* SPDX-License-Identifier: Apache-2.0 */
#include "hoard/purge_thread.h"

#include "arena/arena.h"
#include "base/options.h"

#include <errno.h>
#include <time.h>

static void sleep_ms(unsigned ms)
{
    struct timespec left = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};
    while (clock_nanosleep(CLOCK_MONOTONIC, 0, &left, &left) == EINTR) continue;
}

static void *purge(void *unused)
{
    (void)unused;
    unsigned ms = options.purge_ms != 0 ? options.purge_ms : 1;
    for (;;) {
        arena_wait_for_unused();
        sleep_ms(ms);
        arena_purge(options.purge_ms);
    }
    return NULL;
}

static _Atomic bool asked;

static bool is_wanted(void)
{
    return options.purge_thread == PURGE_THREAD_ALWAYS ||
           (options.purge_thread == PURGE_THREAD_AUTO && asked);
}

/* Most children exec at once, and need no thread that the parent asked for. */
static void in_forked_child(void) { atomic_store(&asked, false); }

struct service purge_thread = {.name = "reap-purge",
                               .stack = 64 * KIB,
                               .run = purge,
                               .is_wanted = is_wanted,
                               .in_forked_child = in_forked_child};

void purge_thread_ask(void)
{
    if (options.purge_thread != PURGE_THREAD_AUTO) return;
    if (!atomic_exchange(&asked, true)) service_ask(&purge_thread);
}
