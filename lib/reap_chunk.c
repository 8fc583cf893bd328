/* reap_chunk.c: chunks of a reap, from the backend and back. */
#include "reap_chunk.h"

#include <errno.h>
#include <string.h>

#include "lent.h"

enum {
    FIRST_STARTS =
        (REAP_HEADER + sizeof(struct reap) + 63) / 64 * 64 /* bytes before the first chunk's bitmaps */
};
static_assert(FIRST_STARTS + 2 * REAP_FIRST_SIZE / 128 < REAP_FIRST_SIZE * 7 / 8,
              "a first chunk is for objects");
static_assert(REAP_LARGE <= REAP_MAX_SIZE / 16, "an object that shares a chunk must not fill it");

bool reap_watched;

/* Tables that know nothing, for reaps that have freed nothing. */
static struct reap_chunk nowhere;
static struct reap_heap no_heap = {.near = {[0 ... REAP_NEAR - 1] = &nowhere}};

void reap_heap_begin(struct reap *reap)
{
    if (reap->heap != &no_heap) return;
    if (!reap->bins_used) memset(reap->own.bins, 0, sizeof reap->own.bins);
    memcpy(reap->own.near, no_heap.near, sizeof no_heap.near);
    if (LIKELY(!(reap->flags & REAP_SPECIAL))) reap->heap = &reap->own;
}

struct reap_chunk *reap_chunk_find(struct reap *reap, const void *pointer)
{
    struct reap_chunk *chunk = reap_chunk_find_near(reap, pointer);
    if (chunk) return chunk;
    chunk = chunk_of(pointer, NULL);
    if (!chunk || !reap_chunk_is_live(chunk) || chunk->owner != reap) return NULL;
    if (UNLIKELY(reap->flags & REAP_SPECIAL || chunk->closed)) return chunk;
    reap_heap_begin(reap);
    return reap->own.near[reap_near(pointer)] = chunk;
}

void reap_chunk_forget_all(struct reap *reap) { reap->heap = &no_heap; }

size_t reap_chunk_live_bytes(const struct reap *reap)
{
    size_t units = 0;
    for (struct reap_chunk *chunk = reap_chunk_begin(reap); chunk; chunk = reap_chunk_after(reap, chunk))
        units += reap_chunk_live_units(reap, chunk);
    return units * REAP_UNIT;
}

void reap_chunk_forget(struct reap *reap, const struct reap_chunk *chunk)
{
    if (reap->heap == &no_heap) return;
    for (size_t i = 0; i < REAP_NEAR; i++)
        if (reap->own.near[i] == chunk) reap->own.near[i] = &nowhere;
}

/* Bytes of one bitmap of a chunk. */
static size_t bitmap_size(size_t chunk_size) { return chunk_size / REAP_UNIT / 8; }

/* The same with its guard: a word of zeros, so that a look at the bits behind one may cross over. */
static size_t guarded_size(size_t chunk_size) { return bitmap_size(chunk_size) + sizeof(uint64_t); }

/* Lays out a regular chunk: its bitmaps at offset `starts`, its objects behind them. */
static ALWAYS_INLINE void lay_out(struct reap_chunk *chunk, struct reap *owner, size_t size, size_t starts)
{
    chunk->owner = owner;
    chunk->tag = reap_chunk_tag(chunk);
    chunk->kind = REAP_REGULAR;
    chunk->size = size;
    chunk->first = reap_units(starts + guarded_size(size) + bitmap_size(size));
    chunk->limit = size / REAP_UNIT;
    chunk->live_units = chunk->limit - chunk->first;
    chunk->high = 0;
    chunk->notice = SIZE_MAX;
    chunk->dirty = chunk->closed = false;
    chunk->pinned = 0;
    chunk->depth = 0;
    atomic_init(&chunk->retreats, 0);
    chunk->starts = (uint64_t *)((char *)chunk + starts);
    chunk->frees = NULL;
    if (UNLIKELY(reap_watched))
        memtool_hide(reap_address(chunk, chunk->first), (chunk->limit - chunk->first) * REAP_UNIT);
}

/* One cache line of zeros: a call of memset, or what compilers make of 192 bytes (rep stos), costs
 * as much as the rest of creating a reap. */
typedef uint64_t line __attribute__((vector_size(64), aligned(8), may_alias));

static inline void zero_line(void *at) { *(line *)at = (line){0}; }

