/* SPDX-License-Identifier: Apache-2.0 */
/* heap_fast_aarch64.h: the sections of heap_fast.h in the instructions of aarch64.
 *
 * heap_fast.h includes this at its end; no other file does. rseq_aarch64.h tells why loads and stores are
 * plain.
 */
#ifndef HEAP_FAST_AARCH64_H
#define HEAP_FAST_AARCH64_H

/* clang-format off */

/* Takes the first free block of this heap's active superblock of the class, or NULL. The chain of dependences
 * from one pop to the next is word, first, link, word; the cookie is compared last. */
static ALWAYS_INLINE void *heap_pop(unsigned class)
{
    uint64_t t, word, link;
    struct superblock *sb;
    char *block;
    __asm__ volatile goto(
        RSEQ_SECTION_BEGIN
        "add %[t], %[row], %[t], lsl #9\n\t" /* sizeof(struct heap_row) */
        "ldr %[sb], [%[t]]\n\t"
        "cbz %[sb], %l[none]\n\t"
        "ldp %[word], %[block], [%[sb]]\n\t"
        "and %[t], %[word], #0xffff\n\t"
        "cbz %[t], %l[none]\n\t"
        "ldr %[link], [%[block], %[t]]\n\t"
        "add %[block], %[block], %[t]\n\t"
        "sub %[word], %[word], #0x10, lsl #12\n\tbfi %[word], %[link], #0, #16\n\t"
        "eor %[link], %[link], %[cookie]\n\tlsr %[link], %[link], #16\n\tcbnz %[link], %l[written]\n\t"
        "str %[word], [%[sb]]\n\t"
        RSEQ_SECTION_END
        : [t] "=&r"(t), [word] "=&r"(word), [sb] "=&r"(sb), [block] "=&r"(block), [link] "=&r"(link)
        : RSEQ_SECTION_INPUTS, [row] "r"(&heap_rows[0].active[class]), [cookie] "r"(superblock_cookie)
        : "memory"
        : none, written);
    *(uint64_t *)block = 0; /* a block that looks free must be free; and not before the commit */
    return block;
none:
    return heap_none();
written:
    superblock_written(block);
}

/* Stores a word to this heap's active superblock of the class, if it is the entry's and has the expected. */
static inline enum rseq_result heap_store_word(unsigned class, uint64_t entry, uint64_t expected,
                                               uint64_t value)
{
    uint64_t t;
    __asm__ volatile goto(
        RSEQ_SECTION_BEGIN
        "add %[t], %[row], %[t], lsl #9\n\t" /* sizeof(struct heap_row) */
        "ldr %[t], [%[t]]\n\tcmp %[t], %[sb]\n\tb.ne %l[changed]\n\t"
        "ldr %[t], [%[t]]\n\tcmp %[t], %[expected]\n\tb.ne %l[changed]\n\t"
        "str %[value], [%[sb]]\n\t"
        RSEQ_SECTION_END
        : [t] "=&r"(t)
        : RSEQ_SECTION_INPUTS, [row] "r"(&heap_rows[0].active[class]), [sb] "r"(heap_entry_superblock(entry)),
          [expected] "r"(expected), [value] "r"(value)
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
        uint64_t t, word, next; \
        char *block; \
        __asm__ volatile goto( \
            RSEQ_SECTION_BEGIN \
            "add %[t], %[batch], %[t], lsl #9\n\t" /* sizeof(struct heap_batches) */ \
            "ldr %[word], [%[t]]\n\t" \
            "tbnz %[word], #48, %l[none]\n\t" /* closed */ \
            "and %[block], %[word], #0xffffffffffff\n\tcbz %[block], %l[none]\n\t" \
            "ldr %[next], [%[block], #" #link "]\n\teor %[next], %[next], %[cookie]\n\t" \
            "sub %[word], %[word], %[block]\n\tsub %[word], %[word], %[one]\n\t" \
            "add %[word], %[word], %[next]\n\t" \
            "lsr %[next], %[next], #48\n\tcbnz %[next], %l[written]\n\t" \
            "str %[word], [%[t]]\n\t" \
            RSEQ_SECTION_END \
            : [t] "=&r"(t), [word] "=&r"(word), [next] "=&r"(next), [block] "=&r"(block) \
            : RSEQ_SECTION_INPUTS, [batch] "r"(&heap_batches[0].of[class]), [one] "r"(HEAP_BATCH_ONE), \
              [cookie] "r"(superblock_cookie) \
            : "memory" \
            : none, written); \
        return block; \
    none: \
        return heap_none(); \
    written: \
        superblock_written(block); \
    }

/* Puts a chain of blocks that this thread has onto the free list of a superblock, if this heap owns
 * it: from the block of number `first` to `last`, which are the same if count is 1. RSEQ_MOVED: nothing
 * is done. Without rseq no heap owns one, but then no thread may enter the section to find that out. A thread
 * without this heap's id may have made the heap the owner, and may have changed the word before that. So
 * the word is read at an address that depends on the owner: the section adds their difference, which is 0. */
static ALWAYS_INLINE enum rseq_result heap_give(struct superblock *sb, uint64_t first, void *last,
                                                uint64_t count)
{
    uint64_t t, word;
    __asm__ volatile goto(
        RSEQ_SECTION_BEGIN
        "ldrh %w[word], %[owner]\n\t"
        "eor %w[t], %w[t], %w[word]\n\tcbnz %[t], %l[remote]\n\t"
        "ldr %[word], [%[sb], %[t]]\n\t"
        "and %[t], %[word], #0xffff\n\teor %[t], %[t], %[cookie]\n\tstr %[t], [%[last]]\n\t"
        "add %[word], %[word], %[count]\n\tbfi %[word], %[first], #0, #16\n\t"
        "str %[word], [%[sb]]\n\t"
        RSEQ_SECTION_END
        : [t] "=&r"(t), [word] "=&r"(word)
        : RSEQ_SECTION_INPUTS, [sb] "r"(sb), [owner] "m"(sb->role.owner), [last] "r"(last),
          [first] "r"(first), [count] "Ir"(count << 16), [cookie] "r"(superblock_cookie)
        : "memory"
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
        "ldrh %w[word], %[owner]\n\t"
        "eor %w[t], %w[t], %w[word]\n\tcbnz %[t], %l[remote]\n\t"
        "ldrh %w[word], [%[block], #6]\n\t"
        "eor %[word], %[word], %[cookie], lsr #48\n\tcbz %[word], %l[changed]\n\t"
        "ldr %[word], [%[sb], %[t]]\n\t"
        "and %[t], %[word], #0xffff\n\teor %[t], %[t], %[cookie]\n\tstr %[t], [%[block]]\n\t"
        "add %[word], %[word], #0x10, lsl #12\n\tbfi %[word], %[number], #0, #16\n\t"
        "str %[word], [%[sb]]\n\t"
        RSEQ_SECTION_END
        : [t] "=&r"(t), [word] "=&r"(word)
        : RSEQ_SECTION_INPUTS, [sb] "r"(sb), [owner] "m"(sb->role.owner), [block] "r"(block),
          [number] "r"(number), [cookie] "r"(superblock_cookie)
        : "memory"
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
