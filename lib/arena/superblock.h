/* SPDX-License-Identifier: Apache-2.0 */
/* superblock.h: one superblock, no policy.
 *
 * A superblock is 64 KiB of blocks of one size class. Its descriptor, one cache line, lives in a
 * table apart (arena.h), where no overflow of a block reaches it.
 *
 *     number 8          72                                  carve
 *     | block | block | free: link,cookie | block | ... | not yet carved |
 *     ^ origin + 8
 *
 * Vocabulary
 *   number   where a block is: its offset in bytes, plus 8, so that 0 is none and block n is at
 *            origin + n
 *   word     all that malloc and free change, so that one store commits either:
 *            first free block : 16 | free blocks : 16 | next block to carve : 32
 *   link     the first 8 bytes of a free block: (next free, as in the word) ^ cookie. The cookie's
 *            48 bits are how free sees a block that is free already, and malloc one that was
 *            written to; a link cannot leave its superblock.
 *   pending  blocks freed by others than the owner: first : 16 | count : 16 | last : 16, pushed
 *            with compare-and-swap, taken all at once; and, in the last 16 bits, how many free blocks
 *            wait on no list (false_sharing.h).
 *   owner    the heap id whose threads run the fast path on this superblock, or OWNER_NONE
 *   heap     on whose bins it is; stable under that heap's lock
 *   unowned    owner is OWNER_NONE and no sequence that saw another owner is under way. Only then may the
 *            word be edited by more than one conditional store.
 *
 * Invariants (superblock_is_valid): free blocks in the word = length of the list from first
 *   + capacity - carved; carved, listed and pending blocks lie on multiples of the block size;
 *   live blocks = capacity - free - pending - waiting >= 0.
 */
#ifndef SUPERBLOCK_H
#define SUPERBLOCK_H

#include "arena/sizeclass.h"
#include "base/base.h"
#include "base/list.h"

enum superblock_kind {
    SLOT_FREE,       /* nothing here, or a further slot of a span */
    SLOT_BLOCKS,     /* blocks for programs */
    SLOT_CHUNKS,     /* blocks that are chunks of reaps */
    SLOT_SPAN,       /* the first slot of a large object */
    SLOT_SPAN_CHUNK, /* the first slot of a large chunk of a reap */
};

enum {
    BLOCK_BIAS = 8,                /* what block numbers are more than offsets */
    HEAP_NONE = UINT16_MAX - 65,   /* role.heap in the arenas, and on the way; ids of CPUs' heaps are below */
    HEAP_GLOBAL = HEAP_NONE + 1,   /* ... while it is on the global heap's bins */
    HEAP_CACHES = HEAP_GLOBAL + 1, /* ... on the first cache's; the others follow (global_heap.h) */
    OWNER_NONE = UINT16_MAX,       /* role.owner of a unowned superblock */
    SHARING_NOTES_GLOBAL =
        UINT16_MAX, /* role.sharing_notes on the global heap, where there are no notes (global_heap.h) */
};

/* Fullness in eighths that are free: group g holds g/8 <= free < (g+1)/8, and the last is empty. */
enum { GROUPS = 9, GROUP_EMPTY = GROUPS - 1 };

/* Who may touch it, and how many frees until somebody looks. One word, so that it changes at once. */
union superblock_role {
    struct {
        uint16_t owner;      /* heap id, or OWNER_NONE */
        uint16_t heap;       /* heap id, or HEAP_NONE and above */
        uint16_t regroup_at; /* free blocks at which the owner's free takes the slow path */
        uint16_t sharing_notes;   /* 0, or came here partly used and has no owner: number of its notes
                                (false_sharing.h) */
    };
    uint64_t bits;
};

struct superblock {
    /* the owner's */
    uint64_t word;
    char *origin; /* BLOCK_BIAS before the first block */
    /* written by others' frees */
    _Atomic uint64_t pending;
    /* under the heap's lock */
    struct list_node link;
    struct superblock *queued_next; /* on a heap's list of superblocks with much pending */
    union superblock_role role;
    /* constant while the superblock serves one class */
    uint32_t inverse; /* sizeclass.inverse; 0, which no pointer passes, where free may not find its blocks */
    uint8_t class;
    uint8_t kind; /* enum superblock_kind */
    /* under the heap's lock; `queued` is atomic */
    uint8_t group;
    _Atomic uint8_t queued;
};

_Static_assert(sizeof(struct superblock) == 64, "a descriptor is one cache line");

extern HIDDEN uint64_t superblock_cookie; /* 48 bits, shifted left by 16; some 44 of them random */

void superblock_init(void);

/* --- the word -------------------------------------------------------------------------------- */

static inline uint64_t word_read(const struct superblock *sb)
{
    return __atomic_load_n(&sb->word, __ATOMIC_ACQUIRE);
}

static inline unsigned word_first(uint64_t word) { return word & 0xffff; }

static inline unsigned word_free(uint64_t word) { return word >> 16 & 0xffff; }

static inline unsigned word_carve(uint64_t word) { return (unsigned)(word >> 32); }

static inline const struct sizeclass *superblock_class(const struct superblock *sb)
{
    return &sizeclasses[sb->class];
}

static inline uint64_t block_number(const struct superblock *sb, const void *block)
{
    return (uint64_t)((const char *)block - sb->origin);
}

/* Is there a block with this number, carved or not? */
static inline bool superblock_has_number(const struct superblock *sb, uint64_t number)
{
    const struct sizeclass *class = superblock_class(sb);
    return number != 0 && number <= class->carve_limit &&
           (uint32_t)(number - BLOCK_BIAS) * class->inverse < class->inverse;
}

static inline char *block_at(const struct superblock *sb, uint64_t number)
{
    ASSERT(number - BLOCK_BIAS < SUPERBLOCK);
    return sb->origin + number;
}

