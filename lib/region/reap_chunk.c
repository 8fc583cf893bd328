/* SPDX-License-Identifier: Apache-2.0 */
/* reap_chunk.c: a reap takes chunks from the backend, and gives them back. */
#include "region/reap_chunk.h"

#include <errno.h>
#include <string.h>

#include "hoard.h"
#include "region/kept_chunks.h"
#include "region/reap_layout.h"

static_assert(REAP_LARGE <= REAP_MAX_SIZE / 16, "an object that shares a chunk must not fill it");

enum {
    LOOKS = 64,          /* chunks that carved_bytes() looks at, at most */
    DOUBLES = 128 * 1024 /* bytes; up to this size a chunk may double a reap with free blocks too */
};

bool reap_instrumented;

static struct reap_chunk no_chunk;
struct reap_tables reap_no_tables = {.cache_last = REAP_CHUNK_CACHE - 1,
                                     .chunk_cache = {[0 ... REAP_CHUNK_CACHE - 1] = &no_chunk}};

/* Counts bytes from the backend as held. */
static void hold(struct reap *reap, size_t size)
{
    reap->held += size;
    ASSERT(reap->held >= size);
    if (reap->held > reap->peak) reap->peak = reap->held;
}

static void chunk_cache_reset(struct reap_tables *tables)
{
    struct reap_chunk **cache = reap_chunk_cache(tables);
    for (size_t i = 0; i <= tables->cache_last; i++) cache[i] = &no_chunk;
}

void reap_tables_begin(struct reap *reap)
{
    if (reap->tables != &reap_no_tables) return;
    struct reap_tables *tables = reap_tables_of(reap);
    ASSERT(tables != &reap_no_tables);
    if (tables == &reap->own) tables->cache_last = REAP_CHUNK_CACHE - 1;
    if (!reap->freelists_used) memset(tables->freelists, 0, sizeof tables->freelists);
    chunk_cache_reset(tables);
    if (LIKELY(!(reap->flags & REAP_SPECIAL))) reap->tables = tables;
}

void reap_tables_give_back(struct reap *reap)
{
    ASSERT(reap->flags & REAP_BIG_TABLES && reap->held >= reap_wide_size(reap));
    reap->held -= reap_wide_size(reap);
    reap->flags &= (uint8_t)~REAP_BIG_TABLES;
    hoard_free(reap->big);
}

/* Makes a chunk cache of four times as many entries, after two chunks have met in one, if it takes at most a
 * 64th of the bytes held. The new cache is empty, so each chunk is looked up in the backend once more. */
static NOINLINE void grow_tables(struct reap *reap)
{
    struct reap_tables *old = reap->tables, *wide;
    size_t n = (old->cache_last + 1) * 4, size = reap_tables_size(n);
    ASSERT(old != &reap_no_tables && is_power_of_two(old->cache_last + 1));
    if (n > REAP_CHUNK_CACHE_MAX || size > reap->held / 64 || reap->flags & REAP_SOURCED) return;
    int saved = errno;
    wide = hoard_malloc(size);
    errno = saved;
    if (!wide) return;
    memcpy(wide->freelists, old->freelists, sizeof wide->freelists);
    wide->cache_last = n - 1;
    chunk_cache_reset(wide);
    reap_tables_end(reap);
    reap->tables = reap->big = wide;
    reap->flags |= REAP_BIG_TABLES;
    ASSERT(is_power_of_two(wide->cache_last + 1) && n <= REAP_CHUNK_CACHE_MAX);
    hold(reap, size);
}

struct reap_chunk *reap_chunk_find(struct reap *reap, const void *pointer)
{
    struct reap_chunk *chunk = reap_chunk_find_cached(reap, pointer);
    if (chunk) return chunk;
    chunk = chunk_of(pointer, NULL);
    if (!chunk || !reap_chunk_is_live(chunk) || chunk->owner != reap) return NULL;
    if (UNLIKELY(reap->flags & REAP_SPECIAL) || chunk->kind != REAP_REGULAR) return chunk;
    reap_tables_begin(reap);
    if (*reap_cached_chunk(reap->tables, pointer) != &no_chunk) grow_tables(reap);
    ASSERT((uintptr_t)pointer - (uintptr_t)chunk < chunk->size);
    return *reap_cached_chunk(reap->tables, pointer) = chunk;
}

void reap_chunk_forget_all(struct reap *reap) { reap->tables = &reap_no_tables; }

