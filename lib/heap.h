/* heap.h: who owns which superblock.   (floor 4)
 *
 * A heap per id (cpu.h: a CPU, or a concurrency id) and the global heap, as in Hoard (ASPLOS 2000,
 * section 3). The emptiness invariant lives here and nowhere else.
 *
 *     row of heap i:  | active superblock of class 1 | of class 2 | ...       read by the fast path
 *     heap i:         bins by class and fullness, empty superblocks, posted ones, a, u    under its lock
 *
 *     malloc:  active superblock  ->  fullest in the bin  ->  empty  ->  global heap  ->  arena
 *     free:    owner's: into the superblock     others': onto its pending list
 *
 * States of a superblock of heap i, and how it gets from one to the next
 *   active    in the row; owner is i; mallocs and frees of threads with id i change its word
 *   owned     in a bin; owner is i; frees of threads with id i change its word
 *   empty     in `empty`, quiet
 *   leaving   quiet, on no list, then the global heap's or the arena's
 * A lock does not keep out the fast path. Into the row and out of it, and out of ownership, leads one store
 * in a restartable section that checks that this thread still has id i (cpu_store): then no other
 * thread is inside a section on i, and what is not reachable any more is quiet. For the heap of
 * another id the store is followed by cpu_fence.
 *
 * The invariant, with f in eighths and fullness recorded in eighths (superblock.h):
 *     recorded free eighths <= 8 K   or   <= f * superblocks
 * The free that takes a superblock to its next group restores it, by giving superblocks that are at
 * least f empty to the global heap. What is free but not recorded is bounded; lib/README.md has the sum.
 *
 * On the locked path no superblock has an owner, rows are used under the heap's lock, and threads
 * are dealt onto 2P heaps in turn.
 */
#ifndef HEAP_H
#define HEAP_H

#include "base.h"
#include "bin.h"
#include "cpu.h"
#include "lock.h"

struct heap_row {
    struct superblock *active[64]; /* by class */
};

extern HIDDEN struct heap_row heap_rows[IDS_MAX];

/* What the slow paths count. The counts of one heap are written by its threads without care for
 * losing a few. */
struct heap_counts {
    uint64_t slow_mallocs, slow_frees, remote_frees, transfers;
};

/* A block of the class, by the slow path; NULL and ENOMEM. Works from any state, started or not. */
void *heap_malloc_slow(unsigned class);

/* Frees a block that this thread's heap does not own, or on the locked path any block. */
void heap_free_slow(struct superblock *sb, void *block);

/* Looks at a superblock whose free blocks have come to its regroup_at. */
void heap_regroup(struct superblock *sb);

/* Is the block free, seen from a quiet state? For the closer look at one that seems to be. */
bool heap_block_is_free(struct superblock *sb, void *block);

/* Every heap gives all its superblocks to the global heap, which gives the empty ones to the arenas. */
void heap_give_all(void);

/* Heaps made, superblocks on them, and the sum of counts. */
struct heap_totals {
    size_t heaps, superblocks;
    struct heap_counts counts;
};
struct heap_totals heap_totals(void);

/* Do the accounts of every heap add up? For tests, while nobody else allocates. */
bool heap_is_valid(void);

/* fork: before it all locks of this floor are taken, in rank order. In the child the heaps of threads that
 * are no more are marked, and their memory is taken when memory is wanted. */
void heap_fork_prepare(void);
void heap_fork_parent(void);
void heap_fork_child(void);

/* --- the fast paths -------------------------------------------------------------------------- */

#if CPU_HAS_RSEQ

/* What both ways to take a block begin with: sb := the active superblock of the class, word, block := origin. */
#define HEAP_SECTION_ACTIVE                                                                                       \
    CPU_SECTION_BEGIN                                                                                             \
    "shlq $9, %[t]\n\t" /* sizeof(struct heap_row) */                                                             \
    "movq (%[row], %[t]), %[sb]\n\t"                                                                              \
    "testq %[sb], %[sb]\n\tjz %l[none]\n\t"                                                                      \
    "movq (%[sb]), %[word]\n\t"                                                                                   \
    "movq 8(%[sb]), %[block]\n\t"

/* NULL, which the compiler must load: gcc before 12.4 and 13.3 loses a constant that is due on the way
 * out of an `asm goto` by a label, where the fall-through gives an output to the same variable
 * (PR 113921 and its kin). heap_malloc_slow returned the section's half-made block here. */
static ALWAYS_INLINE void *heap_none(void)
{
    void *none = NULL;
    __asm__ volatile("" : "+r"(none));
    return none;
}

