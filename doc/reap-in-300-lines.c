/* SPDX-License-Identifier: Apache-2.0 */
/* A reap in 300 lines: how the library allocates, frees and reuses, in plain C, with chunks from malloc.
 * Names are the library's; walkthrough.md has a line for each thing in which the library differs.
 *
 *     first chunk | reap_chunk: starts, lives | struct reap | objects -> hole |    others have no struct reap
 *
 * A unit is 16 bytes. A block is a run of units: an object, a gap, or the hole, in which the reap bumps.
 * `starts` has a bit for each unit where a block starts: so an object needs no header. `lives` has a bit for
 * each live object, from the chunk's first free on: before, all blocks but the hole are objects. Free lists
 * are a cache of both bitmaps. A flush drops them, and a sweep finds the gaps again, joined:
 *     region ──first free──> listed ──flush──> quiet ──sweep──> swept ──last gap──> listed
 *                                                └──last object freed──> given back
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
    REAP_UNIT = 16,
    REAP_SIZE = 64 * 1024, /* bytes of a chunk, and its alignment */
    REAP_UNITS = REAP_SIZE / REAP_UNIT,
    REAP_END = REAP_UNITS - 1, /* objects end before this unit of a chunk, which has a start bit */
    REAP_LARGE = 32 * 1024,    /* bytes of the largest object */
    REAP_EXACT_LISTS = 32,     /* free list n has gaps of n units; behind it come lists for doublings */
    REAP_FREELISTS = 1 + REAP_EXACT_LISTS + 8
};

enum reap_chunk_state {
    REAP_CHUNK_REGION, /* nothing was freed in here */
    REAP_CHUNK_LISTED, /* a gap goes onto the free list of its size */
    REAP_CHUNK_QUIET,  /* a free clears a live bit */
    REAP_CHUNK_SWEPT   /* the reap takes its gaps in order: those before `top` are taken, or on lists */
};

struct reap_chunk {
    struct reap_chunk *next;
    struct reap *owner;
    enum reap_chunk_state state;
    size_t first; /* unit of the first object */
    size_t top;   /* in region state where objects end, and in swept state where the sweep goes on */
    uint64_t starts[REAP_UNITS / 64], lives[REAP_UNITS / 64];
};

struct reap_block { /* a gap on a free list */
    struct reap_block *next;
    size_t units;
};

struct reap {
    struct reap_chunk *current; /* has the hole, units [bump, bump_max); NULL: there is no hole */
    size_t bump, bump_max;
    struct reap_chunk *chunks; /* all, newest first */
    size_t held;               /* bytes of chunks */
    bool heap;                 /* heap mode: from the first free on */
    struct reap_block *freelists[REAP_FREELISTS];
    size_t listed, found, gained; /* units on lists; those of sweeps; holes since the last flush */
    struct reap_chunk *swept;     /* the one whose gaps are taken, or NULL */
};

static bool bitmap_get(const uint64_t *map, size_t i) { return map[i / 64] >> i % 64 & 1; }
static void bitmap_set(uint64_t *map, size_t i) { map[i / 64] |= (uint64_t)1 << i % 64; }
static void bitmap_clear(uint64_t *map, size_t i) { map[i / 64] &= ~((uint64_t)1 << i % 64); }
static void *reap_address(struct reap_chunk *chunk, size_t unit) { return (char *)chunk + unit * REAP_UNIT; }
static size_t reap_unit(const void *object) { return (uintptr_t)object % REAP_SIZE / REAP_UNIT; }
static size_t reap_units(size_t size) { return size == 0 ? 1 : (size + REAP_UNIT - 1) / REAP_UNIT; }
static size_t hole(const struct reap *reap) { return reap->current ? reap->bump_max - reap->bump : 0; }

static struct reap_chunk *chunk_of(const void *in) { return (void *)((uintptr_t)in / REAP_SIZE * REAP_SIZE); }

/* Where the block that starts at a unit ends. */
static size_t reap_block_end(const struct reap_chunk *chunk, size_t unit)
{
    size_t i = ++unit / 64;
    uint64_t word = chunk->starts[i] & ~(uint64_t)0 << unit % 64;
    while (!word) word = chunk->starts[++i];
    return i * 64 + (size_t)__builtin_ctzll(word);
}

/* Gives a chunk back if nothing lives in it. The first one and that of the hole stay. */
static void reap_free_quiet(struct reap *reap, struct reap_chunk *chunk)
{
    for (size_t i = 0; i < REAP_UNITS / 64; i++)
        if (chunk->lives[i]) return;
    if (chunk == chunk_of(reap) || chunk == reap->current) return;
    struct reap_chunk **link = &reap->chunks;
    while (*link != chunk) link = &(*link)->next;
    *link = chunk->next;
    reap->held -= REAP_SIZE;
    free(chunk);
}

