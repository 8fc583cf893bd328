/* SPDX-License-Identifier: Apache-2.0 */
/* heap_fast_x86_64.h: the sections of heap_fast.h in the instructions of x86-64.
 *
 * heap_fast.h includes this at its end; no other file does.
 */
#ifndef HEAP_FAST_X86_64_H
#define HEAP_FAST_X86_64_H

/* clang-format off */

/* The jump to the label `written`, where the block is reported. Clang before 17 has no outputs of an asm goto
 * at labels: the block's address goes through memory, and the process ends before others write it. */
#if defined __clang__ && __clang_major__ < 17
static char *volatile heap_found __attribute__((unused));
#define HEAP_IF_WRITTEN                                                                                      \
    "jnz 5f\n\t.pushsection .text.unlikely, \"ax\", @progbits\n"                                             \
    "5:\tmovq %[block], %[found]\n\tjmp %l[written]\n\t.popsection\n\t"
#define HEAP_FOUND_INPUT , [found] "m"(heap_found)
#define HEAP_FOUND(block) heap_found
#else
#define HEAP_IF_WRITTEN "jnz %l[written]\n\t"
#define HEAP_FOUND_INPUT
#define HEAP_FOUND(block) (block)
#endif

/* Takes the first free block of this heap's active superblock of the class, or NULL. The chain of dependences
 * from one pop to the next is word, first, link, word. All other work stays off this chain: free stores the
 * link's low 16 bits plain, and the cookie is compared last. (A load of `first` alone is slower: the CPU
 * forwards a store at no cost only to a load of the same width.)
 *
 * The next free block was often freed long ago, perhaps on another CPU. Its line is asked for now, so that it
 * is here for the next pop and for the program's writes. */
static ALWAYS_INLINE void *heap_pop(unsigned class)
{
    uint64_t t, word, link, row = class, rows;
    char *origin, *block;
    __asm__ volatile goto(
        RSEQ_SECTION_BEGIN_OF_CLASS("%[rows]")
        "shlq $9, %[t]\n\t" /* sizeof(struct heap_row) */
        "movq (%[row], %[t]), %[t]\n\t"
        "movq " RSEQ_SIGNATURE "(%[rows], %[t]), %[word]\n\t"
        "movq 8+" RSEQ_SIGNATURE "(%[rows], %[t]), %[origin]\n\t"
        "movzwl %w[word], %k[block]\n\t"
        "testl %k[block], %k[block]\n\tjz %l[none]\n\t"
        "movq (%[origin], %[block]), %[link]\n\t"
        "addq %[origin], %[block]\n\t"
        "subq $0x10000, %[word]\n\tmovw %w[link], %w[word]\n\t"
        "xorq %[cookie], %[link]\n\t"
        "prefetchw (%[origin], %[link])\n\t"
        "shrq $16, %[link]\n\t" HEAP_IF_WRITTEN
        "movq %[word], " RSEQ_SIGNATURE "(%[rows], %[t])\n\t"
        RSEQ_SECTION_END
        : [t] "=&r"(t), [word] "=&r"(word), [origin] "=&r"(origin), [block] "=&r"(block), [link] "=&r"(link),
          [row] "+&r"(row), [rows] "=&r"(rows)
        : RSEQ_SECTION_INPUTS_OF_CLASS(heap_rows), [cookie] "m"(superblock_cookie) HEAP_FOUND_INPUT
        : "memory", "cc"
        : none, written);
    *(uint64_t *)block = 0; /* a block that looks free must be free; and not before the commit */
    return block;
none:
    return heap_none();
written:
    superblock_written(HEAP_FOUND(block));
}

/* Stores a word to this heap's active superblock of the class, if it is the entry's and has the expected. */
static inline enum rseq_result heap_store_word(unsigned class, uint64_t entry, uint64_t expected,
                                               uint64_t value)
{
    uint64_t t, row = class, rows;
    __asm__ volatile goto(
        RSEQ_SECTION_BEGIN_OF_CLASS("%[rows]")
        "shlq $9, %[t]\n\t" /* sizeof(struct heap_row) */
        "cmpq %[entry], (%[row], %[t])\n\tjne %l[changed]\n\t"
        "cmpq %[expected], " RSEQ_SIGNATURE "(%[rows], %[entry])\n\tjne %l[changed]\n\t"
        "movq %[value], " RSEQ_SIGNATURE "(%[rows], %[entry])\n\t"
        RSEQ_SECTION_END
        : [t] "=&r"(t), [row] "+&r"(row), [rows] "=&r"(rows)
        : RSEQ_SECTION_INPUTS_OF_CLASS(heap_rows), [entry] "r"(entry), [expected] "r"(expected),
          [value] "r"(value)
        : "memory", "cc"
        : changed);
    return RSEQ_DONE;
changed:
    return RSEQ_CHANGED;
}

