/* SPDX-License-Identifier: Apache-2.0 */
/* reap_chunk.h: how a reap gets chunks from the backend, and gives them back.
 *
 * Threads: the reap's own, except for reap_chunk_whole.
 */
#ifndef REAP_CHUNK_H
#define REAP_CHUNK_H

#include <string.h>

#include "arena/chunk_map.h"
#include "base/bitmap.h"
#include "hoard/apart.h"
#include "os/program.h"
#include "region/reap_types.h"

static inline struct reap_chunk *reap_first_chunk(const struct reap *reap)
{
    return (struct reap_chunk *)((char *)reap - REAP_HEADER);
}

static inline uintptr_t reap_tag(const struct reap *reap)
{
    return (uintptr_t)reap + 0x5e3779b9; /* one instruction, and no pointer that a program has */
}

/* The tags of a shared reap and of a hidden child, to which no handle points: see reap_shared.h. */
static inline uintptr_t reap_shared_tag(const struct reap *reap) { return ~reap_tag(reap); }
static inline uintptr_t reap_hidden_tag(const struct reap *reap) { return -reap_tag(reap); }
static inline bool reap_is_shared(const struct reap *reap) { return reap->tag == reap_shared_tag(reap); }

/* Returns true if a live reap is a shared one or a hidden child. */
static inline bool reap_is_part(const struct reap *reap) { return reap->tag != reap_tag(reap); }

static inline uintptr_t reap_chunk_tag_of(const struct reap_chunk *chunk, const struct reap *owner)
{
    return (uintptr_t)chunk + 8 * (uintptr_t)owner + 0x27d4eb4f; /* one instruction for a first chunk */
}

static inline uintptr_t reap_chunk_tag(const struct reap_chunk *chunk)
{
    return reap_chunk_tag_of(chunk, chunk->owner);
}

static inline bool reap_chunk_is_live(const struct reap_chunk *chunk)
{
    return chunk->tag == reap_chunk_tag(chunk);
}

static inline void *reap_address(size_t unit) { return (void *)(unit * REAP_UNIT); }
static inline size_t reap_unit(const void *pointer) { return (uintptr_t)pointer / REAP_UNIT; }

/* Converts bytes to units; at least one, because every object has an address of its own. */
static inline size_t reap_units(size_t size) { return size == 0 ? 1 : (size + REAP_UNIT - 1) / REAP_UNIT; }

static inline struct reap_records *reap_records(const struct reap *reap)
{
    return (struct reap_records *)((uintptr_t)reap + sizeof *reap);
}

static inline struct reap_share *reap_share(const struct reap *reap) { return &reap_records(reap)->share; }

static inline const struct chunk_source *reap_source(const struct reap *reap)
{
    ASSERT(reap->flags & REAP_SOURCED);
    return &reap_records(reap)->source;
}

/* The spares, newest first. */
static inline struct reap_chunk *reap_spares(const struct reap *reap)
{
    return UNLIKELY(reap->spare_bytes != 0) ? reap->spares : NULL;
}

/* A name of REAP_SHORT_NAME bytes at most lies here, and takes no memory of the reap's chunks. */
static inline struct reap_name *reap_short_name(const struct reap *reap)
{
    return (struct reap_name *)(void *)reap_records(reap)->short_name;
}

/* The copy that a name is the text of; the reap's own one. NULL: it has none. */
static inline struct reap_name *reap_name_around(const char *text)
{
    return (struct reap_name *)((uintptr_t)text - offsetof(struct reap_name, text));
}
static inline struct reap_name *reap_own_name(const struct reap *reap)
{
    return reap->name && !program_left(reap->name) ? reap_name_around(reap->name) : NULL;
}

static inline const char *reap_name_text(const struct reap *reap) { return reap->name ? reap->name : ""; }

/* Returns true if the source is of the user's memory, and if a reap's is. */
static inline bool chunk_source_is_users(const struct chunk_source *source)
{
    return source->take || source->buffer;
}

