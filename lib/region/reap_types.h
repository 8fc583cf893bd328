/* SPDX-License-Identifier: Apache-2.0 */
/* reap_types.h: the structures of a reap.
 *
 * A reap is a list of chunks. It carves objects from one of them, the current chunk, by bumping a
 * pointer; objects have no headers. The first chunk also holds the reap itself:
 *
 *     first chunk   | chunk header | struct reap | starts | frees | objects ->      <- records |
 *     other chunks  | chunk header |   starts    |     frees      | objects ->      <- records |
 *     large         | chunk header | one object                                                |
 *
 * Children of one parent are alike (the requests of a connection). When the first one of them has outgrown
 * its first chunk, or later most of them do, the next child begins with a bigger one, up to 32 KiB; when half
 * of it was enough for most, with a smaller one. Only children of today's size have a vote: of many that live
 * at once, most began before the last step. Roots, and first children, begin with 8 KiB.
 *
 * Vocabulary
 *     unit      16 bytes; offsets in a chunk are counted in units from its beginning
 *     block     a run of units that is one object, or free
 *     starts    bit u is set when a block starts at unit u
 *     frees     the second bitmap: bit u is set when the block that starts at unit u is free. A chunk
 *               has it from its first free on (NULL before)
 *     bump      the next object's place. The hole [bump, bump_max) of the current chunk is no block
 *     records   the reap's own memory (cleanups, its name), carved from the hole's far end; records
 *               are no objects, and cost objects nothing
 *     spare     an empty chunk kept by reapFreeAll for the next round
 *     cached child    the first chunk of a destroyed child, kept by its parent for the next child
 *     draining  a chunk whose free blocks are in no free list: it only loses objects (drain.h)
 *
 * An object's size is the distance to the next block's start (or to the bump pointer, or to the chunk's
 * end_unit). reap_tables.h says how a free finds its chunk. In region mode end == bump_max, and the fast path
 * bumps. In heap mode end == bump: so the same test sends every allocation to the free blocks first.
 *
 * In an instrumented process (instrument.h) all reaps stay in heap mode and show empty tables. So each object
 * takes a slow path, and the fast paths need no test for this. A guarded object is a large one with a chunk
 * header of its own, which lies elsewhere: its units are counted from the header on, modulo 2^64 bytes.
 *
 * Invariants (reap_is_valid checks them)
 *     - each unit in [first, end_unit) of a chunk lies in exactly one block or in the hole
 *     - each free block is on exactly the free list of its size; a block of a draining chunk is on none
 *     - reap_chunk_live is a chunk's units without those of its free blocks
 *     - the block before the hole is live: freeing it moves the bump pointer over all free blocks before it
 *     - each chunk has a live object, except for the first, the current one, spares and those with records
 *     - the sweep list has chunks of the reap, and exactly those whose node says so
 *     - a chunk's `fast_free_end` is its end once it has the second bitmap
 *     - held is the sum of the chunks' sizes, spares and big tables included; peak >= held
 *     - end is bump or bump_max, and bump_max while no free list holds a block. In a limited reap it may lie
 *       in between
 *
 * Threads: a reap's fields belong to the one thread that uses it, except `remote`, `remote_chunks`
 * (any thread pushes to them) and the fields that the parent's lock guards (see reap_tree.h).
 */
#ifndef REAP_TYPES_H
#define REAP_TYPES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "base/bitmap.h"
#include "base/list.h"
#include "hoard/chunk_provider.h"
#include "region/chunk_source.h"
#include "region/reap_tables.h"

