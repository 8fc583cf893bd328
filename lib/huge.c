/* SPDX-License-Identifier: Apache-2.0 */
#include "huge.h"

#include "pages.h"

enum { HUGE_PAGE = 2 * 1024 * 1024, SLOW_NS = 1000000, PAUSE = 4, PAUSE_MAX = 1024 };

static _Atomic unsigned pause;   /* arenas without them since the latest slow one; 0: it was quick */
static _Atomic unsigned without; /* of these, those still to be made */

bool huge_are_quick(unsigned arenas)
{
    unsigned left = atomic_load_explicit(&without, memory_order_relaxed);
    if (left == 0) return true;
    atomic_store_explicit(&without, left > arenas ? left - arenas : 0, memory_order_relaxed);
    return false;
}

/* Two threads may lose a step of each other's: there will be another page. */
static void set_pause(unsigned arenas)
{
    atomic_store_explicit(&pause, arenas, memory_order_relaxed);
    atomic_store_explicit(&without, arenas, memory_order_relaxed);
}

bool huge_touch(void *start)
{
    if (((uintptr_t)start & (HUGE_PAGE - 1)) != 0) return false;
    bool slow = pages_touch(start) >= SLOW_NS;
    unsigned last = atomic_load_explicit(&pause, memory_order_relaxed);
    if (slow) {
        unsigned next = last != 0 ? 4 * last : PAUSE;
        set_pause(next < PAUSE_MAX ? next : PAUSE_MAX);
    } else if (last != 0) {
        set_pause(0);
    }
    return slow;
}
