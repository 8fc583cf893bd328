/* SPDX-License-Identifier: Apache-2.0 */
/* reap_dead.c: frees in region mode. */
#include "region/reap_dead.h"

/* Takes a dead block of so many units off the list. NULL: none of the first has as many. What the list names
 * may be a part of the hole since, or of an object, or the program has written to a freed one: the bits tell,
 * and the rest of the list is given up. */
static ALWAYS_INLINE void *take_listed(struct reap *reap, struct reap_chunk *chunk, size_t units)
{
    uint32_t *link = &chunk->dead_list.first;
    for (int i = 0; i < DEAD_FREES && *link; i++) {
        size_t unit = chunk->first + *link - 1, end = unit + units;
        dead_block *block = reap_address(unit);
        if (UNLIKELY(end > reap_unit(reap->bump))) break;
        if (dead_block_units(*block) == units) {
            const bitmap_half *starts = (const bitmap_half *)chunk->starts;
            bitmap_half *dead = reap_dead_bits(chunk, unit), half = *dead;
            bool is_there = bitmap_half_test_and_clear(&half, unit);
            if (UNLIKELY(!is_there || !(starts[end / 32] >> end % 32 & 1))) break;
            *dead = half;
            *link = dead_block_next(*block);
            reap_dead_count(chunk, -units);
            return block;
        }
        link = (uint32_t *)(void *)block; /* its lower half */
    }
    return NULL;
}

void *reap_dead_take(struct reap *reap, size_t units)
{
    struct reap_chunk *chunk = reap->current;
    struct dead_blocks *list = &chunk->dead_list;
    void *object = take_listed(reap, chunk, units);
    if (!object) {
        list->misses++;
        if (units * REAP_UNIT <= (size_t)(reap->bump_max - reap->bump))
            object = reap_bump_over(reap, units * REAP_UNIT);
    }
    reap->end = reap_dead_is_asked(reap) ? reap->bump : reap->bump_max;
    return object;
}

void reap_dead_absorb(struct reap *reap, struct reap_chunk *chunk)
{
    size_t unit = reap_unit(reap->bump), before;
    ASSERT(chunk == reap->current);
    while (unit > chunk->first &&
           reap_dead_at(chunk, before = bitmap_previous(chunk->starts, unit - 1, chunk->first))) {
        *reap_dead_bits(chunk, before) &= ~((bitmap_half)1 << before % 32);
        reap_dead_count(chunk, before - unit);
        bitmap_clear(chunk->starts, unit);
        unit = before;
    }
    if (unit != reap_unit(reap->bump)) chunk->dead_list = (struct dead_blocks){0, DEAD_FREES, 0}; /* stale */
    reap->bump = reap_address(unit);
    reap->end = chunk->dead != 0 ? reap->bump : reap->bump_max;
}
