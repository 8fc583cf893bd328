/* SPDX-License-Identifier: Apache-2.0 */
/* reap_types.h: the structures of a reap.
 *
 * A reap is a list of chunks. It carves objects, which have no headers, from one of them, the current chunk,
 * by bumping a pointer. The first chunk also holds the reap itself:
 *
 *     first chunk   | chunk header | struct reap | struct reap_records | objects ->      <- records |
 *     other chunks  | chunk header | objects ->                    <- records |
 *     large         | chunk header | one object                               |
 *
 * Roots begin with 8 KiB, children with 1 KiB or what those of today's size have voted for (region.h).
 *
 * Two bitmaps say what the memory of a regular chunk is. They lie apart, with those of its whole arena
 * (chunk_map.h); those of a chunk in user memory, or of more than 64 KiB, lie in it, before its objects.
 *
 * Vocabulary
 *     unit      16 bytes of the address space: unit u has the address 16 u
 *     block     a run of units that is one object, a gap, or the hole
 *     starts    bit u is set when a block starts at unit u
 *     lives     bit u is set when an object starts there, and lives. A chunk has these bits in heap mode
 *               (before, it is in region state, and all blocks but the hole and dead ones are objects)
 *     dead      in region state, in the same place: bit u is set when a block there was freed (reap_dead.h)
 *     gap       a block that is no object: freed, or never used
 *     bump      the next object's place. The hole is the block [bump, bump_max) of the current chunk
 *     records   the reap's own memory (cleanups, its name), carved from the hole's far end; what modules
 *               keep (struct reap_records) lies behind the reap instead
 *     spare     an empty chunk kept by reapFreeAll for the next round
 *     cached    a dead child, which its parent (a dead root, which a list) keeps for the next one: as new,
 *               but for the tags
 *
 * An object's size is the distance to the next block's start: an allocation sets the start bit of what
 * follows the object. The last unit of a chunk always has a start bit, and is no object. A reap begins in
 * region mode: then end == bump_max, and fast paths bump. In heap mode (reap_free.h) end == bump: so the same
 * test sends every allocation to the free lists first. Where objects lie apart (apart.h) a reap has no hole,
 * and empty tables: each object is to the reap a large one, whose chunk header lies elsewhere.
 *
 * Invariants (reap_is_valid checks them)
 *     - each unit in [first, end_unit) of a chunk lies in exactly one block
 *     - a live bit has a start bit
 *     - gaps that are on free lists lie in listed chunks, or in the swept one before its top, and a list has
 *       gaps of its own sizes
 *     - each chunk that is quiet has a live object, except for the first, the current one and those with
 *       records; while a mark is open, those that have none are on a list of their own
 *     - held is the sum of the chunks' sizes, spares included; peak >= held
 *     - end is bump or bump_max. In a limited reap, or by the heap profile's doing, it may lie in between
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
#include "base/list.h"
#include "hoard/chunk_provider.h"

enum {
    REAP_UNIT = 16,              /* bytes; the alignment of objects */
    REAP_HEADER = 128,           /* bytes of a chunk's header */
    REAP_SMALL_SIZE = CHUNK_MIN, /* bytes of a small first chunk */
    REAP_FIRST_SIZE = 8 * 1024,  /* bytes of a root's first chunk, and the least of all other chunks */
    REAP_FIRST_STEPS = 3,        /* from a small first chunk to one of 8, 16 and 32 KiB */
    REAP_MAX_SIZE = 64 * 1024,   /* bytes; chunks double up to this */
    REAP_LARGE = 32 * 1024,      /* bytes; a bigger object has a chunk of its own */
    REAP_KEEP_MAX = 1024 * 1024, /* bytes that reapFreeAll keeps at most beside the first chunk */
    REAP_BUFFER_MIN = 4096,      /* bytes of a buffer that a reap can live in */
    REAP_BUFFER_LOG = 43,        /* a buffer has fewer than 2^43 bytes: its units fit marks */
    REAP_NAME_MAX = 4096,        /* bytes of a name, its end included */
    REAP_FACE = 256,             /* bytes at the end of a shared reap's first chunk: see reap_shared.h */
};

