/* SPDX-License-Identifier: Apache-2.0 */
/* superblock.h: one superblock, no policy.
 *
 * A superblock is blocks of one size class: in one slot of 64 KiB, or, if it is wide, in several. Its
 * descriptor, two cache lines, lies apart from it (arena.h), where no overflow of a block reaches it.
 *
 *     number 8          72                                  carve
 *     | block | block | free: link,cookie | block | ... | not yet carved |
 *     ^ origin + 8
 *
 * A wide superblock has blocks above 4 KiB, whose first bytes no cache has. So each has a stub beside the
 * descriptors, which is on lists in its place. The first stub's block is the superblock's start.
 *
 *     | stub | stub | free stub: link,cookie | ...     ^ origin + 8
 *        |      |             |
 *     | block | block | block | ...                    stub->block
 *
 * Superblocks and heaps take a stub for the block; only the calls of malloc (hoard/) know the difference.
 *
 * Vocabulary
 *   number   the place of a block: its offset in bytes, plus 8. So 0 is no block
 *   word     the part that malloc and free change; one store commits either:
 *            first free block : 16 | free blocks : 16 | next block to carve : 32
 *   link     the first 8 bytes of a free block: (next free, as in the word) ^ cookie. By the cookie's
 *            48 bits free recognizes a block that is free already, and malloc one that was written to
 *   pending  blocks freed by threads other than the owner's: first : 16 | count : 16 | last : 16,
 *            pushed with compare-and-swap, taken all at once. The last 16 bits of the field count
 *            the free blocks that wait on no list (false_sharing.h).
 *   owner    the heap id whose threads run the fast path on this superblock, or OWNER_NONE
 *   heap     the heap that has it in its bins; constant while that heap's lock is held
 *   unowned  owner is OWNER_NONE, and no section that saw another owner still runs. Only then may a
 *            thread change the word by more than one conditional store.
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
    SLOT_FREE,       /* free, or a further slot of a superblock or span */
    SLOT_BLOCKS,     /* blocks for programs */
    SLOT_CHUNKS,     /* blocks that are chunks of reaps */
    SLOT_SPAN,       /* the first slot of a large object */
    SLOT_SPAN_CHUNK, /* the first slot of a large chunk of a reap */
    SLOT_WIDE,       /* the first slot of a wide superblock, with blocks for programs */
};

enum {
    BLOCK_BIAS = 8,                /* block number minus offset */
    HEAP_NONE = UINT16_MAX - 65,   /* role.heap in the arenas and between heaps; CPUs' ids are below */
    HEAP_GLOBAL = HEAP_NONE + 1,   /* ... in the global heap's bins */
    HEAP_CACHES = HEAP_GLOBAL + 1, /* ... in the first cache's bins; the others follow (global_heap.h) */
    OWNER_NONE = UINT16_MAX,       /* role.owner of an unowned superblock */
    SUPERBLOCK_BLOCKS = SUPERBLOCK / BLOCK_UNIT, /* at most */
};

/* Fullness, by free eighths: group g has g/8 <= free < (g+1)/8; the last group is for empty superblocks. */
enum { GROUPS = 9, GROUP_EMPTY = GROUPS - 1 };

/* With whom the free blocks of a superblock share cache lines (false_sharing.h). */
enum sharing {
    SHARING_NONE,  /* with nobody: its heap owns all of it, or each line has one block only */
    SHARING_LEFT,  /* on the global heap: with the heap `left_by`, which owned all of it when it gave it up */
    SHARING_HELD,  /* on the global heap: only wholly free lines are given out */
    SHARING_NOTES, /* on a heap, which has notes and no owner, since it came partly used */
};

/* Owner and heap, and the free blocks at which a free takes the slow path: one word that changes at once. */
union superblock_role {
    struct {
        uint16_t owner;       /* heap id, or OWNER_NONE */
        uint16_t heap;        /* heap id, or HEAP_NONE and above */
        uint16_t regroup_at;  /* free blocks at which the owner's free takes the slow path */
        uint16_t sharing : 2; /* enum sharing; NONE if there is an owner */
        uint16_t left_by : 14;
    };
    uint64_t bits;
};

/* Two lines of the cache. Each malloc of the owner writes the first, so a free by another thread, which needs
 * only what free looks up, would wait for it: that is in the second, which is seldom written. */
