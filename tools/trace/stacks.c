/* SPDX-License-Identifier: Apache-2.0 */
#include "stacks.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unwind.h>

/* A table of hashes, and behind it nothing: two stacks of one hash of 64 bits are taken for one. */
enum { STACKS = 1 << 20 };
static struct known {
    uint64_t hash; /* 0: none */
    uint32_t number;
} * table;
static uint32_t n_stacks;

struct walk {
    uint64_t *frames;
    unsigned n, depth;
    const void *caller;
};

static _Unwind_Reason_Code step(struct _Unwind_Context *context, void *walk_)
{
    struct walk *walk = walk_;
    uint64_t at = _Unwind_GetIP(context);
    if (walk->n == 0 && at != (uint64_t)(uintptr_t)walk->caller) return _URC_NO_REASON;
    if (at == 0 || walk->n == walk->depth) return _URC_END_OF_STACK;
    walk->frames[walk->n++] = at;
    return _URC_NO_REASON;
}

unsigned stacks_walk(const void *caller, uint64_t *frames, unsigned depth)
{
    struct walk walk = {frames, 0, depth, caller};
    _Unwind_Backtrace(step, &walk);
    if (walk.n > 0) return walk.n;
    frames[0] = (uint64_t)(uintptr_t)caller;
    return 1;
}

static uint64_t hash_of(const uint64_t *frames, unsigned n)
{
    uint64_t hash = n;
    for (unsigned i = 0; i < n; i++) hash = (hash ^ frames[i] ^ hash >> 29) * 0x9e3779b97f4a7c15u;
    return hash | 1;
}

uint32_t stacks_number(const uint64_t *frames, unsigned n, bool *is_new)
{
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    *is_new = false;
    if (!table) {
        void *made = mmap(NULL, STACKS * sizeof *table, PROT_READ | PROT_WRITE, flags, -1, 0);
        if (made == MAP_FAILED) return UINT32_MAX;
        table = made;
    }
    uint64_t hash = hash_of(frames, n);
    struct known *known = &table[hash >> 44];
    while (known->hash != 0 && known->hash != hash) known = known + 1 == table + STACKS ? table : known + 1;
    if (known->hash == hash) return known->number;
    if (n_stacks >= STACKS / 4 * 3) return UINT32_MAX;
    *is_new = true;
    *known = (struct known){hash, n_stacks};
    return n_stacks++;
}

/* --- modules ----------------------------------------------------------------------------------- */

/* Told ones. Once there are more, they are told again when they come again. */
enum { MODULES = 1 << 10 };
static struct module {
    const struct link_map *map;
    const void *begin;
} modules[MODULES];

/* _dl_find_object takes no lock, as the unwinder does not: a lock of ld.so may stay taken in a forked child.
 * A module that was opened where another one had been differs in its map, or is told again in vain. */
static bool is_told(const struct dl_find_object *found)
{
    struct module *known =
        &modules[((uintptr_t)found->dlfo_link_map >> 4 ^ (uintptr_t)found->dlfo_map_start >> 12) % MODULES];
    if (known->map == found->dlfo_link_map && known->begin == found->dlfo_map_start) return true;
    *known = (struct module){found->dlfo_link_map, found->dlfo_map_start};
    return false;
}

size_t stacks_modules(const uint64_t *frames, unsigned n, char *text, size_t size)
{
    size_t used = 0;
    struct dl_find_object found;
    for (unsigned i = 0; i < n; i++) {
        // NOLINTNEXTLINE(performance-no-int-to-ptr): an address of code
        if (_dl_find_object((void *)(uintptr_t)frames[i], &found) != 0 || is_told(&found)) continue;
        const struct link_map *map = found.dlfo_link_map;
        int line =
            snprintf(text + used, size - used, "%llx %llx %s\n", (unsigned long long)map->l_addr,
                     (unsigned long long)(uintptr_t)found.dlfo_map_end, map->l_name[0] ? map->l_name : "-");
        if (line > 0 && (size_t)line < size - used) used += (size_t)line;
    }
    return used;
}

void stacks_clear(void)
{
    if (table) munmap(table, STACKS * sizeof *table);
    table = NULL;
    n_stacks = 0;
    memset(modules, 0, sizeof modules);
}