enum reap_kind {
    REAP_REGULAR = 1, /* carved into objects */
    REAP_WHOLE = 2,   /* one large object */
    REAP_SPARE = 3    /* kept by reapFreeAll */
};

/* What a free does in a regular chunk. */
enum reap_chunk_state {
    REAP_CHUNK_REGION, /* there are no live bits; in the current chunk a free may set a dead bit */
    REAP_CHUNK_LISTED, /* a gap goes onto the free list of its size */
    REAP_CHUNK_QUIET,  /* a free clears a live bit */
    REAP_CHUNK_SWEPT   /* the reap takes its gaps, in order; a free clears a live bit */
};

/* The special states of a reap. */
enum reap_flag {
    REAP_ENDING = 1,     /* being cleared or destroyed */
    REAP_WATCHED = 2,    /* its objects lie apart: see apart.h */
    REAP_LIMITED = 4,    /* has a limit, or is below one: see quota.h */
    REAP_ON_LIMIT = 8,   /* has a function of reapOnLimit */
    REAP_MARKED = 16,    /* a mark is open: see reap_mark.h */
    REAP_SOURCED = 32,   /* has a chunk source */
    REAP_ENTERED = 64,   /* is a thread's malloc: see reapEnter */
    REAP_UNMAPPED = 128, /* has a chunk that is not mapped: no fast paths in heap mode */
    /* with one of these flags the only fast path is bumping, up to `end` */
    REAP_SPECIAL = REAP_WATCHED | REAP_LIMITED | REAP_MARKED
};

struct reap;

/* What a chunk with dead bits has for the next objects: see reap_dead.h. */
struct dead_blocks {
    uint32_t first;  /* the newest one: its unit, from the chunk's `first` on, and 1; 0: the list is empty */
    uint16_t frees;  /* blocks that have become dead since none was */
    uint16_t misses; /* objects since the last free for which there was none */
};

/* Checks and other threads read the first cache line, which seldom changes. The second one changes often. */
struct reap_chunk {
    struct reap_chunk *next; /* the backend overwrites these two in a free chunk */
    struct reap_chunk *prev;
    struct reap *owner;
    uintptr_t tag;    /* reap_chunk_tag() while live, so that user memory is not taken for a header;
                         its complement after the chunk was given back with all its objects freed */
    uint64_t *starts; /* biased: the bit of unit u is in starts[u / 64] */
    uint64_t *lives;  /* the same; only with live bits: NULL in region state */
    size_t first;     /* unit of the first object */
    uint8_t kind;     /* enum reap_kind */
    bool is_users;    /* in user memory, or of an object that lies apart */
    bool is_mapped;   /* its bits lie in the map (chunk_map.h), and not in itself */
    bool apart : 1;   /* of an object that lies apart (apart.h); only with REAP_WHOLE */
    bool shared : 1;  /* the owner is a part of a shared reap: see reap_shared.h */
    uint16_t depth;   /* marks that were open when it was made, and still are */
    uint8_t state;    /* enum reap_chunk_state */
    bool has_records; /* stays until a clear; apart from the bits above, which other threads read */

    size_t end_unit; /* unit past the last object; there is a start bit, and records lie beyond */
    size_t top;      /* in region state: unit past the last object, if it is not the current chunk;
                        in swept state: the unit from which on the sweep goes on */
    size_t high;     /* the furthest unit that the bump pointer came back from */
    size_t dead;     /* in region state: the units of dead blocks; 0: there are no dead bits */
    size_t size;     /* bytes held of the backend */
    union {
        struct list_node node; /* with live bits: on one of the reap's lists of chunks, if it has tables */
        struct dead_blocks dead_list; /* in region state; undefined while `dead` is 0 */
    };
    bool is_done; /* in quiet state: its list is `done` */
};
static_assert(offsetof(struct reap_chunk, end_unit) == 64, "what changes often is in the second line");
static_assert(sizeof(struct reap_chunk) <= REAP_HEADER, "the header must leave the first object its place");
static_assert(offsetof(struct reap_chunk, owner) >= CHUNK_CLOBBERED, "tags must outlive chunk_free");