static inline bool reap_is_users(const struct reap *reap)
{
    return UNLIKELY(reap->flags & REAP_SOURCED) && chunk_source_is_users(reap_source(reap));
}

/* Returns true if a buffer is the reap's only memory. Then large objects lie in it too. */
static inline bool reap_is_fixed(const struct reap *reap)
{
    return reap->flags & REAP_SOURCED && reap_source(reap)->buffer && !reap_source(reap)->take;
}

/* Returns true if an object of this size gets a chunk of its own. */
static inline bool reap_is_large(const struct reap *reap, size_t size)
{
    return UNLIKELY(size > REAP_LARGE) && LIKELY(!reap_is_fixed(reap) || size > PTRDIFF_MAX);
}

/* The unit where the objects of a chunk in region state end, by a copy of its header, whose words may be from
 * different times, but whose owner is readable: the bump pointer, or `top`, which is set before that leaves
 * the chunk. So any thread may ask, while the reap's own thread goes on. */
static inline size_t reap_chunk_top_by(const struct reap_chunk *chunk, const struct reap_chunk *copy)
{
    const char *bump = __atomic_load_n(&copy->owner->bump, __ATOMIC_ACQUIRE);
    bool is_here = (size_t)(bump - (const char *)chunk) < copy->size;
    size_t top = is_here ? (uintptr_t)bump / REAP_UNIT : __atomic_load_n(&copy->top, __ATOMIC_RELAXED);
    return top >= copy->first && top <= copy->end_unit ? top : copy->first;
}

static inline size_t reap_chunk_top(const struct reap_chunk *chunk)
{
    return reap_chunk_top_by(chunk, chunk);
}

static inline uint16_t reap_depth(const struct reap *reap)
{
    return UNLIKELY(reap->flags & REAP_MARKED) ? reap->depth : 0;
}

static inline size_t reap_block_end(const struct reap_chunk *chunk, size_t unit)
{
    if (chunk->kind == REAP_WHOLE) return chunk->end_unit;
    return bitmap_next(chunk->starts, unit + 1, chunk->end_unit);
}

/* Returns true if the block at a unit of a mapped chunk in region state was freed. Any thread may ask. */
bool reap_chunk_is_dead_at(const struct reap_chunk *chunk, size_t unit);

/* Returns true if an object lives at a unit where a block of a regular chunk starts. Any thread may ask. It
 * reads what the reap's thread often writes only if the block may be the hole. */
static inline bool reap_is_live_at(const struct reap_chunk *chunk, size_t unit)
{
    const uint64_t *lives = __atomic_load_n(&chunk->lives, __ATOMIC_ACQUIRE);
    if (lives) return bitmap_get(lives, unit);
    if (UNLIKELY(__atomic_load_n(&chunk->dead, __ATOMIC_RELAXED)) && reap_chunk_is_dead_at(chunk, unit))
        return false;
    return reap_block_end(chunk, unit) != chunk->end_unit || unit < reap_chunk_top(chunk);
}

/* A link of the remote list: an object, and bits that tell whether its third word points out a later one, and
 * whether a limit counts it as pending (quota.h). */
enum { REAP_LINK_COUNTED = 2, REAP_LINK_BITS = 3 };
static inline uintptr_t reap_link(const void *object, bool points) { return (uintptr_t)object | points; }
static inline void *reap_link_object(uintptr_t link) { return (void *)(link & ~(uintptr_t)REAP_LINK_BITS); }
static inline bool reap_link_points_out(uintptr_t link) { return link & 1; }

/* Objects freed last, for the loop that frees pending ones: each points out one that comes REAP_AHEAD
 * later, if one thread frees most. The loop only prefetches it, so a wrong one does no harm. `place` is of
 * the object freed REAP_AHEAD before. Returns the link to an object of three words and more. */