/* Takes the first free block of this heap's active superblock of the class, or NULL. */
static ALWAYS_INLINE void *heap_pop(unsigned class)
{
    uint64_t t, word;
    struct superblock *sb;
    char *block;
again:
    __asm__ volatile goto(HEAP_SECTION_ACTIVE
                          "movzwl %w[word], %k[t]\n\t"
                          "testl %k[t], %k[t]\n\tjz %l[none]\n\t"
                          "addq %[t], %[block]\n\t"
                          "movq (%[block]), %[t]\n\txorq %[cookie], %[t]\n\t"
                          "subq $0x10000, %[word]\n\tmovw %w[t], %w[word]\n\t"
                          "shrq $16, %[t]\n\tjnz %l[written]\n\t"
                          "movq %[word], (%[sb])\n\t" CPU_SECTION_END
                          : [t] "=&r"(t), [word] "=&r"(word), [sb] "=&r"(sb), [block] "=&r"(block)
                          : CPU_SECTION_INPUTS, [row] "r"(&heap_rows[0].active[class]), [cookie] "m"(superblock_cookie)
                          : "memory", "cc"
                          : again, none, written);
    *(uint64_t *)block = 0; /* what looks free must be free; and not before the commit */
    return block;
none:
    return heap_none();
written:
    superblock_written(block);
}

/* Carves a block off this heap's active superblock of the class, if nothing in it was freed; or NULL. */
static inline void *heap_carve(unsigned class)
{
    const struct sizeclass *k = &sizeclasses[class];
    uint64_t t, word;
    struct superblock *sb;
    char *block;
again:
    __asm__ volatile goto(HEAP_SECTION_ACTIVE
                          "testw %w[word], %w[word]\n\tjnz %l[none]\n\t"
                          "movq %[word], %[t]\n\tshrq $32, %[t]\n\t"
                          "cmpl %[limit], %k[t]\n\tja %l[none]\n\t"
                          "addq %[step], %[word]\n\t"
                          "addq %[t], %[block]\n\t"
                          "movq %[word], (%[sb])\n\t" CPU_SECTION_END
                          : [t] "=&r"(t), [word] "=&r"(word), [sb] "=&r"(sb), [block] "=&r"(block)
                          : CPU_SECTION_INPUTS, [row] "r"(&heap_rows[0].active[class]), [limit] "m"(k->carve_limit),
                            [step] "m"(k->carve_step)
                          : "memory", "cc"
                          : again, none);
    *(uint64_t *)block = 0; /* the slot may hold an earlier life's links */
    return block;
none:
    return heap_none();
}

/* Frees what superblock_starts_at says is the start of a block: in one section if this heap owns the superblock.
 * Where there is no rseq nobody owns one, but the section may not be entered to find that out. */
static ALWAYS_INLINE void heap_free(struct superblock *sb, void *block)
{
    uint64_t number = block_number(sb, block), t, word;
again:
    __asm__ volatile goto(CPU_SECTION_BEGIN
                          "cmpw %[owner], %w[t]\n\tjne %l[remote]\n\t"
                          "movq (%[sb]), %[word]\n\t"
                          "movzwl %w[word], %k[t]\n\txorq %[cookie], %[t]\n\tmovq %[t], (%[block])\n\t"
                          "addq $0x10000, %[word]\n\tmovw %w[number], %w[word]\n\t"
                          "movq %[word], (%[sb])\n\t" CPU_SECTION_END
                          : [t] "=&r"(t), [word] "=&r"(word)
                          : CPU_SECTION_INPUTS, [sb] "r"(sb), [owner] "m"(sb->role.owner), [block] "r"(block),
                            [number] "r"(number), [cookie] "m"(superblock_cookie)
                          : "memory", "cc"
                          : again, remote);
    if (UNLIKELY((uint16_t)(word >> 16) >= sb->role.regroup_at)) heap_regroup(sb);
    return;
remote:
    heap_free_slow(sb, block);
}

#else

static inline void *heap_pop(unsigned class)
{
    (void)class;
    return NULL;
}

static inline void *heap_carve(unsigned class)
{
    (void)class;
    return NULL;
}

static inline void heap_free(struct superblock *sb, void *block) { heap_free_slow(sb, block); }

#endif

/* A block of the class, from any state of the process. */
static inline void *heap_malloc(unsigned class)
{
    void *block = cpu.ids != 0 ? heap_pop(class) : NULL;
    return LIKELY(block != NULL) ? block : heap_malloc_slow(class);
}

#endif