enum {
    REAP_EXACT_LISTS = 63,                     /* free lists of one size each: list n has gaps of n units */
    REAP_FREELISTS = 1 + REAP_EXACT_LISTS + 18 /* and two for each doubling, up to 384 KiB and more */
};

/* A gap on a free list, which has its link in its own memory. */
struct reap_block {
    struct reap_block *next;
    size_t units; /* only in gaps of more than REAP_EXACT_LISTS units */
};

/* When the free lists are dropped, in units: see "when a flush comes" in reap_free.c. */
struct flush_budget {
    ptrdiff_t room; /* so many may be freed before the next look; fast paths count it */
    size_t allowed; /* room, and what is on lists */
    size_t found;   /* of what is on lists: sweeps found it, and no free put it there */
    size_t gained;  /* holes since the last flush */
    size_t hole;    /* so many of the hole were free at its beginning, or were counted since */
    bool is_blind;  /* since the last flush a mark has dropped the lists */
    bool is_sparse; /* half of the reap is unused, and the last look found no reason for a flush */
};

/* Heap mode: free lists by size (reap_free.h), which fast paths read through reap->tables, and the sweep. All
 * reaps in region mode show empty tables: so creating a reap need not clear its own. */
struct reap_tables {
    struct reap_block *freelists[REAP_FREELISTS]; /* the first gap of each size, or NULL */
    struct flush_budget budget;
    struct reap_chunk *swept; /* the chunk whose gaps are taken, or NULL; a mark makes it quiet */
    struct list listed;       /* chunks whose gaps are on free lists, and the swept one */
    struct list quiet;        /* chunks to be swept */
    struct list done;         /* quiet ones that a mark found listed: to be swept after the next flush */
    struct list emptied;      /* quiet ones that go when the last mark is closed */
};
static_assert(sizeof(struct reap_tables) <= 768, "those of a small reap are a block of a small class");

/* A function that a reap calls when it ends: a record, on a stack. The reap takes it off before the call: so
 * a function may register and cancel others, and none is called twice. */
struct reap_cleanup {
    struct reap_cleanup *next;
    void (*fn)(void *arg);
    void *arg;
    unsigned depth; /* marks that were open when it was registered, and still are */
};

/* A reap's copy of its name. When the program takes the name away, this stays, with an empty text. */
struct reap_name {
    uint16_t room; /* bytes there are for the text */
    bool given;
    char text[];
};

/* A reap's share of the limits that it is below, and its own limit: see quota.h. Undefined without
 * REAP_LIMITED; fn and arg without that and REAP_ON_LIMIT. */
struct reap_share {
    struct reap *limiter;
    char *from;   /* room counts the bumped bytes up to here; NULL: suspended, within a call */
    size_t drawn; /* on each limiter */
    uint32_t room;
    uint32_t extra;
    _Atomic(uint64_t) pending; /* units of counted objects; above 32 bits: claimed ones */
    size_t bytes;              /* the reap's own limit, or 0; the next three belong to it */
    struct reap *above;
    _Atomic(size_t) left;
    _Atomic(size_t) slack;
    void (*fn)(void **reap, size_t size, void *arg);
    void *arg;
};

/* The children of a reap, or roots, newest first: see reap_tree.h. */
struct reap_list {
    struct reap *first;
    _Atomic(uint32_t) lock;
    _Atomic(uint8_t) votes;        /* the size that children begin with, and votes on it: reap_step */
    _Atomic(struct reap *) cached; /* a dead one, as new but for its tags, or NULL; guarded by the lock */
};

/* A new reap has zeros up to `own`, but for a few fields, and the rest is undefined. */
struct reap {
    /* the fast paths */
    void *self; /* this reap: so a program may pass a handle where a call wants a handle's address */
    char *bump;
    char *end;        /* bump_max, or bump in heap mode */
    uintptr_t starts; /* those of the current chunk: the half of address a is at starts + a / 512 * 4 */
    char *bump_max;   /* where the hole ends */
    char *mark_at;    /* where the hole began at the last open mark, or NULL */
    struct reap_tables *tables; /* own, or the empty ones */
    struct reap_chunk *current; /* NULL: there is no hole */