/* Defines a function of heap_fast.h; `link` stands in the instructions, so it is a number. */
#define HEAP_BATCH_POP(name, link) \
    static inline void *name(unsigned class) \
    { \
        uint64_t t, word, next, row = class; \
        char *block; \
        __asm__ volatile goto( \
            RSEQ_SECTION_BEGIN_OF_CLASS("%[t]") \
            "shlq $9, %[t]\n\t" /* sizeof(struct heap_batches) */ \
            "movq (%[row], %[t]), %[word]\n\t" \
            "btq $48, %[word]\n\tjc %l[none]\n\t" /* closed */ \
            "movq %[word], %[block]\n\tshlq $16, %[block]\n\tshrq $16, %[block]\n\tjz %l[none]\n\t" \
            "movq " #link "(%[block]), %[next]\n\txorq %[cookie], %[next]\n\t" \
            "subq %[block], %[word]\n\tsubq %[one], %[word]\n\taddq %[next], %[word]\n\t" \
            "shrq $48, %[next]\n\t" HEAP_IF_WRITTEN \
            "movq %[word], (%[row], %[t])\n\t" \
            RSEQ_SECTION_END \
            : [t] "=&r"(t), [word] "=&r"(word), [next] "=&r"(next), [block] "=&r"(block), [row] "+&r"(row) \
            : RSEQ_SECTION_INPUTS_OF_CLASS(heap_batches), [one] "r"(HEAP_BATCH_ONE), \
              [cookie] "m"(superblock_cookie) HEAP_FOUND_INPUT \
            : "memory", "cc" \
            : none, written); \
        return block; \
    none: \
        return heap_none(); \
    written: \
        superblock_written(HEAP_FOUND(block)); \
    }

/* Puts a chain of blocks that this thread has onto the free list of a superblock, if this heap owns
 * it: from the block of number `first` to `last`, which are the same if count is 1. RSEQ_MOVED: nothing
 * is done. Without rseq no heap owns one, but then no thread may enter the section to find that out. */
static ALWAYS_INLINE enum rseq_result heap_give(struct superblock *sb, uint64_t first, void *last,
                                                uint64_t count)
{
    uint64_t t, word;
    __asm__ volatile goto(
        RSEQ_SECTION_BEGIN
        "cmpw %[owner], %w[t]\n\tjne %l[remote]\n\t"
        "movq (%[sb]), %[word]\n\t"
        "movzwl %w[word], %k[t]\n\txorq %[cookie], %[t]\n\tmovq %[t], (%[last])\n\t"
        "addq %[count], %[word]\n\tmovw %w[first], %w[word]\n\t"
        "movq %[word], (%[sb])\n\t"
        RSEQ_SECTION_END
        : [t] "=&r"(t), [word] "=&r"(word)
        : RSEQ_SECTION_INPUTS, [sb] "r"(sb), [owner] "m"(sb->role.owner), [last] "r"(last),
          [first] "r"(first), [count] "er"(count << 16), [cookie] "m"(superblock_cookie)
        : "memory", "cc"
        : remote);
    if (UNLIKELY((uint16_t)(word >> 16) >= sb->role.regroup_at)) heap_regroup(sb);
    return RSEQ_DONE;
remote:
    return RSEQ_MOVED;
}

/* Frees a block of the program's, which has this number, if this heap owns its superblock. RSEQ_MOVED: it
 * does not. RSEQ_CHANGED: the block may be free. */
static ALWAYS_INLINE enum rseq_result heap_give_checked(struct superblock *sb, uint64_t number, void *block)
{
    uint64_t t, word;
    __asm__ volatile goto(
        RSEQ_SECTION_BEGIN
        "cmpw %[owner], %w[t]\n\tjne %l[remote]\n\t"
        "movzwl 6(%[block]), %k[t]\n\tcmpw 6+%[cookie], %w[t]\n\tje %l[changed]\n\t"
        "movq (%[sb]), %[word]\n\t"
        "movzwl %w[word], %k[t]\n\txorq %[cookie], %[t]\n\tmovq %[t], (%[block])\n\t"
        "addq $0x10000, %[word]\n\tmovw %w[number], %w[word]\n\t"
        "movq %[word], (%[sb])\n\t"
        RSEQ_SECTION_END
        : [t] "=&r"(t), [word] "=&r"(word)
        : RSEQ_SECTION_INPUTS, [sb] "r"(sb), [owner] "m"(sb->role.owner), [block] "r"(block),
          [number] "r"(number), [cookie] "m"(superblock_cookie)
        : "memory", "cc"
        : remote, changed);
    if (UNLIKELY((uint16_t)(word >> 16) >= sb->role.regroup_at)) heap_regroup(sb);
    return RSEQ_DONE;
remote:
    return RSEQ_MOVED;
changed:
    return RSEQ_CHANGED;
}

/* clang-format on */

#endif