enum {
    REAP_UNIT = 16,                  /* bytes; the alignment of objects */
    REAP_HEADER = 128,               /* bytes of a chunk's header */
    REAP_FIRST_SIZE = CHUNK_MIN,     /* bytes of the first chunk */
    REAP_FIRST_LOG = 2,              /* the first chunk doubles at most so often, if siblings needed more */
    REAP_MAX_SIZE = 1024 * 1024,     /* bytes; chunks double up to this */
    REAP_LARGE = 32 * 1024,          /* bytes; a bigger object has a chunk of its own */
    REAP_KEEP_MAX = 1024 * 1024,     /* bytes that reapFreeAll keeps at most beside the first chunk */
    REAP_BUFFER_MIN = 4096,          /* bytes of a buffer that a reap can live in */
    REAP_BUFFER_LOG = 43,            /* a buffer has fewer than 2^43 bytes: its units fit marks */
    REAP_AHEAD = 5,                  /* objects on the remote list between one and the one it points out */
    REAP_NAME_MAX = 4096,            /* bytes of a name, its end included */
    REAP_FACE = 256,                 /* bytes at the end of a shared reap's first chunk: see reap_shared.h */
};

/* The reasons to keep an empty chunk until a clear. */
enum reap_pin {
    REAP_PIN_RECORDS = 1, /* holds records */
    REAP_PIN_MARK = 2     /* an open mark is in it */
};

enum reap_kind {
    REAP_REGULAR = 1, /* carved into objects */
    REAP_WHOLE = 2,   /* one large object */
    REAP_SPARE = 3    /* kept by reapFreeAll */
};

/* The special states of a reap. */
enum reap_flag {
    REAP_ENDING = 1,  /* being cleared or destroyed */
    REAP_WATCHED = 2, /* instrumented or traced: see instrument.h, reap_trace.h */
    REAP_LIMITED = 4,  /* has a limit, or is below one: see quota.h */
    REAP_ON_LIMIT = 8, /* has a function of reapOnLimit */
    REAP_MARKED = 16,  /* a mark is open: see reap_mark.h */
    REAP_ENTERED = 64, /* is a thread's malloc: see reapEnter */
    REAP_SOURCED = 32,  /* has a chunk source: see chunk_source.h */
    REAP_BIG_TABLES = 128,   /* its tables have grown and lie elsewhere */
    /* with one of these flags the only fast path is bumping, up to `end` */
    REAP_SPECIAL = 0xff & ~(REAP_ENDING | REAP_ON_LIMIT | REAP_SOURCED | REAP_ENTERED | REAP_BIG_TABLES)
};

struct reap;

/* Checks and other threads read the first cache line, which seldom changes. The second one changes often. */
struct reap_chunk {
    struct reap_chunk *next; /* the backend overwrites these two in a free chunk */
    struct reap_chunk *prev;
    struct reap *owner;
    uintptr_t tag;    /* reap_chunk_tag() while live, so that user memory is not taken for a header;
                         its complement after the chunk was given back with all its objects freed */
    uint64_t *starts; /* and a word of zeros behind it */
    uint64_t *frees;  /* NULL: nothing has been freed in here */
    size_t first;     /* unit of the first object */
    uint8_t kind;     /* enum reap_kind */
    bool is_users : 1; /* in user memory, or of a guarded object */
    bool apart : 1;   /* the header of a guarded object (guarded.h); only with REAP_WHOLE */
    bool shared : 1;  /* the owner is a shared reap, or a hidden child of one: see reap_shared.h */
    uint16_t depth;   /* marks that were open when it was made, and still are */
    uint32_t floor;   /* with REAP_PIN_MARK: the unit of its last mark, the low bits */

    size_t end_unit;   /* unit past the last object; records lie beyond */
    ptrdiff_t live_above;  /* the chunk's live units (reap_chunk_live) less sweep_below: so a free counts and
                              compares at once */
    ptrdiff_t sweep_below; /* a free calls reap_free_rest when the live units fall below it */
    size_t fast_free_end; /* fast paths free blocks that start below this unit; 0 without the second bitmap */
    size_t size;       /* bytes held of the backend */
    struct list_node to_sweep;  /* on the sweep list */
    uint32_t draining : 1;      /* its free blocks are on no free list: see drain.h */
    uint32_t pinned : 2;        /* enum reap_pin */
    uint32_t floor_high : 7;    /* the high bits of floor: there are marks up to 8 TiB */
    uint32_t high_water : 22;         /* the furthest unit that the bump pointer came back from, if it fits */
    _Atomic(uint32_t) shrink_seq; /* odd while the end of its blocks moves back, or its hole becomes a block;
                                     counts these. Other threads that measure objects read it */
};
static_assert(offsetof(struct reap_chunk, end_unit) == 64, "what changes often is in the second line");
static_assert(sizeof(struct reap_chunk) <= REAP_HEADER, "the header must leave the first object its place");
static_assert(offsetof(struct reap_chunk, owner) >= CHUNK_CLOBBERED, "tags must outlive chunk_free");