enum { REAP_AHEAD = 5 };
static inline uintptr_t reap_point_out(_Atomic(void *) *place, uintptr_t *words)
{
    words[2] = (uintptr_t)atomic_load_explicit(place, memory_order_relaxed);
    atomic_store_explicit(place, words, memory_order_relaxed);
    return reap_link(words, true);
}

/* The second word of a pending object, which is on the remote list. */
static inline uintptr_t reap_pending(const void *object)
{
    return (uintptr_t)object ^ (uintptr_t)0xa0761d6478bd642f;
}

/* Returns true if the object is pending. Its words are the program's. */
static inline bool reap_is_pending(const void *object)
{
    return __atomic_load_n((const uintptr_t *)object + 1, __ATOMIC_RELAXED) == reap_pending(object);
}

/* Pushes a pending object onto the remote list. Returns the link to the object pushed before, or 0. */
static inline uintptr_t reap_push_pending(struct reap *reap, uintptr_t *words, uintptr_t link)
{
    ASSERT(words[1] == reap_pending(words) && reap_link_object(link) == words);
    uintptr_t head = atomic_load_explicit(&reap->remote, memory_order_relaxed);
    do words[0] = head;
    while (!atomic_compare_exchange_weak_explicit(&reap->remote, &head, link, memory_order_release,
                                                  memory_order_relaxed));
    return head;
}

static_assert(sizeof(struct reap_chunk) <= APART_HEADER, "an object's chunk may be apart from it");

/* Returns true if the chunk is only the header of an object that lies apart. */
static inline bool reap_chunk_is_apart(const struct reap_chunk *chunk)
{
    return chunk->kind == REAP_WHOLE && chunk->apart;
}

/* Returns true if the bits of a chunk can be read. All chunks are frozen, but another thread may change or
 * end the reap meanwhile: so the words of this copy of its header may be from different times. */
bool reap_bits_are_readable(const struct reap_chunk *chunk, const struct reap_chunk *copy);

/* Takes the memory of a chunk from a source as chunk_alloc does. Sizes and addresses of chunks of the user's
 * are multiples of REAP_SOURCE_ALIGN. NULL: no memory (ENOMEM). */
enum { REAP_SOURCE_ALIGN = 4096 };
void *chunk_source_take(const struct chunk_source *source, size_t size, size_t *got, bool *zeroed);

/* Makes a chunk with room for units and links it; it is not the current one. NULL: no memory. */
struct reap_chunk *reap_chunk_new(struct reap *reap, size_t units);

/* Where a regular chunk's live bits are, also while it does not use them. */
static inline uint64_t *reap_chunk_lives(const struct reap_chunk *chunk)
{
    return chunk->starts + (chunk->is_mapped ? CHUNK_MAP_BITS / 8 : chunk->size / REAP_UNIT / 64);
}

/* Sets the start bits of an empty chunk with objects from offset `head` on. */
void reap_lay_out_many_starts(uint64_t *words, size_t size, size_t head);
static ALWAYS_INLINE void reap_lay_out_starts(const struct reap_chunk *chunk, size_t size, size_t head)
{
    uint64_t *words = chunk->starts + (uintptr_t)chunk / 1024;
    const uint64_t at_head = (uint64_t)1 << head / REAP_UNIT % 64, at_end = (uint64_t)1 << 63;
    if (LIKELY(size == REAP_SMALL_SIZE)) {
        words[0] = at_head | at_end;
    } else if (LIKELY(size == REAP_FIRST_SIZE)) {
        memset(words, 0, REAP_FIRST_SIZE / REAP_UNIT / 8); /* a line, without a call */
        words[head / 1024] = at_head;
        words[REAP_FIRST_SIZE / 1024 - 1] |= at_end;
    } else {
        reap_lay_out_many_starts(words, size, head);
    }
}