size_t reap_chunk_live_bytes(const struct reap *reap)
{
    size_t units = 0;
    for (struct reap_chunk *chunk = reap_chunk_begin(reap); chunk; chunk = reap_chunk_after(reap, chunk))
        units += reap_chunk_live_units(reap, chunk);
    return units * REAP_UNIT;
}

/* Takes a chunk out of the chunk cache. */
static void forget(struct reap *reap, const struct reap_chunk *chunk)
{
    if (reap->tables == &reap_no_tables || chunk->kind != REAP_REGULAR) return;
    const uintptr_t step = (uintptr_t)1 << REAP_CHUNK_CACHE_SHIFT;
    uintptr_t at = (uintptr_t)chunk & -step, end = (uintptr_t)chunk + chunk->size;
    for (size_t i = 0; i <= reap->tables->cache_last && at < end; i++, at += step) {
        struct reap_chunk **cached = reap_cached_chunk(reap->tables, (void *)at);
        if (*cached == chunk) *cached = &no_chunk;
    }
}

/* Gives back a chunk in user memory, or of a guarded object. The reap itself may lie in it. */
static NOINLINE void give_users(struct reap_chunk *chunk)
{
    if (reap_chunk_is_apart(chunk)) {
        guarded_free(chunk);
        return;
    }
    struct chunk_source backing = chunk->owner->source;
    chunk_source_give(&backing, chunk, chunk->size);
}

void reap_chunk_give_back(struct reap_chunk *chunk)
{
    ASSERT(!reap_chunk_is_live(chunk) && chunk->size != 0);
    if (UNLIKELY(kept_chunks_on) && !chunk->is_users) {
        kept_chunks_add(chunk);
        return;
    }
    if (UNLIKELY(reap_instrumented) && !reap_chunk_is_apart(chunk)) sanitizer_show(chunk, chunk->size);
    if (UNLIKELY(chunk->is_users))
        give_users(chunk);
    else
        chunk_free(chunk);
}

/* Puts a chunk on the reap's list of chunks. */
static void link_chunk(struct reap *reap, struct reap_chunk *chunk)
{
    ASSERT(chunk->owner == reap && chunk != reap_first_chunk(reap) && reap_chunk_is_live(chunk));
    ASSERT(reap->chunks == NULL || (reap->chunks->prev == NULL && reap->chunks->owner == reap));
    chunk->depth = reap_depth(reap);
    chunk->prev = NULL;
    chunk->next = reap->chunks;
    if (chunk->next) chunk->next->prev = chunk;
    __atomic_store_n(&reap->chunks, chunk,
                     __ATOMIC_RELEASE); /* whole at every moment: the child of a fork may look */
}

static void unlink_chunk(struct reap *reap, struct reap_chunk *chunk)
{
    ASSERT(chunk->prev ? chunk->prev->next == chunk : reap->chunks == chunk);
    ASSERT(!chunk->next || chunk->next->prev == chunk);
    if (chunk->next) chunk->next->prev = chunk->prev;
    if (chunk->prev)
        chunk->prev->next = chunk->next;
    else
        reap->chunks = chunk->next;
}

/* Returns to the reap's own tables, when the big ones are too big beside the memory that is left. */
static void narrow(struct reap *reap)
{
    ASSERT(reap->flags & REAP_BIG_TABLES);
    memcpy(reap->own.freelists, reap->big->freelists, sizeof reap->own.freelists);
    reap_tables_end(reap);
    reap->tables = &reap_no_tables;
    reap_tables_begin(reap);
}

void reap_chunk_release(struct reap *reap, struct reap_chunk *chunk)
{
    ASSERT(chunk->owner == reap && reap_chunk_is_live(chunk) && chunk != reap_first_chunk(reap));
    ASSERT(!list_holds(&chunk->to_sweep) && !(chunk->pinned & REAP_PIN_RECORDS));
    ASSERT(reap->held >= chunk->size && reap->draining >= chunk->draining);
    if (chunk == reap->current) {
        reap->current = NULL;
        reap->bump = reap->end = reap->bump_max = NULL;
    }
    forget(reap, chunk);
    unlink_chunk(reap, chunk);
    reap->draining -= chunk->draining;
    reap->held -= chunk->size;
    chunk->tag = ~reap_chunk_tag(chunk);
    reap_chunk_give_back(chunk);
    if (UNLIKELY(reap_wide_size(reap) > reap->held / 16)) narrow(reap);
}