struct reap_cleanup;

/* A reap's name. When the program takes the name away, this stays for the next one, with an empty text. */
struct reap_name {
    uint16_t room; /* bytes there are for the text */
    bool given;
    char text[];
};

/* A reap's share of the limits that it is below, and its own limit: see quota.h. */
struct reap_share {
    struct reap *limiter;
    char *from;   /* room counts the bumped bytes up to here; NULL: open, within a call */
    size_t drawn; /* on each limiter */
    size_t room;
    size_t extra;
    size_t bytes; /* the reap's own limit, or 0; the next three belong to it */
    struct reap *above;
    _Atomic(size_t) left;
    _Atomic(size_t) slack;
    void (*fn)(void **reap, size_t size, void *arg); /* undefined without REAP_LIMITED or REAP_ON_LIMIT */
    void *arg;
};

/* Reaps in a list, newest first, and its lock: see reap_tree.h. */
struct reap_list {
    struct reap *first;
    _Atomic(uint32_t) lock;
};

/* Creating a reap writes only the first three cache lines, and the fields for other threads: each field of
 * the first line, and zeros to the other two. */
struct reap {
    /* the fast paths */
    void *self; /* this reap: so a program may pass a handle where a call wants a handle's address */
    char *bump;
    char *end;        /* bump_max, or bump in heap mode */
    uintptr_t starts; /* of the current chunk, biased: the half of address a is at starts + a / 512 * 4 */
    char *bump_max;   /* where the hole ends */
    uint64_t freelists_used;    /* bit i: freelists[i] is not empty */
    struct reap_tables *tables; /* own, big, or the empty ones */
    struct reap_chunk *current; /* NULL: there is no hole */

    /* memory */
    uintptr_t tag;             /* reap_tag() while live, or reap_shared_tag() */
    struct reap_chunk *chunks; /* all but the first and the spares, newest first */
    struct list to_sweep; /* the sweep list: chunks to be swept before the reap grows */
    size_t held;              /* bytes in all chunks */
    size_t peak;              /* the greatest value of held so far */
    uint32_t spare_bytes;     /* the part of held in spares */
    uint32_t keep; /* bytes that a clear keeps beside the first chunk: a decaying peak */

    /* the tree: next and prev are guarded by the lock of the list that has this reap */
    struct reap *parent;
    struct reap *next;
    struct reap *prev;
    union {
        struct reap_list below; /* the children */
        struct {
            struct reap *children;
            _Atomic(uint32_t) lock;
            uint16_t born;  /* the parent's marks that were open when it was made, and still are */
            uint8_t flags;  /* enum reap_flag */
            _Atomic(uint8_t) child_votes; /* the size that children begin with, and votes on it: see below */
        };
    };

    /* records */
    struct reap_cleanup *cleanups; /* newest first */
    struct reap_cleanup *spare_cleanups;
    struct reap_name *name;

    _Atomic(struct reap_chunk *) cached_child; /* or NULL; any thread may set or take it */
    uint32_t draining;                   /* number of draining chunks */
    bool reuse_any;                          /* small objects take any free block before the reap grows */
    bool walked;                         /* a reapWalk runs */
    uint16_t patience;                   /* the reap grows so often before it joins all free blocks again */

