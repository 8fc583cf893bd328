/* SPDX-License-Identifier: Apache-2.0 */
/* profile_stacks.c: the stacks that hold most, of a reap and those below it, or of all.
 *
 * For the moment that a limit strikes, when there may be no memory: what this needs is static, and has no
 * pages before the first call. If the mappings cannot be read, ld.so's names of functions have to do.
 */
#include <string.h>

#include "profile_write.h"
#include "tools/common/elf_names.h"
#define REAP_OPTIONAL
#include "reap.h"

enum { MOST = 10, REAPS = 1 << 12 /* of a tree; others are left out */, LINE = 4096 };

struct top {
    struct profile_sum sum;
    const char *name;
    unsigned depth;
    void *frames[PROFILE_DEPTH];
};

static const void *reaps[2 * REAPS]; /* by address */
static unsigned n_reaps;
static struct profile_sum sums[PROFILE_STACKS]; /* zeros between calls */
static uint32_t n_stacks;                       /* of these, that the walk has seen */
static struct top top[MOST], none;

static const void **entry_of(const void *reap)
{
    size_t i = (uintptr_t)reap / 16;
    while (reaps[i % (2 * REAPS)] && reaps[i % (2 * REAPS)] != reap) i++;
    return &reaps[i % (2 * REAPS)];
}

static bool is_wanted(const void *reap) { return reap && *entry_of(reap); }

static int want(const struct reap_view *view, void *unused)
{
    (void)unused;
    *entry_of(view->reap) = view->reap;
    return ++n_reaps == REAPS;
}

/* Under the table's lock. */
static void insert(const struct profile_stack *stack, void *const *frames, const char *name, void *unused)
{
    (void)unused;
    const struct profile_sum sum = sums[n_stacks];
    sums[n_stacks++] = none.sum;
    unsigned at = MOST;
    while (at > 0 && top[at - 1].sum.bytes < sum.bytes) at--;
    if (at == MOST) return;
    memmove(&top[at + 1], &top[at], (MOST - 1 - at) * sizeof *top);
    top[at] = (struct top){.sum = sum, .name = *name ? name : "malloc", .depth = stack->depth};
    memcpy(top[at].frames, frames, stack->depth * sizeof *frames);
}

/* The call is before the address to which it returns. */
static void write_line(const struct top *of, bool has_maps, char line[LINE])
{
    char function[80];
    int n =
        snprintf(line, LINE, "%.0f bytes in %.0f objects of %s:", of->sum.bytes, of->sum.objects, of->name);
    for (unsigned i = 0; i < of->depth && n < LINE; i++) {
        uintptr_t address = (uintptr_t)of->frames[i] - 1;
        // NOLINTNEXTLINE(performance-no-int-to-ptr): an address of code
        const struct profile_map *map = has_maps ? profile_map_of((void *)address) : NULL;
        symbol_write(address, map, function, sizeof function);
        n += snprintf(line + n, LINE - (size_t)n, "%s%s", i ? " < " : " ", function);
    }
}

void profile_largest_stacks(void **reap, void (*fn)(const char *line, const void *arg), const void *arg)
{
    static char line[LINE];
    memset(reaps, 0, reap ? sizeof reaps : 0);
    for (unsigned i = 0; i < MOST; i++) top[i] = none;
    n_reaps = n_stacks = 0;
    if (reap) {
        *entry_of(*reap) = *reap; /* alone, if there is no memory for a survey */
        reapSurvey(reap, want, NULL);
    }
    profile_table_sum(reap ? is_wanted : NULL, sums);
    profile_table_walk(insert, NULL);
    bool has_maps = profile_maps_read();
    for (unsigned i = 0; i < MOST && top[i].sum.bytes >= 0.5; i++) {
        write_line(&top[i], has_maps, line);
        fn(line, arg);
    }
    elf_names_forget();
    if (has_maps) profile_maps_drop();
}
