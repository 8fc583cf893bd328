/* SPDX-License-Identifier: Apache-2.0 */
/* reap_chunk.c: a reap takes chunks from the backend, and gives them back. */
#include "region/reap_chunk.h"

#include <errno.h>
#include <string.h>

#include "base/report.h"
#include "hoard/redirect.h"
#include "hoard/user_memory.h"

static_assert(REAP_LARGE <= REAP_MAX_SIZE / 2, "an object that shares a chunk must not fill it");

enum {
    DOUBLES = 128 * 1024 /* bytes carved; up to here a chunk adds at most a quarter to a reap in heap mode */
};

SPARSE_ONCE struct reap_tables reap_no_tables; /* never */

size_t reap_chunk_count(const struct reap_chunk *chunk, size_t top, size_t *objects)
{
    size_t units = 0, i = chunk->first / 64, last = (chunk->lives ? chunk->end_unit : top) / 64;
    struct reap_carry carry = {0, 0};
    for (; chunk->lives && i <= last; i++) {
        *objects += (size_t)__builtin_popcountll(chunk->lives[i]);
        units += (size_t)__builtin_popcountll(reap_used_units(chunk->starts[i], chunk->lives[i], &carry));
    }
    if (chunk->lives) return units;
    const uint64_t *dead = reap_chunk_lives(chunk);
    for (; i <= last; i++) *objects += (size_t)__builtin_popcountll(chunk->starts[i]);
    *objects -= (size_t)__builtin_popcountll(chunk->starts[last] >> top % 64);
    units = top - chunk->first - chunk->dead;
    for (i = chunk->first / 64; chunk->dead != 0 && i <= last; i++)
        *objects -= (size_t)__builtin_popcountll(dead[i]);
    return units;
}

/* Live bits were written after `dead` was 0: if it is not 0 afterwards, a dead bit was read. */
bool reap_chunk_is_dead_at(const struct reap_chunk *chunk, size_t unit)
{
    for (;;) {
        const uint64_t *lives = __atomic_load_n(&chunk->lives, __ATOMIC_ACQUIRE);
        if (lives) return !bitmap_get(lives, unit);
        if (!__atomic_load_n(&chunk->dead, __ATOMIC_ACQUIRE)) return false;
        uint32_t half = __atomic_load_n(chunk_map_lives(reap_address(unit)), __ATOMIC_RELAXED);
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        if (__atomic_load_n(&chunk->dead, __ATOMIC_RELAXED)) return half >> unit % 32 & 1;
    }
}

size_t reap_chunk_units(const struct reap_chunk *chunk)
{
    size_t objects = 0;
    if (chunk->kind == REAP_WHOLE) return chunk->end_unit - chunk->first;
    return reap_chunk_count(chunk, reap_chunk_top(chunk), &objects);
}

size_t reap_chunk_live_bytes(const struct reap *reap)
{
    size_t units = 0;
    for (struct reap_chunk *chunk = reap_chunk_begin(reap); chunk; chunk = reap_chunk_after(reap, chunk))
        units += reap_chunk_units(chunk);
    return units * REAP_UNIT;
}

/* --- sources --------------------------------------------------------------------------------- */

/* These two call the user's functions, whose mallocs must not come from the reap that needs the chunk. */
static void *call_take(const struct chunk_source *source, size_t size)
{
    struct redirect_pause pause = redirect_pause();
    void *chunk = source->take(size, source->arg);
    redirect_resume(pause);
    return chunk;
}

static void call_give(const struct chunk_source *source, void *chunk, size_t size)
{
    struct redirect_pause pause = redirect_pause();
    source->give(chunk, size, source->arg);
    redirect_resume(pause);
}

void *chunk_source_take(const struct chunk_source *source, size_t size, size_t *got, bool *zeroed)
{
    if (!chunk_source_is_users(source)) return chunk_alloc(size, got, zeroed);
    if (zeroed) *zeroed = false;
    *got = size = align_up(size, REAP_SOURCE_ALIGN);
    void *chunk = source->take && size <= PTRDIFF_MAX ? call_take(source, size) : NULL;
    if (!chunk) return no_memory();
    if ((uintptr_t)chunk % REAP_SOURCE_ALIGN)
        report_misuse("reapCreateWith", chunk, "the source's memory is not aligned to 4096");
    int error = user_memory_add(chunk, size);
    if (error == 0) return chunk;
    if (error == EEXIST) report_misuse("reapCreateWith", chunk, "the source's memory is a reap's already");
    call_give(source, chunk, size);
    errno = error;
    return NULL;
}