    /* for other threads, on cache lines to which the reap's own thread does not write */
    _Atomic(uintptr_t) remote;                  /* pending objects, linked through their first words */
    _Atomic(struct reap_chunk *) remote_chunks; /* made by realloc() in other threads, not yet in chunks */
    _Atomic(unsigned) turn;                     /* the next place in recent, modulo REAP_AHEAD */
    uint32_t made_at;                           /* reap_seconds when it was made */
    _Atomic(void *) recent[REAP_AHEAD];         /* objects that were freed last, more or less */

    struct reap_share share;             /* undefined without REAP_LIMITED */
    struct reap_chunk *spares;           /* undefined while spare_bytes is 0 */
    uint64_t mark;                       /* the last open mark's number; undefined without REAP_MARKED, as: */
    uint16_t depth;                      /* number of open marks; changes under the lock */
    uint16_t going_to;                   /* the depth to rewind to, or 0; undefined unless REAP_ENDING, as: */
    uint32_t ending_in;                  /* see reap_tree.h, Fork */
    union {
        struct chunk_source source; /* undefined without REAP_SOURCED */
        char short_name[sizeof(struct chunk_source)]; /* see reap_short_name */
    };
    union {
        struct reap *outer;     /* the reap entered before; undefined without REAP_ENTERED, as: */
        struct reap_part *part; /* of a shared reap or a hidden child, always: see reap_shared.h */
    };
    uint32_t entered;                    /* how often it is entered; a shared reap: by how many threads */
    uint32_t entered_in;                 /* see reap_enter.h */
    uint64_t made;                       /* time of its creation; undefined unless traced */
    const void *coming;                  /* the walk's next object; undefined unless walked */
    struct reap_tables *big;              /* undefined without REAP_BIG_TABLES */

    /* heap mode */
    struct reap_tables own; /* undefined until reap_tables_begin */
};
static_assert(offsetof(struct reap, children) == offsetof(struct reap, below.first) &&
                  offsetof(struct reap, lock) == offsetof(struct reap, below.lock),
              "a reap's children are a list");
static_assert(offsetof(struct reap, remote) == 3 * 64, "reap_region_create writes three lines");
static_assert(offsetof(struct reap, recent) == 3 * 64 + 24, "made_at takes no room");
static_assert(REAP_KEEP_MAX + REAP_MAX_SIZE <= UINT32_MAX, "spares are counted in 32 bits");
static_assert(REAP_NAME_MAX + sizeof(struct reap_name) <= UINT16_MAX, "names are measured in 16 bits");

/* The spares, newest first. */
static inline struct reap_chunk *reap_spares(const struct reap *reap)
{
    return UNLIKELY(reap->spare_bytes != 0) ? reap->spares : NULL;
}

/* In a reap without a source, a name of REAP_SHORT_NAME bytes at most lies here, and not in a record. */
enum { REAP_SHORT_NAME = sizeof(struct chunk_source) - offsetof(struct reap_name, text) };
static inline struct reap_name *reap_short_name(struct reap *reap)
{
    return (struct reap_name *)(void *)reap->short_name;
}

/* The name, or an empty text. */
static inline const char *reap_name_text(const struct reap *reap)
{
    return reap->name ? reap->name->text : "";
}

/* Returns true if a buffer is the reap's only memory. Then large objects lie in it too. */
static inline bool reap_is_fixed(const struct reap *reap)
{
    return reap->flags & REAP_SOURCED && reap->source.buffer && !reap->source.take;
}

/* Returns true if an object of this size gets a chunk of its own. */
static inline bool reap_is_large(const struct reap *reap, size_t size)
{
    return UNLIKELY(size > REAP_LARGE) && LIKELY(!reap_is_fixed(reap) || size > PTRDIFF_MAX);
}

/* True if each object takes a slow path, for a sanitizer or guarded.h. Set before the first reap is made. */
extern HIDDEN bool reap_instrumented;

/* The time of reapSetClock in seconds; 0: there is none. Reaps note it, for their ages. */
extern HIDDEN _Atomic(uint32_t) reap_seconds;

/* --- addresses ------------------------------------------------------------------------------- */

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
    return (uintptr_t)chunk ^ (uintptr_t)owner << 16 ^ (uintptr_t)0xc2b2ae3d27d4eb4f;
}

