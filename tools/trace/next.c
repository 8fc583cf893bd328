/* SPDX-License-Identifier: Apache-2.0 */
#include "next.h"

#include <dlfcn.h>
#include <stdint.h>

enum { EARLY = 1 << 16, UNIT = 16 };
static _Alignas(UNIT) char early[EARLY];
static size_t early_used;
__thread bool next_finding;

void *next_find(const char *name)
{
    bool was = next_finding;
    next_finding = true;
    void *found = dlsym(RTLD_NEXT, name);
    next_finding = was;
    return found;
}

/* A block has its size in the unit before it. */
void *next_early(size_t size)
{
    if (size > EARLY) return NULL;
    size_t bytes = (size + 2 * UNIT - 1) / UNIT * UNIT;
    size_t at = __atomic_fetch_add(&early_used, bytes, __ATOMIC_RELAXED);
    if (at + bytes > EARLY) return NULL;
    *(size_t *)(early + at) = size;
    return early + at + UNIT;
}

bool next_is_early(const void *block) { return (uintptr_t)block - (uintptr_t)early < EARLY; }

size_t next_early_size(const void *block) { return *(const size_t *)((const char *)block - UNIT); }