static size_t reap_free_list(size_t units)
{
    size_t log = 63u - __builtin_clzl(units / REAP_EXACT_LISTS | 1);
    return units <= REAP_EXACT_LISTS ? units : REAP_EXACT_LISTS + 1 + log;
}

static void push_gap(struct reap *reap, struct reap_chunk *chunk, size_t unit, size_t units)
{
    struct reap_block *block = reap_address(chunk, unit), **list = &reap->freelists[reap_free_list(units)];
    block->units = units;
    block->next = *list;
    *list = block;
    reap->listed += units;
}

static struct reap_block *pull_gap(struct reap *reap, struct reap_block **link)
{
    struct reap_block *block = *link;
    *link = block->next;
    reap->listed -= block->units;
    return block;
}

static bool begin_hole(struct reap *reap, struct reap_chunk *chunk, size_t from, size_t end)
{
    reap->current = chunk;
    reap->bump = from;
    reap->bump_max = end;
    reap->gained += end - from;
    return true;
}

static void reap_free_leave_hole(struct reap *reap)
{
    bool is_region = reap->current && reap->current->state == REAP_CHUNK_REGION;
    if (hole(reap) > 0 && !is_region) push_gap(reap, reap->current, reap->bump, hole(reap));
    reap->current = NULL;
}

/* Makes a chunk empty, and all its units the hole. In heap mode it has live bits at once. */
static void reap_lay_out(struct reap *reap, struct reap_chunk *chunk, size_t head)
{
    memset(chunk, 0, sizeof *chunk);
    chunk->owner = reap;
    chunk->top = chunk->first = reap_units(head);
    bitmap_set(chunk->starts, chunk->first);
    bitmap_set(chunk->starts, REAP_END);
    chunk->state = reap->heap ? REAP_CHUNK_LISTED : REAP_CHUNK_REGION;
    chunk->next = reap->chunks;
    reap->chunks = chunk;
    reap->held += REAP_SIZE;
    reap_free_leave_hole(reap);
    begin_hole(reap, chunk, chunk->first, REAP_END);
}

/* Takes an object from the hole. In region state this sets one bit. */
static void *bump(struct reap *reap, size_t units)
{
    struct reap_chunk *chunk = reap->current;
    size_t unit = reap->bump;
    bitmap_set(chunk->starts, reap->bump += units);
    if (chunk->state != REAP_CHUNK_REGION) bitmap_set(chunk->lives, unit);
    if (chunk->state == REAP_CHUNK_REGION) chunk->top = reap->bump;
    return reap_address(chunk, unit);
}

/* Drops the lists and the hole. Chunks without live objects go back, and other listed ones become quiet. */
static void reap_free_flush(struct reap *reap)
{
    reap_free_leave_hole(reap);
    memset(reap->freelists, 0, sizeof *reap - offsetof(struct reap, freelists));
    for (struct reap_chunk *chunk = reap->chunks, *next; chunk; chunk = next) {
        next = chunk->next;
        if (chunk->state == REAP_CHUNK_REGION) continue;
        chunk->state = REAP_CHUNK_QUIET;
        reap_free_quiet(reap, chunk);
    }
}

/* Makes the next gap with so many units the hole. False: no quiet chunk has one. */
static bool sweep(struct reap *reap, size_t units)
{
    for (;; reap->swept->state = REAP_CHUNK_LISTED, reap->swept = NULL) {
        struct reap_chunk *chunk = reap->swept;
        if (!chunk) {
            for (chunk = reap->chunks; chunk && chunk->state != REAP_CHUNK_QUIET;) chunk = chunk->next;
            if (!chunk) return false;
            chunk->state = REAP_CHUNK_SWEPT;
            chunk->top = chunk->first;
            reap->swept = chunk;
        }
        while (chunk->top < REAP_END) {
            size_t unit = chunk->top, end = chunk->top = reap_block_end(chunk, unit);
            if (bitmap_get(chunk->lives, unit)) continue;
            for (; end < REAP_END && !bitmap_get(chunk->lives, end); end = chunk->top) {
                chunk->top = reap_block_end(chunk, end); /* another gap: the two become one */
                bitmap_clear(chunk->starts, end);
            }
            if (end - unit >= units) return begin_hole(reap, chunk, unit, end);
            push_gap(reap, chunk, unit, end - unit);
            reap->found += end - unit;
        }
    }
}