static inline uintptr_t reap_chunk_tag(const struct reap_chunk *chunk)
{
    return reap_chunk_tag_of(chunk, chunk->owner);
}

static inline bool reap_chunk_is_live(const struct reap_chunk *chunk)
{
    return chunk->tag == reap_chunk_tag(chunk);
}

static inline bool reap_chunk_was_freed(const struct reap_chunk *chunk)
{
    return chunk->tag == ~reap_chunk_tag(chunk);
}

static inline void *reap_address(const struct reap_chunk *chunk, size_t unit)
{
    return (char *)chunk + unit * REAP_UNIT;
}

static inline size_t reap_unit(const struct reap_chunk *chunk, const void *pointer)
{
    return (size_t)((const char *)pointer - (const char *)chunk) / REAP_UNIT;
}

/* Converts bytes to units; at least one, because every object has an address of its own. */
static inline size_t reap_units(size_t size) { return size == 0 ? 1 : (size + REAP_UNIT - 1) / REAP_UNIT; }

/* The unit where a chunk's blocks end; in the current chunk that is at the bump pointer. */
static inline size_t reap_chunk_top(const struct reap *reap, const struct reap_chunk *chunk)
{
    return chunk == reap->current ? reap_unit(chunk, reap->bump) : chunk->end_unit;
}

/* A chunk's units without those in free blocks: the hole counts as live. */
static inline size_t reap_chunk_live(const struct reap_chunk *chunk)
{
    return (size_t)(chunk->live_above + chunk->sweep_below);
}

/* The units of a chunk's live objects, without the hole. */
static inline size_t reap_chunk_live_units(const struct reap *reap, const struct reap_chunk *chunk)
{
    ASSERT(reap_chunk_live(chunk) >= chunk->end_unit - reap_chunk_top(reap, chunk));
    return reap_chunk_live(chunk) - (chunk->end_unit - reap_chunk_top(reap, chunk));
}

/* Sets below how many live units a free calls reap_free_rest. With all units of the chunk, each free does. */
static inline void reap_chunk_sweep_below(struct reap_chunk *chunk, ptrdiff_t units)
{
    chunk->live_above += chunk->sweep_below - units;
    chunk->sweep_below = units;
}

/* The unit of a chunk's last mark. */
static inline size_t reap_chunk_mark(const struct reap_chunk *chunk)
{
    ASSERT(chunk->pinned & REAP_PIN_MARK);
    return (size_t)chunk->floor_high << 32 | chunk->floor;
}

static inline void reap_chunk_set_mark(struct reap_chunk *chunk, size_t unit)
{
    chunk->floor = (uint32_t)unit;
    chunk->floor_high = (unit >> 32) & 0x7f;
}

/* The unit below which the bump pointer does not come back in a chunk. */
static inline size_t reap_chunk_floor(const struct reap_chunk *chunk)
{
    return chunk->pinned & REAP_PIN_MARK ? reap_chunk_mark(chunk) : chunk->first;
}

/* Notes that the bump pointer comes back from a unit. */
static inline void reap_chunk_note_high(struct reap_chunk *chunk, size_t unit)
{
    const uint32_t most = ((uint32_t)1 << 22) - 1;
    if (unit > chunk->high_water) chunk->high_water = (unit < most ? (uint32_t)unit : most) & most;
    ASSERT(unit > most || chunk->high_water >= unit);
}

/* The number of the reap's open marks. */
static inline uint16_t reap_depth(const struct reap *reap)
{
    return UNLIKELY(reap->flags & REAP_MARKED) ? reap->depth : 0;
}

/* The bytes of the first chunk of the next child. The two low bits of child_votes say how often it doubles;
 * the others are a signed number: the votes for more less those for less. */
enum { REAP_VOTE = 4 };
static inline size_t reap_child_size(const struct reap *parent)
{
    uint8_t votes = atomic_load_explicit(&parent->child_votes, memory_order_relaxed);
    return (size_t)REAP_FIRST_SIZE << (votes % REAP_VOTE);
}