void reap_chunk_release_span(struct reap *reap, struct reap_chunk *chunk, struct arena *arena)
{
    ASSERT(chunk->owner == reap && reap_chunk_is_live(chunk) && chunk->kind == REAP_WHOLE);
    ASSERT(chunk != reap->current && !chunk->is_users && !chunk->draining && !chunk->pinned);
    ASSERT(reap->held >= chunk->size && !reap_instrumented && !kept_chunks_on);
    unlink_chunk(reap, chunk);
    reap->held -= chunk->size;
    chunk->tag = ~reap_chunk_tag_of(chunk, reap);
    chunk_free_span(arena, chunk);
    if (UNLIKELY(reap->flags & REAP_BIG_TABLES) && reap_wide_size(reap) > reap->held / 16) narrow(reap);
}

/* Takes a spare with room for units off its list. NULL: there is none. */
static struct reap_chunk *take_spare(struct reap *reap, size_t units)
{
    if (reap->spare_bytes == 0) return NULL;
    for (struct reap_chunk **link = &reap->spares; *link; link = &(*link)->next) {
        struct reap_chunk *chunk = *link;
        if (chunk->end_unit - chunk->first < units) continue;
        ASSERT(chunk->kind == REAP_SPARE && reap->spare_bytes >= chunk->size);
        *link = chunk->next;
        reap->spare_bytes -= (uint32_t)chunk->size;
        return chunk;
    }
    return NULL;
}

/* The live bytes in regular chunks, and a sixteenth of these chunks for headers and bitmaps. It stops at
 * `enough` bytes. After a look at LOOKS chunks, of all kinds, it returns the held bytes without spares. */
static size_t carved_bytes(const struct reap *reap, size_t enough)
{
    const struct reap_chunk *first = reap_first_chunk(reap);
    size_t bytes = reap_chunk_live(first) * REAP_UNIT + first->size / 16;
    unsigned looks = 0;
    for (const struct reap_chunk *chunk = reap->chunks; chunk && bytes < enough; chunk = chunk->next) {
        if (looks++ == LOOKS) return reap->held - reap->spare_bytes;
        if (chunk->kind == REAP_REGULAR) bytes += reap_chunk_live(chunk) * REAP_UNIT + chunk->size / 16;
    }
    return bytes;
}

/* The next chunk's bytes: about as many as live in regular chunks, so that a new chunk doubles the reap (8,
 * 8, 16, 32 KiB ...). A reap that has shrunk starts small again. A big reap with free blocks, of which none
 * fits, grows by an eighth. */
static size_t next_size(const struct reap *reap)
{
    size_t size = REAP_FIRST_SIZE;
    size_t max = UNLIKELY(reap->flags & REAP_SOURCED) ? reap->source.max_chunk : REAP_MAX_SIZE;
    size_t part = reap->freelists_used || reap->draining > 0 ? 8 : 2, have = carved_bytes(reap, part * max);
    if (size > max) size = max;
    while (size < max && size <= have / (size < DOUBLES ? 2 : part)) size *= 2;
    ASSERT(is_power_of_two(size) && size <= max);
    return size;
}

/* The least size of a chunk with room for units; PTRDIFF_MAX, of which no chunk can be, if there is none. */
static size_t least_size(size_t units)
{
    size_t size = REAP_FIRST_SIZE;
    if (units > PTRDIFF_MAX / 2 / REAP_UNIT) return PTRDIFF_MAX;
    while (size < REAP_HEADER + 2 * reap_guarded_size(size) + units * REAP_UNIT) size *= 2;
    ASSERT(is_power_of_two(size));
    return size;
}

/* Takes a chunk from the reap's source, or from the backend. */
static struct reap_chunk *take_chunk(const struct reap *reap, size_t size, size_t *got, bool *zeroed)
{
    bool backed = reap->flags & REAP_SOURCED;
    struct reap_chunk *chunk = UNLIKELY(backed) ? chunk_source_take(&reap->source, size, got, zeroed)
                                                : chunk_alloc(size, got, zeroed);
    if (chunk) chunk->is_users = backed && !chunk_source_is_hoard(&reap->source);
    ASSERT(!chunk || *got >= size);
    return chunk;
}

void reap_chunk_start(struct reap *reap, struct reap_chunk *chunk, bool zeroed)
{
    bool lent = chunk->is_users;
    reap_lay_out(chunk, reap, chunk->size, REAP_HEADER);
    chunk->is_users = lent;
    chunk->shared = reap_is_part(reap);
    if (!zeroed) reap_zero_starts(chunk, chunk->size);
    link_chunk(reap, chunk);
    ASSERT_WALK(reap_bitmap_size(chunk->size) / 8,
                bitmap_next(chunk->starts, 0, chunk->end_unit) == chunk->end_unit);
}

