/* SPDX-License-Identifier: Apache-2.0 */
#include "arena/kept_spans.h"

#include "base/options.h"
#include "os/rseq.h"

typedef _Atomic(struct superblock *) kept_place; /* NULL: empty */

static SPARSE struct set {
    _Alignas(128) kept_place spans[KEPT_SLOTS][KEPT_EACH];
} sets[KEPT_SETS];

static struct set *own_set(void)
{
    unsigned id = cpu.ids != 0 ? rseq_id() : rseq_cpu_now();
    return &sets[id % KEPT_SETS];
}

void kept_spans_own(struct superblock *first) { first->group = (uint8_t)(own_set() - sets); }

/* Empties a place. NULL: it was empty. A load comes first, since most looks are at empty places. */
static struct superblock *take_from(kept_place *place)
{
    if (atomic_load_explicit(place, memory_order_relaxed) == NULL) return NULL;
    return atomic_exchange_explicit(place, NULL, memory_order_acquire);
}

struct superblock *kept_spans_take(unsigned n, enum superblock_kind kind)
{
    ASSERT(n != 0);
    if (n > KEPT_SLOTS) return NULL;
    kept_place *places = own_set()->spans[n - 1];
    for (unsigned i = KEPT_EACH; i > 0; i--) {
        struct superblock *first = take_from(&places[i - 1]);
        if (first == NULL) continue;
        ASSERT(first->kind == SLOT_FREE && arena_span(first) == n);
        first->kind = (uint8_t)kind;
        return first;
    }
    return NULL;
}

/* Places fill up from the first on, and are emptied from the last on: what was used last serves first. In a
 * full set the new span takes the first place, and the span there, mostly the oldest, is made free. */
bool kept_spans_put(struct superblock *first)
{
    unsigned n = arena_span(first);
    ASSERT(first->kind == SLOT_SPAN || first->kind == SLOT_SPAN_CHUNK);
    if (n > KEPT_SLOTS || options.purge_ms == 0) return false;
    ASSERT(first->group < KEPT_SETS);
    kept_place *places = sets[first->group].spans[n - 1];
    first->kind = SLOT_FREE;
    for (unsigned i = 0; i < KEPT_EACH; i++) {
        struct superblock *none = NULL;
        if (atomic_load_explicit(&places[i], memory_order_relaxed) == NULL &&
            atomic_compare_exchange_strong(&places[i], &none, first))
            return true;
    }
    struct superblock *other = atomic_exchange(&places[0], first);
    if (other != NULL) arena_give(other, n);
    return true;
}

static void give(struct set *set)
{
    for (unsigned n = 1; n <= KEPT_SLOTS; n++) {
        for (unsigned i = 0; i < KEPT_EACH; i++) {
            struct superblock *first = take_from(&set->spans[n - 1][i]);
            if (first != NULL) arena_give(first, n);
        }
    }
}

void kept_spans_give_own(void) { give(own_set()); }

void kept_spans_give_all(void)
{
    for (struct set *set = sets; set < sets + KEPT_SETS; set++) give(set);
}

size_t kept_spans_bytes(void)
{
    size_t slots = 0;
    for (struct set *set = sets; set < sets + KEPT_SETS; set++)
        for (unsigned n = 1; n <= KEPT_SLOTS; n++)
            for (unsigned i = 0; i < KEPT_EACH; i++)
                if (atomic_load_explicit(&set->spans[n - 1][i], memory_order_relaxed) != NULL) slots += n;
    return slots * SUPERBLOCK;
}