/* The bits and the guard; up to two lines of them are not worth a call. */
static inline void zero_starts(struct reap_chunk *chunk, size_t size)
{
    if (size == 8 * 1024) {
        zero_line(chunk->starts);
        chunk->starts[8] = 0;
    } else if (size == 16 * 1024) {
        zero_line(chunk->starts);
        zero_line(chunk->starts + 8);
        chunk->starts[16] = 0;
    } else {
        memset(chunk->starts, 0, guarded_size(size));
    }
}

/* A first chunk, empty, with the hole in it. Inline, because most have the size that makes constants of it.
 */
static ALWAYS_INLINE void lay_out_first(struct reap *reap, struct reap_chunk *chunk, size_t size)
{
    lay_out(chunk, reap, size, FIRST_STARTS);
    zero_starts(chunk, size);
    reap_chunk_bump_in(reap, chunk, chunk->first);
    reap_region_mode(reap);
}

/* Makes a reap in its first chunk. */
static ALWAYS_INLINE struct reap *begin(struct reap_chunk *chunk, size_t size)
{
    struct reap *reap = (struct reap *)((char *)chunk + REAP_HEADER);
    zero_line(reap);
    zero_line((char *)reap + 64);
    zero_line((char *)reap + 128);
    if (LIKELY(size == REAP_FIRST_SIZE))
        lay_out_first(reap, chunk, REAP_FIRST_SIZE);
    else
        lay_out_first(reap, chunk, size);
    chunk->lent = false;
    reap->tag = reap_tag(reap);
    reap->heap = &no_heap;
    atomic_init(&reap->remote, NULL);
    atomic_init(&reap->remote_chunks, NULL);
    reap->held = reap->peak = size;
    if (UNLIKELY(reap_watched)) {
        reap->flags = REAP_WATCHED;
        memtool_pool_begin(reap);
    }
    return reap;
}

/* The first chunk in a buffer: what of it begins and ends at multiples of 1 KiB. */
static_assert(REAP_BUFFER_MIN - 2 * LENT_ALIGN > FIRST_STARTS + REAP_BUFFER_MIN / 64,
              "a reap and objects fit into the smallest buffer");
static struct reap_chunk *in_buffer(struct reap_backing *backing, size_t *size)
{
    uintptr_t start = ((uintptr_t)backing->buffer + LENT_ALIGN - 1) & -(uintptr_t)LENT_ALIGN;
    uintptr_t end = ((uintptr_t)backing->buffer + *size) & -(uintptr_t)LENT_ALIGN;
    *size = end - start;
    backing->buffer = (void *)start;
    if (lent_add(backing->buffer, *size)) return backing->buffer;
    errno = ENOMEM;
    return NULL;
}

struct reap *reap_chunk_create_backed(const struct reap_backing *asked, size_t size)
{
    struct reap_backing backing = *asked;
    struct reap_chunk *chunk = backing.buffer ? in_buffer(&backing, &size)
                                              : reap_backing_take(&backing, size, &size, NULL);
    if (!chunk) return NULL;
    struct reap *reap = begin(chunk, size);
    chunk->lent = !reap_backing_is_hoard(&backing);
    reap->flags |= REAP_BACKED;
    reap->backing = backing;
    return reap;
}

struct reap *reap_chunk_create(const struct reap *parent, struct reap_chunk *chunk)
{
    size_t size = parent ? reap_child_size(parent) : REAP_FIRST_SIZE;
    if (UNLIKELY(chunk && chunk->size != size)) {
        reap_chunk_give_back_first(chunk);
        chunk = NULL;
    }
    if (!chunk) chunk = chunk_alloc(size, &size, NULL);
    if (UNLIKELY(!chunk)) return NULL;
    return begin(chunk, size);
}

void reap_chunk_learn_size(const struct reap *reap)
{
    const struct reap_chunk *first = reap_first_chunk(reap);
    struct reap *parent = reap->parent;
    unsigned log = atomic_load_explicit(&parent->child_log, memory_order_relaxed);
    bool outgrown = reap->peak > first->size;
    bool half = reap->current == first && reap_unit(first, reap->bump) < first->size / REAP_UNIT / 2;
    if (outgrown && log < REAP_FIRST_LOG)
        atomic_store_explicit(&parent->child_log, (uint8_t)(log + 1), memory_order_relaxed);
    else if (!outgrown && half && log > 0)
        atomic_store_explicit(&parent->child_log, (uint8_t)(log - 1), memory_order_relaxed);
}