/* Takes a chunk from the reap's source, or from the backend. */
static struct reap_chunk *take_chunk(const struct reap *reap, size_t size, size_t *got, bool *zeroed)
{
    struct reap_chunk *chunk = UNLIKELY(reap->flags & REAP_SOURCED)
                                   ? chunk_source_take(reap_source(reap), size, got, zeroed)
                                   : chunk_alloc(size, got, zeroed);
    ASSERT(!chunk || *got >= size);
    return chunk;
}

/* Gives back a chunk of the user's memory. The reap itself may lie in it; the buffer is only forgotten. */
static NOINLINE void give_users(struct reap_chunk *chunk)
{
    struct chunk_source source = *reap_source(chunk->owner);
    user_memory_remove(chunk);
    if (chunk != source.buffer) call_give(&source, chunk, chunk->size);
}

void reap_chunk_give_back(struct reap_chunk *chunk)
{
    ASSERT(!reap_chunk_is_live(chunk) && chunk->size != 0);
    if (UNLIKELY(reap_chunk_is_apart(chunk)))
        apart_free(chunk);
    else if (UNLIKELY(chunk->is_users))
        give_users(chunk);
    else
        chunk_free(chunk);
}

/* --- lists ----------------------------------------------------------------------------------- */

/* Puts a chunk between two others. The list is whole at every moment: a forked child may look. */
static void relink_chunk(struct reap *reap, struct reap_chunk *chunk)
{
    if (chunk->next) chunk->next->prev = chunk;
    __atomic_store_n(chunk->prev ? &chunk->prev->next : &reap->chunks, chunk, __ATOMIC_RELEASE);
}

