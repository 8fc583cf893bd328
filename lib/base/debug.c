/* SPDX-License-Identifier: Apache-2.0 */
/* debug.c: the functions that assertions of base.h call. Only a debug build has them. */
#include "base/base.h"

#ifdef REAP_DEBUG

#include "base/report.h"

#include <stdlib.h>

unsigned assert_walk_steps = 16;

void assert_failed(const char *file, unsigned line, const char *function, const char *text)
{
    report_line("%s:%u: %s: assertion failed: %s", file, line, function, text);
    abort();
}

/* Threads may overwrite each other's credit: then a walk comes a little later. */
bool assert_affords(_Atomic uint32_t *credit, size_t steps)
{
    size_t have = atomic_load_explicit(credit, memory_order_relaxed) + (size_t)assert_walk_steps;
    bool enough = have >= steps && assert_walk_steps != 0;
    have = enough ? 0 : have;
    atomic_store_explicit(credit, (uint32_t)(have < UINT32_MAX ? have : UINT32_MAX), memory_order_relaxed);
    return enough;
}

#endif