/* The reap itself may be in it. */
static NOINLINE void give_lent(struct reap_chunk *chunk)
{
    struct reap_backing backing = chunk->owner->backing;
    reap_backing_give(&backing, chunk, chunk->size);
}

static void free_chunk(struct reap_chunk *chunk)
{
    if (UNLIKELY(reap_watched)) memtool_show(chunk, chunk->size);
    if (UNLIKELY(chunk->lent))
        give_lent(chunk);
    else
        chunk_free(chunk);
}

/* Ends a chunk that is on no list. */
static void give_back(struct reap_chunk *chunk)
{
    chunk->tag = 0;
    free_chunk(chunk);
}

static void give_back_all(struct reap_chunk *chunk)
{
    while (chunk) {
        struct reap_chunk *next = chunk->next;
        give_back(chunk);
        chunk = next;
    }
}

/* Objects that other threads freed go with all others; but their memory may come back as an object,
 * which must not look as if it were pending. */
static void drop_pending(struct reap *reap)
{
    if (LIKELY(!atomic_load_explicit(&reap->remote, memory_order_relaxed))) return;
    void *object = atomic_exchange_explicit(&reap->remote, NULL, memory_order_acquire);
    for (void **words = object; words && words[1] == reap_pending(words); words = object) {
        object = words[0];
        words[1] = NULL; /* one that was pushed twice is met again, and ends this */
    }
}

void reap_chunk_destroy(struct reap *reap)
{
    drop_pending(reap);
    reap_chunk_adopt(reap);
    if (UNLIKELY(reap_watched)) memtool_pool_end(reap);
    give_back_all(reap->chunks);
    give_back_all(reap->spares);
    struct reap_chunk *cradle = atomic_load_explicit(&reap->cradle, memory_order_relaxed);
    if (cradle) give_back(cradle);
    reap->tag = 0;
    reap->bump = reap->end = reap->limit = NULL;
    reap->bins_used = 0;
    reap->heap = &no_heap;
    reap_first_chunk(reap)->tag = 0;
}

void reap_chunk_give_back_first(struct reap_chunk *chunk) { free_chunk(chunk); }

/* Counts bytes that the backend gave. */
static void hold(struct reap *reap, size_t size)
{
    reap->held += size;
    if (reap->held > reap->peak) reap->peak = reap->held;
}

/* Puts a chunk on the reap's list. */
static void link_chunk(struct reap *reap, struct reap_chunk *chunk)
{
    chunk->depth = reap_depth(reap);
    chunk->prev = NULL;
    chunk->next = reap->chunks;
    if (chunk->next) chunk->next->prev = chunk;
    reap->chunks = chunk;
}

static void unlink_chunk(struct reap *reap, struct reap_chunk *chunk)
{
    if (chunk->next) chunk->next->prev = chunk->prev;
    if (chunk->prev)
        chunk->prev->next = chunk->next;
    else
        reap->chunks = chunk->next;
}

void reap_chunk_release(struct reap *reap, struct reap_chunk *chunk)
{
    if (chunk == reap->current) {
        reap->current = NULL;
        reap->bump = reap->end = reap->limit = NULL;
    }
    reap_chunk_forget(reap, chunk);
    unlink_chunk(reap, chunk);
    reap->closed -= chunk->closed;
    reap->held -= chunk->size;
    chunk->tag = ~reap_chunk_tag(chunk);
    free_chunk(chunk);
}

/* A spare with room for units, taken off its list. */
static struct reap_chunk *take_spare(struct reap *reap, size_t units)
{
    for (struct reap_chunk **link = &reap->spares; *link; link = &(*link)->next) {
        struct reap_chunk *chunk = *link;
        if (chunk->limit - chunk->first < units) continue;
        *link = chunk->next;
        reap->spare_bytes -= (uint32_t)chunk->size;
        return chunk;
    }
    return NULL;
}

/* The next chunk's bytes: as much as the reap holds, which doubles it, so that a reap that shrank
 * starts small again. */
static size_t next_size(const struct reap *reap)
{
    size_t size = REAP_FIRST_SIZE * 2;
    size_t max = UNLIKELY(reap->flags & REAP_BACKED) ? reap->backing.max_chunk : REAP_MAX_SIZE;
    while (size < max && size <= (reap->held - reap->spare_bytes) / 2) size *= 2;
    return size;
}