/* Makes a regular chunk empty, with objects from offset `head` on: no lives, no records. */
static ALWAYS_INLINE void reap_lay_out_empty(struct reap_chunk *chunk, size_t size, size_t head)
{
    reap_lay_out_starts(chunk, size, head);
    chunk->first = ((uintptr_t)chunk + head) / REAP_UNIT;
    chunk->end_unit = ((uintptr_t)chunk + size) / REAP_UNIT - 1;
    chunk->high = chunk->dead = 0;
    chunk->has_records = false;
    ASSERT(chunk->first < chunk->end_unit);
}

/* Lays out a regular chunk, with objects from offset `head` on, but writes no tag. If there is no place for
 * its bits in the map, they lie in the chunk, and then come the objects. Clears shared. */
static inline void reap_lay_out(struct reap_chunk *chunk, struct reap *owner, size_t size, size_t head,
                                bool is_users)
{
    ASSERT(size % 1024 == 0 && head >= REAP_HEADER && (uintptr_t)chunk % 1024 == 0);
    bool is_mapped =
        size <= SUPERBLOCK && !is_users && chunk_map_is_near(chunk, owner) && chunk_map_claim(chunk);
    uint64_t *words = (uint64_t *)(void *)chunk_map_starts(chunk);
    if (UNLIKELY(!is_mapped)) {
        owner->flags |= REAP_UNMAPPED;
        words = (uint64_t *)((char *)chunk + head);
        head += 2 * (size / REAP_UNIT / 8);
    }
    chunk->owner = owner;
    memset((char *)chunk + offsetof(struct reap_chunk, kind), 0, 8); /* one store, to the line's end */
    static_assert(REAP_CHUNK_REGION == 0, "the state is among them");
    chunk->kind = REAP_REGULAR;
    chunk->is_users = is_users;
    chunk->is_mapped = is_mapped;
    chunk->size = size;
    chunk->starts = words - (uintptr_t)chunk / 1024;
    chunk->lives = NULL;
    reap_lay_out_empty(chunk, size, head);
}

/* Lays out an empty regular chunk and links it. It was on no list, and is not the first chunk. */
void reap_chunk_start(struct reap *reap, struct reap_chunk *chunk);

/* Sets a regular chunk's entry in the map: its reap, for fast paths; itself, for a free; or nothing. */
void entry_set(const struct reap_chunk *chunk, uint32_t entry);
static inline void entry_set_reap(const struct reap_chunk *chunk, const struct reap *reap)
{
    entry_set(chunk, (uint32_t)(uintptr_t)reap);
}
static inline void entry_set_chunk(const struct reap_chunk *chunk)
{
    entry_set(chunk, (uint32_t)(uintptr_t)chunk + 1);
}
static inline void entry_clear(const struct reap_chunk *chunk)
{
    if (chunk->lives) entry_set(chunk, 0);
}

/* Makes a chunk for one object of `size` bytes at an alignment. Any thread may call this: the chunk is
 * neither linked nor counted. Sets *zeroed (may be NULL) when the object is known to be zero. */
struct reap_chunk *reap_chunk_whole(struct reap *reap, size_t alignment, size_t size, bool *zeroed);

/* Links and counts such a chunk. */
void reap_chunk_hold(struct reap *reap, struct reap_chunk *chunk);

void reap_chunk_move(struct reap *from, struct reap *to, struct reap_chunk *chunk);

/* Gives back a chunk that is on no list, and whose tag is not that of a live chunk. */
void reap_chunk_give_back(struct reap_chunk *chunk);

/* Unlinks a chunk without live objects, and gives it back. */
void reap_chunk_release(struct reap *reap, struct reap_chunk *chunk);

/* Resizes a large object in place, so that its chunk has room for units. False: that is not possible. */
bool reap_chunk_resize(struct reap *reap, struct reap_chunk *chunk, size_t units);

/* Lets a large object's chunk grow elsewhere, with its bytes. Returns it; or NULL, and it is as it was. */
struct reap_chunk *reap_chunk_grow(struct reap *reap, struct reap_chunk *chunk, size_t units);