/* Where the block that starts at unit ends. */
static inline size_t reap_block_end(const struct reap *reap, const struct reap_chunk *chunk, size_t unit)
{
    if (chunk->kind == REAP_WHOLE) return chunk->end_unit;
    return bitmap_next(chunk->starts, unit + 1, reap_chunk_top(reap, chunk));
}

static inline bool reap_is_free(const struct reap_chunk *chunk, size_t unit)
{
    return chunk->frees && bitmap_get(chunk->frees, unit);
}

/* The reap's own tables, or its big ones. */
static inline struct reap_tables *reap_tables_of(struct reap *reap)
{
    return UNLIKELY(reap->flags & REAP_BIG_TABLES) ? reap->big : &reap->own;
}

/* A link of the remote list: an object, and a bit that tells whether its third word points out a later
 * one. */
static inline uintptr_t reap_link(const void *object, bool points) { return (uintptr_t)object | points; }
static inline void *reap_link_object(uintptr_t link) { return (void *)(link & ~(uintptr_t)1); }
static inline bool reap_link_points_out(uintptr_t link) { return link & 1; }

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

/* The chunk of a pointer into this reap's memory. NULL: the chunk cache does not have it. A dead reap's cache
 * is empty. */
static inline struct reap_chunk *reap_chunk_find_cached(const struct reap *reap, const void *pointer)
{
    struct reap_chunk *chunk = *reap_cached_chunk(reap->tables, pointer);
    return LIKELY((uintptr_t)pointer - (uintptr_t)chunk < chunk->size) ? chunk : NULL;
}

/* Sets the start bit of a block at bump. The fast path writes nothing else per object. Each change of a word
 * waits for the one before: so it changes halves, which have half as many objects. */
static inline void reap_mark_start(const struct reap *reap, const char *bump)
{
    ASSERT((uintptr_t)bump % REAP_UNIT == 0);
    bitmap_half *half = (bitmap_half *)(reap->starts + (uintptr_t)bump / 512 * 4);
    *half |= (bitmap_half)1 << ((uintptr_t)bump / REAP_UNIT % 32);
}

/* reap_shrink_begin and reap_shrink_end enclose each change that moves the end of the block before the hole
 * without a start bit at the new end. Other threads may measure that block: see remote_free.c. */
static inline void reap_shrink_begin(struct reap_chunk *chunk)
{
    uint32_t shrink_seq = atomic_load_explicit(&chunk->shrink_seq, memory_order_relaxed);
    ASSERT(shrink_seq % 2 == 0);
    atomic_store_explicit(&chunk->shrink_seq, shrink_seq + 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
}

static inline void reap_shrink_end(struct reap_chunk *chunk)
{
    uint32_t shrink_seq = atomic_load_explicit(&chunk->shrink_seq, memory_order_relaxed);
    ASSERT(shrink_seq % 2 == 1);
    atomic_store_explicit(&chunk->shrink_seq, shrink_seq + 1, memory_order_release);
}

/* Makes a chunk the current one, with its units from `from` on as the hole. There must be no hole before. */
static inline void reap_chunk_bump_in(struct reap *reap, struct reap_chunk *chunk, size_t from)
{
    ASSERT(chunk->owner == reap && from >= chunk->first && from <= chunk->end_unit);
    reap->current = chunk;
    reap->bump = reap_address(chunk, from);
    reap->bump_max = reap_address(chunk, chunk->end_unit);
    reap->starts = (uintptr_t)chunk->starts - (uintptr_t)chunk / 512 * 4;
}

/* Sets region mode: fast paths may bump up to bump_max. */
static inline void reap_region_mode(struct reap *reap)
{
    reap->end = UNLIKELY(reap_instrumented) ? reap->bump : reap->bump_max;
}

/* Sets heap mode: the slow path looks at the free blocks before it bumps. */
static inline void reap_heap_mode(struct reap *reap) { reap->end = reap->bump; }

#endif