/* The least that has room for units. */
static size_t least_size(size_t units)
{
    size_t size = REAP_FIRST_SIZE;
    while (size < REAP_HEADER + 2 * guarded_size(size) + units * REAP_UNIT) size *= 2;
    return size;
}

/* A chunk from where this reap has its own. */
static struct reap_chunk *take_chunk(const struct reap *reap, size_t size, size_t *got, bool *zeroed)
{
    bool backed = reap->flags & REAP_BACKED;
    struct reap_chunk *chunk = UNLIKELY(backed) ? reap_backing_take(&reap->backing, size, got, zeroed)
                                                : chunk_alloc(size, got, zeroed);
    if (chunk) chunk->lent = backed && !reap_backing_is_hoard(&reap->backing);
    return chunk;
}

struct reap_chunk *reap_chunk_new(struct reap *reap, size_t units)
{
    bool zeroed = false;
    struct reap_chunk *chunk = UNLIKELY(reap->spares) ? take_spare(reap, units) : NULL;
    if (!chunk) {
        size_t least = least_size(units), size = next_size(reap);
        chunk = take_chunk(reap, size > least ? size : least, &size, &zeroed);
        if (UNLIKELY(!chunk)) chunk = take_chunk(reap, least, &size, &zeroed);
        if (UNLIKELY(!chunk)) return NULL;
        chunk->size = size;
        hold(reap, size);
    }
    lay_out(chunk, reap, chunk->size, REAP_HEADER);
    if (!zeroed) zero_starts(chunk, chunk->size);
    link_chunk(reap, chunk);
    return chunk;
}

struct reap_chunk *reap_chunk_whole(struct reap *reap, size_t alignment, size_t units, bool *zeroed)
{
    size_t size, aligned = UNLIKELY(reap->flags & REAP_BACKED) ? REAP_SOURCE_ALIGN : CHUNK_MIN;
    size_t room = alignment <= aligned ? 0 : alignment;
    size_t first = alignment > REAP_HEADER && alignment <= aligned ? alignment : REAP_HEADER;
    if (units > (PTRDIFF_MAX - first) / REAP_UNIT || units * REAP_UNIT + first > PTRDIFF_MAX - room) {
        errno = ENOMEM;
        return NULL;
    }
    struct reap_chunk *chunk = take_chunk(reap, first + room + units * REAP_UNIT, &size, zeroed);
    if (!chunk) return NULL;
    bool lent = chunk->lent;
    if (room) first = (((uintptr_t)chunk + first + alignment - 1) & ~(alignment - 1)) - (uintptr_t)chunk;
    *chunk = (struct reap_chunk){.owner = reap, .kind = REAP_WHOLE, .size = size, .first = first / REAP_UNIT};
    chunk->lent = lent;
    chunk->limit = chunk->first + units;
    chunk->live_units = units;
    chunk->tag = reap_chunk_tag(chunk);
    if (UNLIKELY(reap_watched)) memtool_hide((char *)chunk + first, size - first);
    return chunk;
}

void reap_chunk_hold(struct reap *reap, struct reap_chunk *chunk)
{
    link_chunk(reap, chunk);
    hold(reap, chunk->size);
}

void reap_chunk_move(struct reap *from, struct reap *to, struct reap_chunk *chunk)
{
    reap_chunk_forget(from, chunk);
    unlink_chunk(from, chunk);
    from->held -= chunk->size;
    chunk->owner = to;
    chunk->tag = reap_chunk_tag(chunk);
    reap_chunk_hold(to, chunk);
}

/* A chunk of the user's keeps its size. */
static bool fits(const struct reap_chunk *chunk, size_t units, size_t *size)
{
    *size = chunk->size;
    return (chunk->first + units) * REAP_UNIT <= chunk->size;
}

bool reap_chunk_resize(struct reap *reap, struct reap_chunk *chunk, size_t units)
{
    size_t size;
    if (units > PTRDIFF_MAX / REAP_UNIT - chunk->first) return false;
    bool done = chunk->lent ? fits(chunk, units, &size)
                            : chunk_resize(chunk, (chunk->first + units) * REAP_UNIT, &size);
    reap->held -= chunk->size;
    hold(reap, size);
    chunk->size = size;
    if (!done) return false;
    chunk->limit = chunk->first + units;
    chunk->live_units = units;
    return true;
}