struct superblock {
    /* changed by the owner */
    uint64_t word;
    char *origin; /* BLOCK_BIAS before the first block, or stub */
    /* changed by remote frees */
    _Atomic uint64_t pending;
    /* under the heap's lock; `queued` is atomic */
    struct list_node link;
    struct superblock *queued_next; /* on a heap's list of queued superblocks */
    uint8_t group;
    _Atomic uint8_t queued;
    /* what free looks up */
    _Alignas(64) union superblock_role role;
    /* constant while the superblock serves one class */
    uint32_t inverse; /* sizeclass.inverse; 0, which no pointer passes, where free must find no blocks */
    uint8_t class;
    uint8_t kind;      /* enum superblock_kind */
    char *free_origin; /* is origin */
};

_Static_assert(sizeof(struct superblock) == 128, "a descriptor is two cache lines");

/* Of a wide block. */
struct stub {
    uint64_t link; /* 0: the block is live */
    char *block;
};

_Static_assert(sizeof(struct stub) == BLOCK_UNIT, "a wide class's step");

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

/* Returns the slots of a superblock: its weight in the accounts of heaps. */
static inline unsigned superblock_slots(const struct superblock *sb) { return superblock_class(sb)->slots; }

/* Returns the place of so many slots among the sizes of superblocks. */
static inline unsigned superblock_size_of(unsigned slots) { return (unsigned)__builtin_ctz(slots); }

static inline uint64_t block_number(const struct superblock *sb, const void *block)
{
    return (uint64_t)((const char *)block - sb->free_origin);
}

/* Returns true if a block has this number, carved or not. */
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

/* Returns true if the block looks free. One live block in 2^48 does. */
static inline bool block_looks_free(const void *block) { return block_link(block) >> 16 == 0; }

/* Returns true if the block may be free, by its last two bytes. For the fast path of free: a load of all
 * eight would wait for a shorter store that the program made just before. Text, pointers and most numbers
 * never have the cookie's bytes there (superblock_init). */
static ALWAYS_INLINE bool block_may_be_free(const void *block)
{
    return ((const uint16_t *)block)[3] == (uint16_t)(superblock_cookie >> 48);
}

/* The same of any superblock's block; of a wide one it is the stub. A stub that a heap keeps has only the
 * cookie's last bytes (heap_table.h). */
static inline bool superblock_block_looks_free(const struct superblock *sb, const void *block)
{
    return sb->kind == SLOT_WIDE ? block_may_be_free(block) : block_looks_free(block);
}

/* Returns true if a block for programs starts at pointer. False for wide blocks, and for chunks: a program
 * that passes one to free passes a reap's memory, and gets a misuse line. */
static inline bool superblock_starts_at(const struct superblock *sb, const void *pointer)
{
    uint64_t number = block_number(sb, pointer);
    return number < SUPERBLOCK && (uint32_t)(number - BLOCK_BIAS) * sb->inverse < sb->inverse;
}

/* Reads the role. The caller sees all that the thread that set it had stored before. */
static inline union superblock_role superblock_role(const struct superblock *sb)
{
    return (union superblock_role){.bits = __atomic_load_n(&sb->role.bits, __ATOMIC_ACQUIRE)};
}

static inline void superblock_set_role(struct superblock *sb, union superblock_role role)
{
    ASSERT(role.owner == OWNER_NONE || role.owner == role.heap);
    ASSERT(role.owner == OWNER_NONE || role.sharing == SHARING_NONE);
    __atomic_store_n(&sb->role.bits, role.bits, __ATOMIC_RELEASE);
}

/* --- life ------------------------------------------------------------------------------------ */

static inline enum superblock_kind superblock_kind_of(unsigned class)
{
    return class >= CLASS_CHUNK ? SLOT_CHUNKS : sizeclass_is_wide(class) ? SLOT_WIDE : SLOT_BLOCKS;
}

static inline bool superblock_is_formatted(const struct superblock *slot)
{
    return slot->kind == SLOT_BLOCKS || slot->kind == SLOT_CHUNKS || slot->kind == SLOT_WIDE;
}

/* Makes an unowned descriptor serve a class, with no block carved. The arena sets origin and kind. */
void superblock_format(struct superblock *sb, unsigned class);

