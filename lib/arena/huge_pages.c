/* SPDX-License-Identifier: Apache-2.0 */
#include "arena/huge_pages.h"

#include "arena/arena_table.h"
#include "base/options.h"
#include "os/pages.h"

enum { HUGE_PAGE = 2 * 1024 * 1024, SLOW_NS = 1000000, PAUSE = 4, PAUSE_MAX = 1024 };

static _Atomic unsigned pause;   /* arenas without them after the latest slow one; 0: it was quick */
static _Atomic unsigned without; /* of these, the arenas still to be made */

bool huge_pages_are_quick(unsigned made)
{
    unsigned left = atomic_load_explicit(&without, memory_order_relaxed);
    if (left == 0) return true;
    atomic_store_explicit(&without, left > made ? left - made : 0, memory_order_relaxed);
    return false;
}

/* Two threads may overwrite each other's step: the next huge page corrects it. */
static void set_pause(unsigned count)
{
    atomic_store_explicit(&pause, count, memory_order_relaxed);
    atomic_store_explicit(&without, count, memory_order_relaxed);
}

bool huge_pages_touch(void *start)
{
    ASSERT((uintptr_t)start % SUPERBLOCK == 0);
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

/* With thp=grown arenas of superblocks get huge pages, in programs that hold much already. They lose them
 * when memory of the arena goes back to the OS: the kernel would fill the hole again. Sparse superblocks get
 * none, nor do larger objects: these may be tables and buffers of which little is ever touched. A program of
 * several threads gets no more: page faults of other threads wait, on a busy machine for long, while the
 * kernel makes room for a huge page and clears it, or changes the setting of a range. */
enum { GROWN = 16 * 1024 * 1024 /* bytes held */ };

static bool loses_them(struct arena *arena)
{
    return arena != NULL && arena_mapping(arena) == 0 && arena->huge && atomic_exchange(&arena->huge, false);
}

void arena_no_huge_page_here(struct arena *arena)
{
    if (loses_them(arena)) pages_huge(arena->base, ARENA, false);
}

/* The arenas beside it lose them too, by one call: page faults wait while the kernel changes a range. */
void arena_no_huge_pages(struct arena *arena)
{
    if (!loses_them(arena)) return;
    char *from = arena->base, *to = arena->base + ARENA;
    for (unsigned n = 1; n < ARENA_TOGETHER && loses_them(pagemap_find(from - ARENA)); n++) from -= ARENA;
    for (unsigned n = 1; n < ARENA_TOGETHER && loses_them(pagemap_find(to)); n++) to += ARENA;
    ASSERT(from <= arena->base && to > arena->base && (size_t)(to - from) % ARENA == 0);
    pages_huge(from, (size_t)(to - from), false);
}

bool arena_mapping_may_be_huge(void) { return options.thp == THP_GROWN; }

struct arena_nature arena_nature_for(unsigned n, bool sparse, unsigned arenas_made)
{
    if (n > ARENA_SLOTS && arena_mapping_may_be_huge())
        return (struct arena_nature){.huge = true, .sparse = true, .as_system = true};
    bool grown = options.thp == THP_GROWN && arenas.held >= GROWN && !arenas.shared;
    bool wanted = grown && !sparse && (n < ARENA_MAYBE_SPARSE || arenas_made > 1);
    return (struct arena_nature){.huge = wanted && huge_pages_are_quick(arenas_made),
                                 .sparse = grown && sparse};
}

void arena_advise(char *base, size_t size, struct arena_nature nature)
{
    ASSERT((uintptr_t)base % ARENA == 0 && size % ARENA == 0);
    if (options.thp == THP_SYSTEM || nature.as_system) return;
    pages_huge(base, size, nature.huge || options.thp == THP_ALWAYS);
}

void arena_advise_mapping(struct arena *arena, size_t size)
{
    if (options.thp == THP_ALWAYS || options.thp == THP_NEVER)
        pages_huge(arena->base, size, options.thp == THP_ALWAYS);
}

/* arena_no_huge_pages takes huge pages from the arenas beside it too, mostly made together with it. */
void arena_touch(struct superblock *sb)
{
    struct arena *arena = pagemap_find(slot_start(sb));
    ASSERT(arena != NULL && arena->mapping == 0);
    if (arena->huge && huge_pages_touch(slot_start(sb))) arena_no_huge_pages(arena);
}