    /* memory */
    uintptr_t tag;             /* reap_tag() while live, or reap_shared_tag() */
    struct reap_chunk *chunks; /* all but the first and the spares, newest first */
    size_t carved;             /* bytes in regular chunks */
    size_t held;               /* bytes in all chunks */
    size_t peak;               /* the greatest value of held so far */
    uint32_t spare_bytes;      /* the part of held in spares */
    uint32_t keep;             /* bytes that a clear keeps beside the first chunk: a decaying peak */

    /* the tree: next and prev are guarded by the lock of the list that has this reap */
    struct reap *parent;
    struct reap *next;
    struct reap *prev;
    struct reap_list below; /* the children */

    /* records */
    struct reap_cleanup *cleanups; /* newest first */
    struct reap_cleanup *spare_cleanups;
    const char *name; /* a constant of the program, or the text of a struct reap_name; or NULL */

    uint32_t made_at; /* reap_seconds when it was made */
    uint16_t born;    /* the parent's marks that were open when it was made, and still are */
    uint8_t flags;    /* enum reap_flag */
    bool heap;        /* heap mode: the last of the three that reap_states reads at once */

    /* for other threads, on a cache line to which the reap's own thread seldom writes */
    _Atomic(uintptr_t) remote;                  /* pending objects, linked through their first words */
    _Atomic(struct reap_chunk *) remote_chunks; /* made by realloc() in other threads, not yet in chunks */
    struct reap_tables *own;                    /* NULL: never in heap mode, or no memory for them */

    struct reap_chunk *spares; /* undefined while spare_bytes is 0 */
    struct reap *outer;        /* the reap entered before; undefined without REAP_ENTERED, as: */
    uint32_t entered;          /* how often (see reap_enter.h); a shared reap: by how many threads */
    uint32_t entered_in;       /* see reap_enter.h */
    uint64_t mark;             /* the last open mark's number; undefined without REAP_MARKED, as: */
    uint16_t depth;            /* number of open marks; sinks under the lock */
    uint16_t going_to;         /* the depth to rewind to, or 0; undefined unless REAP_ENDING, as: */
    uint32_t ending_in;        /* see reap_tree.h, Fork */
};
static_assert(offsetof(struct reap, remote) == 3 * 64, "other threads write to a line of their own");
static_assert(sizeof(struct reap) == 4 * 64, "what one call in a thousand needs is in struct reap_records");
static_assert(REAP_KEEP_MAX + REAP_MAX_SIZE <= UINT32_MAX, "spares are counted in 32 bits");
static_assert(REAP_NAME_MAX + sizeof(struct reap_name) <= UINT16_MAX, "names are measured in 16 bits");

/* The source from which a reap made by reapCreateWith takes its chunks: a buffer, which is the first chunk
 * and, without take, the only one; functions of the user; or neither: the backend, but with other sizes. */
struct chunk_source {
    size_t max_chunk; /* bytes; chunks double up to this */
    void *(*take)(size_t size, void *arg);
    void (*give)(void *chunk, size_t size, void *arg);
    void *arg;
    void *buffer; /* of the user, for the first chunk; or NULL */
};

enum {
    REAP_SHORT_BYTES = 40,
    REAP_SHORT_NAME = REAP_SHORT_BYTES - offsetof(struct reap_name, text) /* bytes of text */
};

/* What modules keep for a reap, behind it: so a call that cannot fail needs no memory. */
struct reap_records {
    struct reap_share share;           /* quota.h */
    char short_name[REAP_SHORT_BYTES]; /* see reap_short_name */

    /* from here on not in a small first chunk */
    struct reap_tables tables;
    struct chunk_source source; /* undefined without REAP_SOURCED */
    struct reap_part *part;     /* of a shared reap or a hidden child: see reap_shared.h */
};

#endif
