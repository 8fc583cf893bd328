/* SPDX-License-Identifier: Apache-2.0 */
#include "vcpu.h"

#include "arena/arena_table.h"
#include "arena/false_sharing.h"
#include "heap/heap_policy.h"
#include "heap/heap_table.h"
#include "hoard.h"
#include "hoard/init.h"
#include "hoard/malloc_fast.h"

#include <stdio.h>
#include <stdlib.h>

const char *const vcpu_path_names[VCPU_PATHS] = {"fast", "locked"};
struct ledger ledger;
void (*vcpu_on_growth)(void);

static __thread uint32_t id_now __attribute__((tls_model("initial-exec")));
static uint16_t heap_now, thread_now;

bool vcpu_start(enum vcpu_path path, const char *options)
{
    char text[256];
    snprintf(text, sizeof text, "%s,%s", path == VCPU_LOCKED ? "path=locked" : "", options ? options : "");
    setenv("REAP_OPTIONS", text, 1);
    __libc_single_threaded = false; /* so fork takes locks */
    hoard_start();
    intptr_t at = (char *)&id_now - (char *)__builtin_thread_pointer();
    __asm__("" : "+r"(at));       /* in one vector store of both, ld 2.40 does not know the relocation */
    rseq_id_at = cpu.now_at = at; /* the CPU's number as well: topology= speaks of processors */
    return (path == VCPU_FAST) == (cpu.ids != 0);
}

void vcpu_be_thread(unsigned id, unsigned thread)
{
    heap_now = (uint16_t)id;
    thread_now = (uint16_t)thread;
    id_now = id;
    heap_of_thread = (uint16_t)(id + 1);
}

void vcpu_be(unsigned id) { vcpu_be_thread(id, id); }

enum {
    UNITS = SUPERBLOCK / BLOCK_UNIT,
    LINE_UNITS = LINE / BLOCK_UNIT,
    PAGES = 1 << 16,
    NOBODY = UINT16_MAX
};

struct unit {
    uint16_t heap;   /* that malloc gave it to; NOBODY: not live */
    uint16_t thread; /* the same */
    uint16_t freed;  /* by which heap it was last freed, and */
    uint16_t was;    /* whose it was then; NOBODY: never freed */
};

/* Of one superblock. Only units in the first and the last line of a block are marked: no other block can lie
 * in the lines between. */
struct page {
    uintptr_t number;
    uint16_t latest;      /* the heap that malloc last gave a block of it to */
    unsigned live;        /* blocks */
    uint8_t class[UNITS]; /* of the block that begins there */
    struct unit unit[UNITS];
};

static struct page *pages[PAGES];

static struct page *page_new(uintptr_t number)
{
    struct page *page = calloc(1, sizeof *page);
    if (page == NULL) abort();
    page->number = number;
    for (unsigned i = 0; i < UNITS; i++) page->unit[i] = (struct unit){NOBODY, NOBODY, NOBODY, NOBODY};
    return page;
}

static struct page *page_of(const void *block)
{
    uintptr_t number = (uintptr_t)block / SUPERBLOCK;
    size_t at = number * 0x9e3779b97f4a7c15u >> 48;
    while (pages[at % PAGES] != NULL && pages[at % PAGES]->number != number) at++;
    if (pages[at % PAGES] == NULL) pages[at % PAGES] = page_new(number);
    return pages[at % PAGES];
}

static unsigned unit_of(const void *block) { return (uintptr_t)block % SUPERBLOCK / BLOCK_UNIT; }

/* What else lives in the line of units from..to, which this heap now gets. */
static void look_at_line(const struct page *page, unsigned from, unsigned to)
{
    bool others = false, carried = false;
    unsigned start = from / LINE_UNITS * LINE_UNITS;
    for (unsigned i = start; i < start + LINE_UNITS; i++) {
        const struct unit *unit = &page->unit[i];
        if ((i >= from && i <= to) || unit->heap == NOBODY) continue;
        others |= unit->heap != heap_now;
        carried |= unit->heap == heap_now && unit->thread != thread_now;
    }
    bool mine_before = page->unit[from].freed == heap_now && page->unit[from].was != heap_now;
    ledger.active += others && !mine_before;
    ledger.passive += others && mine_before;
    ledger.carried += carried;
}

static void mark(struct page *page, unsigned from, unsigned to, bool live)
{
    for (unsigned i = from; i <= to; i++) {
        struct unit *unit = &page->unit[i];
        if (live)
            *unit = (struct unit){heap_now, thread_now, unit->freed, unit->was};
        else
            *unit = (struct unit){NOBODY, NOBODY, heap_now, unit->heap};
    }
}

/* Calls of the part of a block in its first line, and if it has another, of that in its last. */
static void each_end(struct page *page, unsigned first, unsigned last, bool live)
{
    unsigned line_end = first | (LINE_UNITS - 1), line_start = last & ~(LINE_UNITS - 1u);
    unsigned to = last < line_end ? last : line_end;
    if (live) look_at_line(page, first, to);
    mark(page, first, to, live);
    if (line_start <= first) return;
    if (live) look_at_line(page, line_start, last);
    mark(page, line_start, last, live);
}

static void look_for_growth(void)
{
    static size_t held_most;
    size_t peak = arenas.peak; /* arena_held() would go through all that is kept, at each malloc */
    if (peak > held_most) vcpu_on_growth();
    held_most = peak;
}

void *vcpu_malloc(size_t size)
{
    char *block = hoard_malloc(size);
    if (block == NULL) abort();
    if (vcpu_on_growth != NULL) look_for_growth();
    unsigned class = sizeclass_of(size), first = unit_of(block);
    struct page *page = page_of(block);
    ledger.in_used += page->live != 0 && page->latest != heap_now;
    if (!sizeclass_is_wide(class)) /* wide blocks are whole lines */
        each_end(page, first, first + sizeclasses[class].size / BLOCK_UNIT - 1, true);
    page->class[first] = (uint8_t) class;
    page->latest = heap_now;
    page->live++;
    ledger.mallocs++;
    ledger.live += sizeclasses[class].size;
    if (ledger.live > ledger.live_max) ledger.live_max = ledger.live;
    return block;
}

void vcpu_free(void *block)
{
    unsigned first = unit_of(block);
    struct page *page = page_of(block);
    size_t size = sizeclasses[page->class[first]].size;
    if (!sizeclass_is_wide(page->class[first]))
        each_end(page, first, first + (unsigned)size / BLOCK_UNIT - 1, false);
    page->live--;
    ledger.frees++;
    ledger.live -= size;
    hoard_free(block);
}
