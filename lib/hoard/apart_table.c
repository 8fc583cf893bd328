/* SPDX-License-Identifier: Apache-2.0 */
#include "hoard/apart_table.h"

#include "base/lock.h"
#include "os/metadata.h"

enum { PLACES = 1 << 17 };

bool apart_on;

static struct apart_entry **places; /* apart, since few processes have the mode */
static struct {
    struct lock lock;
    struct apart_entry *oldest, *youngest; /* freed ones */
    size_t dead, kept;                     /* their number, and the bytes of those that wait */
    size_t greatest;                       /* bytes of the greatest object that there was */
} table = {.lock = LOCK_OF_RANK(RANK_APART)};

bool apart_table_start(void) { return (places = metadata_alloc(PLACES * sizeof *places)) != NULL; }

void apart_hold(void) { lock_take(&table.lock); }
void apart_let_go(void) { lock_give(&table.lock); }

static struct apart_entry **place_of(uintptr_t kib)
{
    return &places[kib * 0x9e3779b97f4a7c15u >> 32 & (PLACES - 1)];
}

static uintptr_t kib_of(const void *address) { return (uintptr_t)address / KIB; }

/* The freed object that started at the same address goes: so a place has no more entries than addresses. */
void apart_enter(struct apart_entry *entry)
{
    struct apart_entry **place = place_of(kib_of(entry->object)), **link = place;
    apart_hold();
    while (*link && (*link)->object != entry->object) link = &(*link)->next;
    if (*link) *link = (*link)->next;
    if (entry->room > table.greatest) table.greatest = entry->room;
    entry->next = *place;
    *place = entry;
    apart_let_go();
}

void apart_bury(struct apart_entry *entry, bool waits)
{
    ASSERT(!entry->is_dead);
    apart_hold();
    entry->is_dead = true;
    entry->waits = waits;
    *(table.youngest ? &table.youngest->younger : &table.oldest) = entry;
    table.youngest = entry;
    table.dead++;
    if (waits) table.kept += entry->room;
    apart_let_go();
}

struct apart_entry *apart_exhume(size_t count, size_t bytes)
{
    apart_hold();
    struct apart_entry *entry = table.dead > count || table.kept > bytes ? table.oldest : NULL;
    if (entry) {
        ASSERT(entry->is_dead && table.dead != 0);
        table.oldest = entry->younger;
        if (!table.oldest) table.youngest = NULL;
        table.dead--;
        if (entry->waits) table.kept -= entry->room;
        struct apart_entry **link = place_of(kib_of(entry->object));
        while (*link && *link != entry) link = &(*link)->next;
        if (*link) *link = entry->next;
    }
    apart_let_go();
    return entry;
}

/* The newest object of a state that starts in a KiB and has an address in it; or only if it starts there. */
static struct apart_entry *find_in(uintptr_t kib, const char *pointer, bool is_start, bool is_dead)
{
    struct apart_entry *entry = *place_of(kib);
    for (; entry; entry = entry->next) {
        bool is_here = is_start ? pointer == entry->object : (size_t)(pointer - entry->object) < entry->room;
        if (is_here && entry->is_dead == is_dead && kib_of(entry->object) == kib) break;
    }
    return entry;
}

void *apart_find(const void *object)
{
    if (!apart_on) return NULL;
    apart_hold();
    struct apart_entry *entry = find_in(kib_of(object), object, true, false);
    apart_let_go();
    return entry;
}

void *apart_find_around(const void *pointer)
{
    struct apart_entry *live = NULL, *dead = NULL;
    if (!apart_on) return NULL;
    apart_hold();
    uintptr_t kib = kib_of(pointer), least = kib - table.greatest / KIB - 1;
    for (; !live && kib != least - 1; kib--) {
        live = find_in(kib, pointer, false, false);
        if (!dead) dead = find_in(kib, pointer, false, true);
    }
    apart_let_go();
    return live ? live : dead;
}

bool apart_waits(const void *object)
{
    if (!apart_on) return false;
    apart_hold();
    const struct apart_entry *entry = find_in(kib_of(object), object, true, true);
    bool waits = entry && entry->waits;
    apart_let_go();
    return waits;
}

void apart_fork_prepare(void) { lock_for_fork(&table.lock); }
void apart_fork_parent(void) { lock_after_fork(&table.lock); }
void apart_fork_child(void) { lock_reset(&table.lock); }