void reap_chunk_adopt_all(struct reap *reap)
{
    struct reap_chunk *chunk = atomic_exchange_explicit(&reap->remote_chunks, NULL, memory_order_acquire);
    while (chunk) {
        struct reap_chunk *next = chunk->next;
        reap_chunk_hold(reap, chunk);
        if (reap->flags & REAP_LIMITED) reap->share.drawn += chunk->live_units * REAP_UNIT;
        chunk = next;
    }
}

void reap_chunk_make_frees(struct reap *reap, struct reap_chunk *chunk)
{
    uint64_t *frees = chunk->starts + guarded_size(chunk->size) / sizeof(uint64_t);
    memset(frees, 0, bitmap_size(chunk->size));
    __atomic_store_n(&chunk->frees, frees, __ATOMIC_RELEASE); /* free() in other threads looks at it */
    reap_heap_begin(reap);
}

void *reap_chunk_record(struct reap *reap, size_t size)
{
    size = (size + REAP_UNIT - 1) & -(size_t)REAP_UNIT;
    if ((size_t)(reap->limit - reap->bump) < size) return NULL;
    bool region = reap->end == reap->limit;
    reap->limit -= size;
    reap->current->limit -= size / REAP_UNIT;
    reap->current->live_units -= size / REAP_UNIT;
    reap->current->pinned |= REAP_PIN_RECORDS;
    if (region) reap->end = reap->limit;
    if (UNLIKELY(reap_watched)) memtool_show(reap->limit, size);
    return reap->limit;
}

/* The bytes that the round that ends has used beside the first chunk, and how many of them the
 * next round shall find: a peak that loses an eighth of the difference with each clear. */
static void update_keep(struct reap *reap)
{
    size_t used = 0;
    for (const struct reap_chunk *chunk = reap->chunks; chunk; chunk = chunk->next)
        if (chunk->kind == REAP_REGULAR) used += chunk->size;
    if (used > REAP_KEEP_MAX) used = REAP_KEEP_MAX;
    if (used >= reap->keep)
        reap->keep = (uint32_t)used;
    else
        reap->keep -= (reap->keep - (uint32_t)used + 7) / 8;
}

/* Makes a chunk of this round a spare, or gives it back. */
static void keep_or_give_back(struct reap *reap, struct reap_chunk *chunk)
{
    if (chunk->kind != REAP_REGULAR || reap->spare_bytes >= reap->keep) {
        reap->held -= chunk->size;
        give_back(chunk);
        return;
    }
    chunk->kind = REAP_SPARE;
    chunk->frees = NULL;
    chunk->next = reap->spares;
    reap->spares = chunk;
    reap->spare_bytes += (uint32_t)chunk->size;
}

/* Takes the spares that were not used through the same gate as the round's own chunks. */
static void sort_out_chunks(struct reap *reap)
{
    struct reap_chunk *lists[] = {reap->chunks, reap->spares};
    reap->chunks = reap->spares = NULL;
    reap->spare_bytes = 0;
    for (size_t i = 0; i < 2; i++) {
        while (lists[i]) {
            struct reap_chunk *chunk = lists[i];
            lists[i] = chunk->next;
            chunk->kind = chunk->kind == REAP_SPARE ? REAP_REGULAR : chunk->kind;
            keep_or_give_back(reap, chunk);
        }
    }
}

void reap_chunk_clear(struct reap *reap)
{
    struct reap_chunk *first = reap_first_chunk(reap);
    drop_pending(reap);
    reap_chunk_adopt(reap);
    update_keep(reap);
    if (UNLIKELY(reap_watched)) {
        memtool_pool_end(reap);
        memtool_pool_begin(reap);
    }
    lay_out_first(reap, first, first->size);
    reap->dirty = NULL;
    reap->closed = 0;
    reap->bins_used = 0;
    reap->heap = &no_heap;
    reap->cleanups = reap->spare_cleanups = NULL;
    if (reap->name) {
        const struct reap_name *name = reap->name;
        if (UNLIKELY(reap_watched)) memtool_show(reap->name, sizeof *name);
        size_t size = sizeof *name + name->room;
        if (UNLIKELY(reap_watched)) memtool_show(reap->name, size);
        reap->name = memmove(reap_chunk_record(reap, size), name, size);
    }
    sort_out_chunks(reap);
}
