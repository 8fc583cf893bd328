/* SPDX-License-Identifier: Apache-2.0 */
#include "stacks.h"

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

static unsigned long long seen_adds;

struct modules {
    char *text;
    size_t size, used;
    bool is_first;
};

static int add_module(struct dl_phdr_info *info, size_t size, void *modules_)
{
    struct modules *modules = modules_;
    (void)size;
    if (modules->is_first && info->dlpi_adds == seen_adds) return 1;
    modules->is_first = false;
    seen_adds = info->dlpi_adds;
    uint64_t end = 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        if (part->p_type == PT_LOAD && part->p_vaddr + part->p_memsz > end)
            end = part->p_vaddr + part->p_memsz;
    }
    size_t room = modules->size - modules->used;
    int n =
        snprintf(modules->text + modules->used, room, "%llx %llx %s\n", (unsigned long long)info->dlpi_addr,
                 (unsigned long long)(info->dlpi_addr + end), info->dlpi_name[0] ? info->dlpi_name : "-");
    if (n > 0 && (size_t)n < room) modules->used += (size_t)n;
    return 0;
}

size_t stacks_modules(char *text, size_t size)
{
    struct modules modules = {text, size, 0, true};
    dl_iterate_phdr(add_module, &modules);
    return modules.used;
}

void stacks_clear(void)
{
    if (table) munmap(table, STACKS * sizeof *table);
    table = NULL;
    n_stacks = 0;
    seen_adds = 0;
}
