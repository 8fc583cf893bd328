/* SPDX-License-Identifier: Apache-2.0 */
#include "arena/best_place.h"

/* A gap is a run of free slots that no free slot adjoins. It may go on in the arenas behind. */
struct gap {
    char *base;           /* of its first arena */
    unsigned first, size; /* slots; a long gap is seen as one of n + ARENA_SLOTS slots */
};

/* What is looked for, and the best place so far. That is one that lacks least memory; of these, the one in
 * the smallest gap, or in the largest for an object that grows. */
struct place {
    unsigned n, alignment;
    bool grows;
    char *base; /* NULL: none */
    unsigned first, dirty, gap;
};

/* Dirty slots of an arena that may have huge pages do not suit an object of which only parts may be touched.
 * An arena made for an object beyond 4 MiB (huge and sparse) is for such objects. */
static bool is_for_large(const struct arena *arena)
{
    return arena != NULL && arena_mapping(arena) == 0 && (!arena->huge || arena->sparse);
}

static unsigned free_at_start(const struct arena *arena)
{
    uint64_t used = is_for_large(arena) ? atomic_load(&arena->used) : UINT64_MAX;
    return used != 0 ? (unsigned)__builtin_ctzll(used) : ARENA_SLOTS;
}

/* Follows a gap beyond its first arena, as far as an object of n slots may need it. */
static void follow_gap(struct gap *gap, unsigned n)
{
    char *base = gap->base;
    unsigned more = ARENA_SLOTS;
    while (more == ARENA_SLOTS && gap->size < n + ARENA_SLOTS)
        gap->size += more = free_at_start(pagemap_find(base += ARENA));
}

/* Counting bits costs as much as all else here, and mostly all slots are dirty, or none. */
static unsigned dirty_in(char *base, unsigned first, unsigned n)
{
    unsigned dirty = 0;
    struct piece piece = {pagemap_find(base), base, first, n};
    for (; piece.left != 0 && piece.arena != NULL; piece_next(&piece)) {
        uint64_t mask = piece_mask(&piece), bits = atomic_load(&piece.arena->dirty) & mask;
        if (bits == 0) continue;
        dirty += bits == mask ? piece_slots(&piece) : (unsigned)__builtin_popcountll(bits);
    }
    return dirty;
}

static bool is_better(const struct place *best, unsigned dirty, unsigned gap)
{
    if (best->base == NULL || dirty != best->dirty) return best->base == NULL || dirty > best->dirty;
    return best->grows ? gap > best->gap : gap < best->gap;
}

/* Looks at one place of the gap: n slots from slot `at` of its first arena. */
static void consider(const struct gap *gap, unsigned at, struct place *best)
{
    if (at < gap->first || at + best->n > gap->first + gap->size) return;
    char *base = gap->base + at / ARENA_SLOTS * (size_t)ARENA;
    unsigned dirty = dirty_in(base, at % ARENA_SLOTS, best->n);
    unsigned room = best->grows ? gap->first + gap->size - at : gap->size;
    if (!is_better(best, dirty, room)) return;
    best->base = base;
    best->first = at % ARENA_SLOTS;
    best->dirty = dirty;
    best->gap = room;
}

/* Looks at three places of a gap: its start, its end, and from its first dirty slot of the first arena. */
static void consider_gap(struct gap *gap, uint64_t dirty, struct place *best)
{
    unsigned n = best->n, alignment = best->alignment;
    ASSERT(is_power_of_two(alignment) && gap->size != 0);
    if (gap->first + gap->size == ARENA_SLOTS) follow_gap(gap, n);
    if (gap->size < n) return;
    if (best->dirty == n && gap->size >= best->gap && !best->grows) return; /* the gap is no better */
    unsigned end = gap->first + gap->size;
    consider(gap, (gap->first + alignment - 1) & -alignment, best);
    if (end - n != gap->first) consider(gap, (end - n) & -alignment, best);
    dirty &= end < ARENA_SLOTS ? arena_slot_mask(gap->first, gap->size) : UINT64_MAX << gap->first;
    if (dirty != 0) consider(gap, (unsigned)__builtin_ctzll(dirty) & -alignment, best);
}

static void consider_arena(const struct arena *arena, struct place *best)
{
    char *base = __atomic_load_n(&arena->base, __ATOMIC_RELAXED); /* the arena may be another's */
    const struct arena *before = pagemap_find(base - ARENA);
    uint64_t used = atomic_load(&arena->used), dirty = atomic_load(&arena->dirty) & ~used;
    for (unsigned first = 0; first < ARENA_SLOTS;) {
        uint64_t left = ~used >> first;
        if (left == 0) return;
        first += (unsigned)__builtin_ctzll(left);
        uint64_t behind = used >> first;
        unsigned size = behind != 0 ? (unsigned)__builtin_ctzll(behind) : ARENA_SLOTS - first;
        struct gap gap = {base, first, size};
        bool goes_on = first == 0 && is_for_large(before) && (int64_t)atomic_load(&before->used) >= 0;
        if (!goes_on) consider_gap(&gap, dirty, best);
        first += size;
    }
}

/* In a program with very many arenas, a good place is enough. */
static struct place best_place(unsigned n, unsigned alignment, bool grows)
{
    enum { LOOKS = 256 };
    struct place best = {.n = n, .alignment = alignment, .grows = grows};
    struct arena *arena = NULL;
    for (unsigned looks = 0; looks < LOOKS || best.base == NULL; looks++) {
        arena = arena_next_with(ARENA_FREE, arena);
        if (arena == NULL) break;
        if (is_for_large(arena)) consider_arena(arena, &best);
        if (best.dirty == n && best.gap - n <= n / 8 && !grows) break; /* none is much better */
    }
    return best;
}

void arena_unclaim(struct piece piece, unsigned left)
{
    while (piece.left != left) {
        struct piece this = piece;
        piece_next(&piece);
        arena_release(this.arena, piece_mask(&this));
    }
}

/* The struct that is found may be another arena's by the time that its slots are claimed. */
bool arena_claim_at(char *base, unsigned first, unsigned n)
{
    struct piece begin = {pagemap_find(base), base, first, n}, piece = begin;
    for (; piece.left != 0; piece_next(&piece)) {
        if (piece.arena == NULL || !arena_claim(piece.arena, piece_mask(&piece))) break;
        if (piece.arena->base == piece.base) continue;
        arena_release(piece.arena, piece_mask(&piece));
        break;
    }
    if (piece.left == 0) return true;
    arena_unclaim(begin, piece.left);
    return false;
}

struct run arena_claim_best(unsigned n, unsigned alignment, bool grows)
{
    enum { TRIES = 8 };
    for (unsigned tries = 0; tries < TRIES; tries++) {
        struct place best = best_place(n, alignment, grows);
        if (best.base == NULL) break;
        if (arena_claim_at(best.base, best.first, n))
            return (struct run){pagemap_find(best.base), (int)best.first};
    }
    return (struct run){NULL, -1};
}