static inline void block_set_link(void *block, uint64_t next_number)
{
    __atomic_store_n((uint64_t *)block, next_number ^ superblock_cookie, __ATOMIC_RELAXED);
}

static inline uint64_t block_link(const void *block)
{
    return __atomic_load_n((const uint64_t *)block, __ATOMIC_RELAXED) ^ superblock_cookie;
}

/* Does it look free? Once in 2^48 a live block does. */
static inline bool block_looks_free(const void *block) { return block_link(block) >> 16 == 0; }

/* The same by the last two bytes only, for the fast path of free: a load of all eight would wait for
 * a shorter store that the program did just before. What text, pointers and most numbers have
 * there is never the cookie's (superblock_init). */
static ALWAYS_INLINE bool block_may_be_free(const void *block)
{
    return ((const uint16_t *)block)[3] == (uint16_t)(superblock_cookie >> 48);
}

/* Is pointer where a block for programs starts? False for every pointer where there are none, and of chunks:
 * who passes one to free passes a reap's memory, and is to be told. */
static inline bool superblock_starts_at(const struct superblock *sb, const void *pointer)
{
    uint64_t number = block_number(sb, pointer);
    return number < SUPERBLOCK && (uint32_t)(number - BLOCK_BIAS) * sb->inverse < sb->inverse;
}

/* What the one who set it had done before is seen. */
static inline union superblock_role superblock_role(const struct superblock *sb)
{
    return (union superblock_role){.bits = __atomic_load_n(&sb->role.bits, __ATOMIC_ACQUIRE)};
}

static inline void superblock_set_role(struct superblock *sb, union superblock_role role)
{
    ASSERT(role.owner == OWNER_NONE || (role.owner == role.heap && role.sharing_notes == 0));
    __atomic_store_n(&sb->role.bits, role.bits, __ATOMIC_RELEASE);
}

/* --- life ------------------------------------------------------------------------------------ */

/* Makes a unowned descriptor serve a class: all blocks free, none carved. origin and kind are the arena's. */
void superblock_format(struct superblock *sb, unsigned class);

/* The same for one that is empty and unowned, and served another class. */
void superblock_serve(struct superblock *sb, unsigned class);

/* Its group by what is free in `word`. */
unsigned superblock_group_of(const struct superblock *sb, uint64_t word);

/* The number of free blocks that takes a superblock of the group to the next one. */
unsigned superblock_regroup_at(const struct superblock *sb, unsigned group);

/* Takes a block from a unowned superblock, or NULL. */
void *superblock_pop(struct superblock *sb);

/* Ends the program: a free block's link is not what free left there. */
void superblock_written(void *block) __attribute__((noreturn, cold));

/* Gives one back to a unowned superblock; the free blocks there are now. */
unsigned superblock_push(struct superblock *sb, void *block);

/* Frees a block under the lock, where there is no rseq; to the pending list if that is to be looked at by
 * lines. True when it is time for that, or the superblock has come to its regroup_at. */
bool superblock_free_unowned(struct superblock *sb, void *block);

/* Blocks that are linked from first to last, by their numbers; count 0: nothing. */
struct chain {
    unsigned first, last, count;
};

/* Puts a chain in front of the pending list, from any thread; the pending blocks there are now. */
unsigned superblock_put_pending(struct superblock *sb, const struct chain *chain);

/* Is it time to look at what is pending, now that `count` more make it `after` blocks? Each time that another
 * f of the superblock is, at most a quarter (a sixteenth by lines), and when nothing is live any more. */
bool superblock_pending_is_due(const struct superblock *sb, unsigned after, unsigned count);

/* Is anything pending? Not a relaxed look: it would be done before superblock_unqueue's store. */
bool superblock_has_pending(const struct superblock *sb);

/* Takes all pending blocks. */
struct chain superblock_take_pending(struct superblock *sb);

unsigned superblock_waiting(const struct superblock *sb);

/* So many more free blocks wait on no list. */
void superblock_add_waiting(struct superblock *sb, int n);

/* The chain of one block. */
static inline struct chain chain_of_block(const struct superblock *sb, const void *block)
{
    ASSERT(superblock_has_number(sb, block_number(sb, block)));
    unsigned number = (unsigned)block_number(sb, block);
    return (struct chain){number, number, 1};
}

/* The word with the chain in front of its list; writes the chain's last link, nothing else. */
uint64_t superblock_spliced(struct superblock *sb, uint64_t word, const struct chain *chain);

/* Moves what is pending to the free list of a unowned superblock; the number of blocks. */
unsigned superblock_absorb(struct superblock *sb);

/* Is a block on the free or the pending list of a unowned superblock? */
bool superblock_has_free(const struct superblock *sb, const void *block);

/* Takes a list of queued ones whole; superblock_unqueue leads from one to the next. */
struct superblock *superblock_take_queued(_Atomic(struct superblock *) *list);

/* Off a list of queued ones: the next on it. From here on it may be queued anew. A full barrier: whoever
 * found it queued before, and left it at that, has pushed what the caller will now find pending. */
static inline struct superblock *superblock_unqueue(struct superblock *sb)
{
    ASSERT(sb->queued != 0);
    struct superblock *next = sb->queued_next;
    atomic_exchange(&sb->queued, 0);
    return next;
}

/* Live blocks, as far as can be told while others run. */
unsigned superblock_live(const struct superblock *sb);

/* For a unowned superblock: do the invariants above hold? */
bool superblock_is_valid(const struct superblock *sb);

/* The same for assertions: what a program has written into a free block ends it with the line that malloc has
 * for that. Debug builds only. */
bool superblock_is_sound(const struct superblock *sb);

#endif