/* Makes a bigger gap the hole: the next objects have room in it, too. */
static bool take_big(struct reap *reap, size_t units)
{
    size_t list = units <= REAP_EXACT_LISTS ? REAP_EXACT_LISTS + 1 : reap_free_list(units);
    for (; list < REAP_FREELISTS; list++) {
        struct reap_block *block = reap->freelists[list];
        if (!block || block->units < units) continue;
        size_t unit = reap_unit(pull_gap(reap, &reap->freelists[list]));
        reap_free_leave_hole(reap);
        return begin_hole(reap, chunk_of(block), unit, unit + block->units);
    }
    return false;
}

/* The sources of an object, in order. In region mode the lists are empty, and nothing is to be swept. */
static void *reap_free_take(struct reap *reap, size_t units)
{
    if (units <= REAP_EXACT_LISTS && reap->freelists[units]) {
        struct reap_block *block = pull_gap(reap, &reap->freelists[units]);
        bitmap_set(chunk_of(block)->lives, reap_unit(block));
        return block;
    }
    if (units <= hole(reap)) return bump(reap, units);
    if (take_big(reap, units)) return bump(reap, units);
    reap_free_leave_hole(reap);
    if (sweep(reap, units)) return bump(reap, units);
    /* A flush pays if an eighth of the reap is on lists, and the last flush has given as much. */
    if (reap->listed * 8 >= reap->held / REAP_UNIT && reap->gained * 8 >= reap->held / REAP_UNIT) {
        reap_free_flush(reap);
        if (sweep(reap, units)) return bump(reap, units);
    }
    struct reap_chunk *chunk = aligned_alloc(REAP_SIZE, REAP_SIZE);
    if (!chunk) return NULL;
    reap_lay_out(reap, chunk, sizeof *chunk);
    return bump(reap, units);
}

/* NULL: there is no memory, or the size is above REAP_LARGE. */
void *reapMalloc(struct reap *reap, size_t size)
{
    return size <= REAP_LARGE ? reap_free_take(reap, reap_units(size)) : NULL;
}

/* Makes the live bits of a chunk in region state. Its unused end becomes a gap. */
static void convert(struct reap *reap, struct reap_chunk *chunk)
{
    memcpy(chunk->lives, chunk->starts, sizeof chunk->lives);
    bitmap_clear(chunk->lives, REAP_END);
    bitmap_clear(chunk->lives, chunk->top);
    chunk->state = REAP_CHUNK_LISTED;
    if (chunk != reap->current && chunk->top < REAP_END)
        push_gap(reap, chunk, chunk->top, REAP_END - chunk->top);
}

/* Frees an object of a reap, or NULL. Ends the program if it is no live object of this reap. */
void reapFree(struct reap *reap, void *object)
{
    if (!object) return;
    struct reap_chunk *chunk = chunk_of(object);
    size_t unit = reap_unit(object);
    bool is_live = chunk->state == REAP_CHUNK_REGION ? unit < chunk->top : bitmap_get(chunk->lives, unit);
    if (chunk->owner != reap || (uintptr_t)object % REAP_UNIT || !bitmap_get(chunk->starts, unit) || !is_live)
        abort();
    reap->heap = true;
    if (reap->current && reap->current->state == REAP_CHUNK_REGION) convert(reap, reap->current);
    if (chunk->state == REAP_CHUNK_REGION) convert(reap, chunk);
    bitmap_clear(chunk->lives, unit);
    if (chunk->state == REAP_CHUNK_QUIET) {
        reap_free_quiet(reap, chunk);
    } else if (chunk->state == REAP_CHUNK_LISTED || unit < chunk->top) {
        push_gap(reap, chunk, unit, reap_block_end(chunk, unit) - unit);
        /* A flush is due when frees have put half of the reap onto the lists. */
        if (reap->listed > reap->held / REAP_UNIT / 2 + reap->found) reap_free_flush(reap);
    }
}

/* Forgets all objects. The first chunk stays, and the reap is in region mode. */
void reapFreeAll(struct reap *reap)
{
    struct reap_chunk *first = chunk_of(reap), *chunk;
    while ((chunk = reap->chunks) != NULL) {
        reap->chunks = chunk->next;
        if (chunk != first) free(chunk);
    }
    memset(reap, 0, sizeof *reap);
    reap_lay_out(reap, first, sizeof *first + sizeof *reap);
}

struct reap *reapNew(void)
{
    struct reap_chunk *first = aligned_alloc(REAP_SIZE, REAP_SIZE);
    if (!first) return NULL;
    struct reap *reap = memset(first + 1, 0, sizeof *reap);
    reapFreeAll(reap);
    return reap;
}

void reapDestroy(struct reap *reap)
{
    reapFreeAll(reap);
    free(chunk_of(reap));
}