/* Links and counts the chunks that other threads have made for this reap. */
void reap_chunk_adopt_all(struct reap *reap);
static inline void reap_chunk_adopt(struct reap *reap)
{
    if (UNLIKELY(atomic_load_explicit(&reap->remote_chunks, memory_order_relaxed)))
        reap_chunk_adopt_all(reap);
}

/* Empty tables, shared by all reaps in region mode. */
extern HIDDEN struct reap_tables reap_no_tables;

/* A reap's tables lie behind it in the first chunk; if that is small, in a block of the backend's. */
static inline bool reap_tables_are_apart(const struct reap *reap)
{
    return reap->own && reap->own != &reap_records(reap)->tables;
}

static inline void reap_chunk_hold_bytes(struct reap *reap, size_t size)
{
    reap->held += size;
    ASSERT(reap->held >= size);
    if (reap->held > reap->peak) reap->peak = reap->held;
}

/* Carves a record from the gap at a chunk's end: the hole, or one on no list. NULL: that is too small. */
void *reap_chunk_record(struct reap *reap, struct reap_chunk *chunk, size_t size);

/* The first live object at or behind a unit of a chunk. SIZE_MAX: there is none. */
static inline size_t reap_chunk_next_object(const struct reap_chunk *chunk, size_t unit)
{
    if (chunk->kind == REAP_WHOLE) return unit > chunk->first ? SIZE_MAX : chunk->first;
    const uint64_t *bits = chunk->lives ? chunk->lives : chunk->starts;
    size_t end = chunk->lives ? chunk->end_unit : reap_chunk_top(chunk);
    unit = bitmap_next(bits, unit > chunk->first ? unit : chunk->first, end);
    while (UNLIKELY(!chunk->lives && chunk->dead) && unit < end && reap_chunk_is_dead_at(chunk, unit))
        unit = bitmap_next(bits, unit + 1, end);
    return unit < end ? unit : SIZE_MAX;
}

/* What one word of a chunk's bitmaps hands on to the next one. */
struct reap_carry {
    uint64_t end;   /* an object's end is looked for */
    uint64_t units; /* borrowed: the object goes on in the next word */
};

/* Returns the bits of all units of live objects, a word at a time from the chunk's first one on. The ends
 * less the beginnings, as numbers of many words, have the bits of the units in between. */
static inline uint64_t reap_used_units(uint64_t starts, uint64_t lives, struct reap_carry *carry)
{
    uint64_t sum, used, over = __builtin_add_overflow(~starts, lives << 1 | carry->end, &sum);
    carry->end = over | lives >> 63;
    uint64_t under = __builtin_sub_overflow(sum & starts, lives, &used);
    carry->units = __builtin_sub_overflow(used, carry->units, &used) | under;
    return used;
}

/* Counts the live objects of a regular chunk, or of a copy of its header, and returns their units. `top` is
 * where its objects end, in region state. */
size_t reap_chunk_count(const struct reap_chunk *chunk, size_t top, size_t *objects);

/* The units of a chunk's live objects, and the bytes of all live objects. */
size_t reap_chunk_units(const struct reap_chunk *chunk);
size_t reap_chunk_live_bytes(const struct reap *reap);

/* The chunk of a pointer into this reap's memory; NULL for any other pointer. */
static inline struct reap_chunk *reap_chunk_find(const struct reap *reap, const void *pointer)
{
    struct reap_chunk *chunk = chunk_of(pointer, NULL);
    return chunk && reap_chunk_is_live(chunk) && chunk->owner == reap ? chunk : NULL;
}

/* The chunk with objects that comes after this one: newest first, and the first chunk last. NULL after it. */
static inline struct reap_chunk *reap_chunk_after(const struct reap *reap, const struct reap_chunk *chunk)
{
    if (chunk == reap_first_chunk(reap)) return NULL;
    return chunk->next ? chunk->next : reap_first_chunk(reap);
}

static inline struct reap_chunk *reap_chunk_begin(const struct reap *reap)
{
    return reap->chunks ? reap->chunks : reap_first_chunk(reap);
}

#endif