struct reap_chunk *reap_chunk_new(struct reap *reap, size_t units)
{
    bool zeroed = false;
    struct reap_chunk *chunk = UNLIKELY(reap->spare_bytes != 0) ? take_spare(reap, units) : NULL;
    if (!chunk) {
        size_t least = least_size(units), size = next_size(reap);
        chunk = take_chunk(reap, size > least ? size : least, &size, &zeroed);
        if (UNLIKELY(!chunk)) chunk = take_chunk(reap, least, &size, &zeroed);
        if (UNLIKELY(!chunk)) return NULL;
        chunk->size = size;
        hold(reap, size);
    }
    reap_chunk_start(reap, chunk, zeroed);
    ASSERT(chunk->end_unit - chunk->first >= units);
    return chunk;
}

/* Makes a guarded object. Its units are counted from the chunk header to the object, modulo 2^64 bytes. */
static struct reap_chunk *whole_apart(struct reap *reap, size_t alignment, size_t units)
{
    void *object;
    size_t size;
    struct reap_chunk *chunk = guarded_alloc(alignment, units * REAP_UNIT, &object, &size);
    if (!chunk) return NULL;
    *chunk = (struct reap_chunk){.owner = reap, .kind = REAP_WHOLE, .is_users = true, .apart = true};
    chunk->shared = reap_is_part(reap);
    chunk->size = size;
    chunk->first = reap_unit(chunk, object);
    chunk->end_unit = chunk->first + units;
    chunk->live_above = (ptrdiff_t)units;
    chunk->tag = reap_chunk_tag(chunk);
    ASSERT(reap_address(chunk, chunk->first) == object);
    return chunk;
}

/* Writes the header of a chunk with one object, which starts at offset `first`. */
static ALWAYS_INLINE struct reap_chunk *begin_whole(struct reap *reap, struct reap_chunk *chunk, size_t size,
                                                    size_t first, size_t units, bool lent)
{
    reap_zero_line(chunk);
    reap_zero_line((char *)chunk + 64);
    chunk->owner = reap;
    chunk->tag = reap_chunk_tag_of(chunk, reap);
    chunk->first = first / REAP_UNIT;
    chunk->kind = REAP_WHOLE;
    chunk->is_users = lent;
    chunk->shared = reap_is_part(reap);
    chunk->end_unit = first / REAP_UNIT + units;
    chunk->live_above = (ptrdiff_t)units;
    chunk->size = size;
    if (UNLIKELY(reap_instrumented)) sanitizer_hide((char *)chunk + first, size - first);
    return chunk;
}

/* Makes a guarded object, an aligned one, or one of a source. */
static NOINLINE struct reap_chunk *whole_special(struct reap *reap, size_t alignment, size_t units,
                                                 bool *zeroed)
{
    if (UNLIKELY(guarded_on)) {
        if (zeroed) *zeroed = false;
        size_t max = PTRDIFF_MAX / REAP_UNIT; /* with so many, guarded_alloc fails */
        return whole_apart(reap, alignment, units < max ? units : max);
    }
    size_t size, aligned = UNLIKELY(reap->flags & REAP_SOURCED) ? REAP_SOURCE_ALIGN : CHUNK_MIN;
    size_t room = alignment <= aligned ? 0 : alignment;
    size_t first = alignment > REAP_HEADER && alignment <= aligned ? alignment : REAP_HEADER;
    if (units > (PTRDIFF_MAX - first) / REAP_UNIT || units * REAP_UNIT + first > PTRDIFF_MAX - room) {
        errno = ENOMEM;
        return NULL;
    }
    struct reap_chunk *chunk = take_chunk(reap, first + room + units * REAP_UNIT, &size, zeroed);
    if (!chunk) return NULL;
    if (room) first = (((uintptr_t)chunk + first + alignment - 1) & ~(alignment - 1)) - (uintptr_t)chunk;
    begin_whole(reap, chunk, size, first, units, chunk->is_users);
    ASSERT((uintptr_t)reap_address(chunk, chunk->first) % alignment == 0 &&
           chunk->end_unit <= size / REAP_UNIT);
    return chunk;
}

struct reap_chunk *reap_chunk_whole(struct reap *reap, size_t alignment, size_t units, bool *zeroed)
{
    bool special = guarded_on || reap->flags & REAP_SOURCED || units > PTRDIFF_MAX / 2 / REAP_UNIT;
    if (UNLIKELY(special || alignment > REAP_UNIT)) return whole_special(reap, alignment, units, zeroed);
    size_t size;
    struct reap_chunk *chunk = chunk_alloc(REAP_HEADER + units * REAP_UNIT, &size, zeroed);
    return LIKELY(chunk != NULL) ? begin_whole(reap, chunk, size, REAP_HEADER, units, false) : NULL;
}