/* True: all memory of a superblock that has not been handed out since its format is zero, but for the links
 * of free blocks. superblock_clear makes that so for its first `bytes`; superblock_serve calls it. */
extern HIDDEN bool superblock_clears;
void superblock_clear(struct superblock *sb, size_t bytes);

/* Makes an empty, unowned superblock of another class serve this class. */
void superblock_serve(struct superblock *sb, unsigned class);

unsigned superblock_group_of(const struct superblock *sb, uint64_t word);

/* Returns the number of free blocks at which a superblock of the group comes to the next group. */
unsigned superblock_regroup_at(const struct superblock *sb, unsigned group);

/* Takes a block from an unowned superblock, or returns NULL. */
void *superblock_pop(struct superblock *sb);

/* Ends the program: the link of a free block is not the one that free wrote. */
void superblock_written(void *block) __attribute__((noreturn, cold));

/* Gives a block back to an unowned superblock. Returns the number of its free blocks. */
unsigned superblock_push(struct superblock *sb, void *block);

/* Frees a block under the heap's lock, where there is no rseq. A superblock with notes gets it on its pending
 * list. Returns true when the pending blocks are due, or the superblock has reached its regroup_at. */
bool superblock_free_unowned(struct superblock *sb, void *block);

/* Blocks linked from first to last, by their numbers. count 0: no blocks. */
struct chain {
    unsigned first, last, count;
};

/* Puts a chain in front of the pending list. Returns the number of pending blocks. Threads: any. */
unsigned superblock_put_pending(struct superblock *sb, const struct chain *chain);

/* Returns true if the heap must now collect the pending blocks, of which `count` more make `after`: each time
 * another fraction f of the superblock has become pending (at most 1/4; 1/16 with notes), and when the last
 * live block was freed. */
bool superblock_pending_is_due(const struct superblock *sb, unsigned after, unsigned count);

/* Returns true if such a fraction is pending, whether or not the heap has looked since. */
bool superblock_pending_is_much(const struct superblock *sb);

/* Returns true if a block is pending. A relaxed load could move before superblock_unqueue's store. */
bool superblock_has_pending(const struct superblock *sb);

/* Returns true if the pending blocks of a superblock are worth half of what malloc would carve at once:
 * then they serve first. It reads only their number: the superblock may be on its way elsewhere. */
bool superblock_pending_is_worth(const struct superblock *sb, unsigned class);

struct chain superblock_take_pending(struct superblock *sb);

unsigned superblock_waiting(const struct superblock *sb);

/* Adds n to the number of free blocks that wait on no list. */
void superblock_add_waiting(struct superblock *sb, int n);

static inline struct chain chain_of_block(const struct superblock *sb, const void *block)
{
    ASSERT(superblock_has_number(sb, block_number(sb, block)));
    unsigned number = (unsigned)block_number(sb, block);
    return (struct chain){number, number, 1};
}

/* Returns the word with the chain in front of its list. Writes the chain's last link, and nothing else. */
uint64_t superblock_spliced(struct superblock *sb, uint64_t word, const struct chain *chain);

/* Moves the pending blocks of an unowned superblock to its free list. Returns their number. */
unsigned superblock_absorb(struct superblock *sb);

/* Returns true if a block is on the free or the pending list of an unowned superblock. */
bool superblock_has_free(const struct superblock *sb, const void *block);

/* Takes a whole list of queued superblocks; superblock_unqueue leads from one to the next. */
struct superblock *superblock_take_queued(_Atomic(struct superblock *) *list);

/* Takes a superblock off a list of queued ones, and returns the next. From then on threads may queue it
 * again. The exchange is a full barrier: a thread that found it queued before, and so did not queue it, has
 * pushed its blocks, and the caller finds them pending. */
static inline struct superblock *superblock_unqueue(struct superblock *sb)
{
    ASSERT(sb->queued != 0);
    struct superblock *next = sb->queued_next;
    atomic_exchange(&sb->queued, 0);
    return next;
}

/* Returns the number of live blocks, as far as it can be known while other threads run. */
unsigned superblock_live(const struct superblock *sb);

/* Returns true if the invariants above hold for an unowned superblock. Where a program has written into a
 * free block, ends the program with malloc's line for that. */
bool superblock_is_valid(const struct superblock *sb);

#endif