static void link_chunk(struct reap *reap, struct reap_chunk *chunk)
{
    ASSERT(chunk->owner == reap && chunk != reap_first_chunk(reap) && reap_chunk_is_live(chunk));
    ASSERT(reap->chunks == NULL || (reap->chunks->prev == NULL && reap->chunks->owner == reap));
    chunk->depth = reap_depth(reap);
    chunk->prev = NULL;
    chunk->next = reap->chunks;
    relink_chunk(reap, chunk);
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

void reap_chunk_release(struct reap *reap, struct reap_chunk *chunk)
{
    ASSERT(chunk->owner == reap && reap_chunk_is_live(chunk) && chunk != reap_first_chunk(reap));
    ASSERT(reap->held >= chunk->size && chunk != reap->current && !chunk->has_records);
    if (chunk->kind == REAP_REGULAR) {
        ASSERT(chunk->state == REAP_CHUNK_REGION || chunk->state == REAP_CHUNK_QUIET);
        if (chunk->lives && list_holds(&chunk->node)) list_remove(&chunk->node);
        entry_clear(chunk);
        reap->carved -= chunk->size;
    }
    unlink_chunk(reap, chunk);
    reap->held -= chunk->size;
    chunk->tag = ~reap_chunk_tag(chunk);
    reap_chunk_give_back(chunk);
}

/* Takes a spare with room for units off its list. NULL: there is none. */
static struct reap_chunk *take_spare_chunk(struct reap *reap, size_t units)
{
    if (reap->spare_bytes == 0) return NULL;
    for (struct reap_chunk **link = &reap->spares; *link; link = &(*link)->next) {
        struct reap_chunk *chunk = *link;
        if (chunk->end_unit - chunk->first < units) continue; /* of its last use: no more than there is */
        ASSERT(chunk->kind == REAP_SPARE && reap->spare_bytes >= chunk->size);
        *link = chunk->next;
        reap->spare_bytes -= (uint32_t)chunk->size;
        return chunk;
    }
    return NULL;
}

/* The next chunk's bytes: about as many as are in regular chunks, so that a new chunk doubles the reap (8, 8,
 * 16, 32 KiB ...). A reap in heap mode grows by a quarter at most, and a big one by an eighth. */
static size_t next_size(const struct reap *reap)
{
    size_t size = REAP_FIRST_SIZE, part = 2;
    size_t max = UNLIKELY(reap->flags & REAP_SOURCED) ? reap_source(reap)->max_chunk : REAP_MAX_SIZE;
    if (reap->heap) part = reap->carved < DOUBLES ? 4 : 8;
    if (size > max) size = max;
    while (size < max && size <= reap->carved / part) size *= 2;
    ASSERT(is_power_of_two(size) && size <= max);
    return size;
}

/* The least size of a chunk with room for units; PTRDIFF_MAX, of which no chunk can be, if there is none. */
static size_t least_size(size_t units)
{
    size_t size = REAP_FIRST_SIZE;
    if (units > PTRDIFF_MAX / 2 / REAP_UNIT) return PTRDIFF_MAX;
    while (size < REAP_HEADER + 2 * (size / REAP_UNIT / 8) + (units + 1) * REAP_UNIT) size *= 2;
    ASSERT(is_power_of_two(size));
    return size;
}

void reap_lay_out_many_starts(uint64_t *words, size_t size, size_t head)
{
    memset(words, 0, size / REAP_UNIT / 8);
    bitmap_set(words, head / REAP_UNIT);
    bitmap_set(words, size / REAP_UNIT - 1);
}

void reap_chunk_start(struct reap *reap, struct reap_chunk *chunk)
{
    reap_lay_out(chunk, reap, chunk->size, REAP_HEADER, reap_is_users(reap));
    chunk->tag = reap_chunk_tag(chunk);
    chunk->shared = reap_is_part(reap);
    reap->carved += chunk->size;
    link_chunk(reap, chunk);
}

bool reap_bits_are_readable(const struct reap_chunk *chunk, const struct reap_chunk *copy)
{
    uintptr_t begin = (uintptr_t)chunk, end = begin + copy->size;
    if (copy->size == 0 || end < begin || copy->first < begin / REAP_UNIT) return false;
    if (copy->end_unit >= end / REAP_UNIT || copy->end_unit < copy->first) return false;
    if (copy->is_mapped) {
        const uint64_t *starts = (uint64_t *)(void *)chunk_map_starts(chunk) - begin / 1024;
        bool is = copy->size <= SUPERBLOCK && chunk_map_claim(chunk) && copy->starts == starts;
        return is && (!copy->lives || copy->lives == reap_chunk_lives(copy));
    }
    size_t bytes = copy->size / REAP_UNIT / 8;
    if (!chunk_is_readable(copy->starts + begin / 1024, bytes)) return false;
    return !copy->lives || chunk_is_readable(copy->lives + begin / 1024, bytes);
}

void entry_set(const struct reap_chunk *chunk, uint32_t entry)
{
    if (!chunk->is_mapped) return;
    uint32_t *entries = chunk_map_entry(chunk);
    if (*entries == entry) return;
    size_t n = chunk->size >> CHUNK_MAP_ENTRY_SHIFT;
    if (n == 1) __atomic_store_n(entries, entry, __ATOMIC_RELAXED);
    uint64_t two = entry | (uint64_t)entry << 32; /* a chunk has a power of two of them */
    for (size_t i = 0; i < n / 2; i++)
        __atomic_store_n((uint64_t *)(void *)entries + i, two, __ATOMIC_RELAXED);
}

struct reap_chunk *reap_chunk_new(struct reap *reap, size_t units)
{
    struct reap_chunk *chunk = UNLIKELY(reap->spare_bytes != 0) ? take_spare_chunk(reap, units) : NULL;
    if (!chunk) {
        size_t least = least_size(units), size = next_size(reap);
        chunk = take_chunk(reap, size > least ? size : least, &size, NULL);
        if (UNLIKELY(!chunk)) chunk = take_chunk(reap, least, &size, NULL);
        if (UNLIKELY(!chunk)) return NULL;
        chunk->size = size;
        reap_chunk_hold_bytes(reap, size);
    }
    reap_chunk_start(reap, chunk);
    ASSERT(chunk->end_unit - chunk->first >= units);
    return chunk;
}

/* Writes the header of a chunk with one object, which starts at offset `first`. */
static ALWAYS_INLINE struct reap_chunk *begin_whole(struct reap *reap, struct reap_chunk *chunk, size_t size,
                                                    size_t first, size_t units, bool lent)
{
    memset(chunk, 0, 64); /* in two halves: of both a compiler makes `rep stos` */
    memset((char *)chunk + 64, 0, sizeof *chunk - 64);
    chunk->owner = reap;
    chunk->tag = reap_chunk_tag_of(chunk, reap);
    chunk->first = ((uintptr_t)chunk + first) / REAP_UNIT;
    chunk->kind = REAP_WHOLE;
    chunk->is_users = lent;
    chunk->shared = reap_is_part(reap);
    chunk->end_unit = chunk->first + units;
    chunk->size = size;
    return chunk;
}

static struct reap_chunk *whole_apart(struct reap *reap, size_t alignment, size_t asked, bool *zeroed)
{
    void *object;
    size_t size;
    if (zeroed) *zeroed = false;
    struct reap_chunk *header = apart_alloc(alignment, asked, &object, &size);
    if (!header) return NULL;
    begin_whole(reap, header, size, (uintptr_t)object - (uintptr_t)header, reap_units(asked), true);
    header->apart = true;
    return header;
}

/* Makes an aligned object, or one of a source. */
static NOINLINE struct reap_chunk *whole_special(struct reap *reap, size_t alignment, size_t asked,
                                                 bool *zeroed)
{
    size_t units = asked > PTRDIFF_MAX ? PTRDIFF_MAX : reap_units(asked);
    size_t size, aligned = UNLIKELY(reap->flags & REAP_SOURCED) ? REAP_SOURCE_ALIGN : REAP_FIRST_SIZE;
    size_t room = alignment <= aligned ? 0 : alignment;
    size_t first = alignment > REAP_HEADER && alignment <= aligned ? alignment : REAP_HEADER;
    if (units > (PTRDIFF_MAX - first) / REAP_UNIT || units * REAP_UNIT + first > PTRDIFF_MAX - room)
        return no_memory();
    struct reap_chunk *chunk = take_chunk(reap, first + room + units * REAP_UNIT, &size, zeroed);
    if (!chunk) return NULL;
    if (room) first = (((uintptr_t)chunk + first + alignment - 1) & ~(alignment - 1)) - (uintptr_t)chunk;
    begin_whole(reap, chunk, size, first, units, reap_is_users(reap));
    ASSERT((uintptr_t)reap_address(chunk->first) % alignment == 0);
    ASSERT(chunk->end_unit <= ((uintptr_t)chunk + size) / REAP_UNIT);
    return chunk;
}

struct reap_chunk *reap_chunk_whole(struct reap *reap, size_t alignment, size_t asked, bool *zeroed)
{
    bool special = reap->flags & REAP_SOURCED || asked > PTRDIFF_MAX / 2;
    if (UNLIKELY(apart_on)) return whole_apart(reap, alignment, asked, zeroed);
    if (UNLIKELY(special || alignment > REAP_UNIT)) return whole_special(reap, alignment, asked, zeroed);
    size_t size, units = reap_units(asked);
    struct reap_chunk *chunk = chunk_alloc(REAP_HEADER + units * REAP_UNIT, &size, zeroed);
    return LIKELY(chunk != NULL) ? begin_whole(reap, chunk, size, REAP_HEADER, units, false) : NULL;
}

void reap_chunk_hold(struct reap *reap, struct reap_chunk *chunk)
{
    link_chunk(reap, chunk);
    reap_chunk_hold_bytes(reap, chunk->size);
}

void reap_chunk_move(struct reap *from, struct reap *to, struct reap_chunk *chunk)
{
    ASSERT(chunk->owner == from && from != to && from->held >= chunk->size && chunk->kind == REAP_WHOLE);
    unlink_chunk(from, chunk);
    from->held -= chunk->size;
    chunk->owner = to;
    chunk->shared = reap_is_part(to);
    chunk->tag = reap_chunk_tag(chunk);
    reap_chunk_hold(to, chunk);
}

bool reap_chunk_resize(struct reap *reap, struct reap_chunk *chunk, size_t units)
{
    ASSERT(chunk->owner == reap && chunk->kind == REAP_WHOLE && reap->held >= chunk->size);
    size_t size = chunk->size, before = chunk->is_users ? 0 : chunk->first - (uintptr_t)chunk / REAP_UNIT;
    if (units > PTRDIFF_MAX / REAP_UNIT - before) return false;
    size_t bytes = (chunk->first + units) * REAP_UNIT - (uintptr_t)chunk;
    bool done;
    if (reap_chunk_is_apart(chunk))
        done = units <= chunk->end_unit - chunk->first;
    else
        done = chunk->is_users ? bytes <= size : chunk_resize(chunk, bytes, &size);
    reap->held -= chunk->size;
    reap_chunk_hold_bytes(reap, size);
    chunk->size = size;
    if (done) chunk->end_unit = chunk->first + units;
    ASSERT(!done || reap_chunk_is_apart(chunk) || bytes <= size);
    return done;
}

/* What is left behind has no tag, and while it moves the reap does not have it. */
struct reap_chunk *reap_chunk_grow(struct reap *reap, struct reap_chunk *chunk, size_t units)
{
    ASSERT(chunk->owner == reap && chunk->kind == REAP_WHOLE && units > chunk->end_unit - chunk->first);
    size_t before = chunk->first - (uintptr_t)chunk / REAP_UNIT, size;
    if (chunk->is_users || units > PTRDIFF_MAX / REAP_UNIT - before) return NULL;
    unlink_chunk(reap, chunk);
    chunk->tag = ~reap_chunk_tag(chunk);
    struct reap_chunk *moved = chunk_move(chunk, (before + units) * REAP_UNIT, &size);
    if (moved) {
        reap->held -= moved->size;
        moved->first = (uintptr_t)moved / REAP_UNIT + before;
        moved->end_unit = moved->first + units;
        moved->size = size;
        reap_chunk_hold_bytes(reap, size);
        moved->tag = reap_chunk_tag(moved);
        link_chunk(reap, moved);
        return moved;
    }
    chunk->tag = reap_chunk_tag(chunk);
    relink_chunk(reap, chunk); /* where it was, and as old */
    return NULL;
}

void reap_chunk_adopt_all(struct reap *reap)
{
    struct reap_chunk *chunk = atomic_exchange_explicit(&reap->remote_chunks, NULL, memory_order_acquire);
    while (chunk) {
        struct reap_chunk *next = chunk->next;
        ASSERT(chunk->kind == REAP_WHOLE && chunk->owner == reap);
        reap_chunk_hold(reap, chunk);
        size_t bytes = (chunk->end_unit - chunk->first) * REAP_UNIT;
        if (reap->flags & REAP_LIMITED) reap_share(reap)->drawn += bytes;
        chunk = next;
    }
}

/* The unit where the gap at a chunk's end begins, if it is the hole or on no list; else SIZE_MAX. */
static size_t end_gap(const struct reap *reap, const struct reap_chunk *chunk)
{
    size_t end = chunk->end_unit;
    if (chunk == reap->current && reap_unit(reap->bump_max) == end) return reap_unit(reap->bump);
    if (chunk->kind != REAP_REGULAR || chunk->state == REAP_CHUNK_LISTED || end == chunk->first)
        return SIZE_MAX;
    if (chunk->state == REAP_CHUNK_REGION) return chunk->top;
    size_t last = bitmap_previous(chunk->starts, end - 1, chunk->first);
    bool is_taken = chunk->state == REAP_CHUNK_SWEPT && last < chunk->top;
    return bitmap_get(chunk->lives, last) || is_taken ? SIZE_MAX : last;
}

void *reap_chunk_record(struct reap *reap, struct reap_chunk *chunk, size_t size)
{
    size_t units = reap_units(size), end = chunk->end_unit, from = end_gap(reap, chunk);
    size_t limit = chunk->has_records ? end : end + 1; /* the first record may have the chunk's last unit */
    size_t taken = units + (reap->flags & REAP_MARKED ? 1 : 0); /* a mark may be here: it keeps a unit */
    if (from > limit || limit - from < taken) return NULL;
    chunk->has_records = true; /* first: a forked child may find the rest half done (region.h) */
    atomic_signal_fence(memory_order_release);
    if (end != from) bitmap_clear(chunk->starts, end);
    chunk->end_unit = limit - units;
    bitmap_set(chunk->starts, chunk->end_unit);
    char *record = reap_address(chunk->end_unit);
    if (chunk == reap->current && reap_unit(reap->bump_max) == end) {
        if (reap->end > record) reap->end = record;
        reap->bump_max = record;
    }
    return record;
}