void reap_chunk_hold(struct reap *reap, struct reap_chunk *chunk)
{
    link_chunk(reap, chunk);
    hold(reap, chunk->size);
}

void reap_chunk_move(struct reap *from, struct reap *to, struct reap_chunk *chunk)
{
    ASSERT(chunk->owner == from && from != to && from->held >= chunk->size && chunk != from->current);
    ASSERT(chunk->kind == REAP_WHOLE && !chunk->draining);
    unlink_chunk(from, chunk);
    from->held -= chunk->size;
    chunk->owner = to;
    chunk->shared = reap_is_part(to);
    chunk->tag = reap_chunk_tag(chunk);
    reap_chunk_hold(to, chunk);
}

/* Returns true if an object of that number of units fits its chunk, in user memory or guarded. Such a chunk
 * keeps its size. */
static bool fits(const struct reap_chunk *chunk, size_t units, size_t *size)
{
    *size = chunk->size;
    if (reap_chunk_is_apart(chunk)) return units * REAP_UNIT <= guarded_room(chunk);
    return (chunk->first + units) * REAP_UNIT <= chunk->size;
}

bool reap_chunk_resize(struct reap *reap, struct reap_chunk *chunk, size_t units)
{
    ASSERT(chunk->owner == reap && chunk->kind == REAP_WHOLE && reap->held >= chunk->size);
    size_t size;
    if (units > PTRDIFF_MAX / REAP_UNIT - (chunk->is_users ? 0 : chunk->first)) return false;
    bool done = chunk->is_users ? fits(chunk, units, &size)
                                : chunk_resize(chunk, (chunk->first + units) * REAP_UNIT, &size);
    reap->held -= chunk->size;
    hold(reap, size);
    chunk->size = size;
    if (!done) return false;
    ASSERT(reap_chunk_is_apart(chunk) || (chunk->first + units) * REAP_UNIT <= size);
    chunk->end_unit = chunk->first + units;
    chunk->live_above = (ptrdiff_t)units;
    return true;
}

void reap_chunk_adopt_all(struct reap *reap)
{
    struct reap_chunk *chunk = atomic_exchange_explicit(&reap->remote_chunks, NULL, memory_order_acquire);
    while (chunk) {
        struct reap_chunk *next = chunk->next;
        ASSERT(chunk->kind == REAP_WHOLE && chunk->owner == reap);
        reap_chunk_hold(reap, chunk);
        if (reap->flags & REAP_LIMITED) reap->share.drawn += reap_chunk_live(chunk) * REAP_UNIT;
        chunk = next;
    }
}

void reap_chunk_make_frees(struct reap *reap, struct reap_chunk *chunk)
{
    ASSERT(chunk->owner == reap && chunk->kind == REAP_REGULAR && !chunk->frees);
    uint64_t *frees = chunk->starts + reap_guarded_size(chunk->size) / sizeof(uint64_t);
    ASSERT((char *)frees + reap_bitmap_size(chunk->size) <= (char *)reap_address(chunk, chunk->first));
    memset(frees, 0, reap_bitmap_size(chunk->size));
    __atomic_store_n(&chunk->frees, frees, __ATOMIC_RELEASE); /* free() in other threads looks at it */
    chunk->fast_free_end = chunk->size / REAP_UNIT;
    reap_tables_begin(reap);
}

void *reap_chunk_record(struct reap *reap, size_t size)
{
    size = (size + REAP_UNIT - 1) & -(size_t)REAP_UNIT;
    if ((size_t)(reap->bump_max - reap->bump) < size) return NULL;
    ASSERT(reap_chunk_live(reap->current) >= size / REAP_UNIT);
    bool region = reap->end == reap->bump_max;
    reap->bump_max -= size;
    reap->current->end_unit -= size / REAP_UNIT;
    reap->current->live_above -= (ptrdiff_t)(size / REAP_UNIT);
    reap->current->pinned |= REAP_PIN_RECORDS;
    if (region) reap->end = reap->bump_max;
    if (UNLIKELY(reap_instrumented)) sanitizer_show(reap->bump_max, size);
    ASSERT(reap->bump_max >= reap->bump &&
           reap->bump_max == (char *)reap_address(reap->current, reap->current->end_unit));
    return reap->bump_max;
}
