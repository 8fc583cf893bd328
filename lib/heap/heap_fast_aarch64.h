/* SPDX-License-Identifier: Apache-2.0 */
/* heap_fast_aarch64.h: the sections of heap_fast.h in the instructions of aarch64.
 *
 * heap_fast.h includes this at its end; no other file does. rseq_aarch64.h tells why loads and stores are
 * plain.
 */
#ifndef HEAP_FAST_AARCH64_H
#define HEAP_FAST_AARCH64_H

/* clang-format off */

/* Both ways to take a block begin so: sb := the active superblock, word, and block := its origin. */
#define HEAP_SECTION_ACTIVE                                                                                  \
    RSEQ_SECTION_BEGIN                                                                                       \
    "add %[t], %[row], %[t], lsl #9\n\t" /* sizeof(struct heap_row) */                                       \
    "ldr %[sb], [%[t]]\n\t"                                                                                  \
    "cbz %[sb], %l[none]\n\t"                                                                                \
    "ldp %[word], %[block], [%[sb]]\n\t"

/* Takes the first free block of this heap's active superblock of the class, or NULL. The chain of dependences
 * from one pop to the next is word, first, link, word; the cookie is compared last. */
static ALWAYS_INLINE void *heap_pop(unsigned class)
{
    uint64_t t, word, link;
    struct superblock *sb;
    char *block;
again:
    __asm__ volatile goto(
        HEAP_SECTION_ACTIVE
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
        : again, none, written);
    *(uint64_t *)block = 0; /* a block that looks free must be free; and not before the commit */
    return block;
none:
    return heap_none();
written:
    superblock_written(block);
}

/* Carves a run of blocks off this heap's active superblock of the class, if its free list is empty; or NULL.
 * The caller gets the first block. The others become the free list; they are linked from the last to the
 * second. Before the commit no thread has these blocks, and an interrupted thread starts again, so it writes
 * no link after the commit. */
static inline void *heap_carve(unsigned class)
{
    const struct sizeclass *k = &sizeclasses[class];
    uint64_t t, word, last, number, link;
    struct superblock *sb;
    char *block;
again:
    __asm__ volatile goto(
        HEAP_SECTION_ACTIVE
        "and %[t], %[word], #0xffff\n\tcbnz %[t], %l[none]\n\t"
        "lsr %[t], %[word], #32\n\t"
        "cmp %w[t], %w[limit]\n\tb.hi %l[none]\n\t"
        "add %w[last], %w[t], %w[run]\n\t"
        "cmp %w[last], %w[limit]\n\tcsel %w[last], %w[last], %w[limit], lo\n\t" /* the last one of the run */
        "mov %w[number], %w[last]\n\tmov %[link], %[cookie]\n"
        "5:\n\tcmp %w[number], %w[t]\n\tb.eq 6f\n\t"
        "str %[link], [%[block], %[number]]\n\tadd %[link], %[cookie], %[number]\n\t"
        "sub %w[number], %w[number], %w[size]\n\tb 5b\n"
        "6:\n\tsub %w[word], %w[word], #0x10, lsl #12\n\t" /* one free block less, and no carve */
        "sub %[link], %[link], %[cookie]\n\torr %[word], %[word], %[link]\n\t"
        "add %[last], %[last], %[size]\n\torr %[word], %[word], %[last], lsl #32\n\t"
        "add %[block], %[block], %[t]\n\t"
        "str %[word], [%[sb]]\n\t"
        RSEQ_SECTION_END
        : [t] "=&r"(t), [word] "=&r"(word), [sb] "=&r"(sb), [block] "=&r"(block), [last] "=&r"(last),
          [number] "=&r"(number), [link] "=&r"(link)
        : RSEQ_SECTION_INPUTS, [row] "r"(&heap_rows[0].active[class]), [limit] "r"(k->carve_limit),
          [run] "r"(k->carve_run), [size] "r"((uint64_t)k->size), [cookie] "r"(superblock_cookie)
        : "memory", "cc"
        : again, none);
    *(uint64_t *)block = 0; /* the slot may hold an earlier life's links */
    return block;
none:
    return heap_none();
}

/* Takes the block that went last into this id's batch of the class, or NULL. */
static inline void *heap_batch_pop(unsigned class)
{
    uint64_t t, word, next;
    char *block;
again:
    __asm__ volatile goto(
        RSEQ_SECTION_BEGIN
        "add %[t], %[batch], %[t], lsl #9\n\t" /* sizeof(struct heap_batches) */
        "ldr %[word], [%[t]]\n\t"
        "tbnz %[word], #48, %l[none]\n\t" /* closed */
        "and %[block], %[word], #0xffffffffffff\n\tcbz %[block], %l[none]\n\t"
        "ldr %[next], [%[block], #8]\n\teor %[next], %[next], %[cookie]\n\t"
        "sub %[word], %[word], %[block]\n\tsub %[word], %[word], %[one]\n\t"
        "add %[word], %[word], %[next]\n\t"
        "lsr %[next], %[next], #48\n\tcbnz %[next], %l[written]\n\t"
        "str %[word], [%[t]]\n\t"
        RSEQ_SECTION_END
        : [t] "=&r"(t), [word] "=&r"(word), [next] "=&r"(next), [block] "=&r"(block)
        : RSEQ_SECTION_INPUTS, [batch] "r"(&heap_batches[0].of[class]), [one] "r"(HEAP_BATCH_ONE),
          [cookie] "r"(superblock_cookie)
        : "memory"
        : again, none, written);
    return block;
none:
    return heap_none();
written:
    superblock_written(block);
}

/* Frees a block that superblock_starts_at has checked: in one section if this heap owns the superblock.
 * Without rseq no heap owns one, but then no thread may enter the section to find that out. A thread without
 * this heap's id may have made the heap the owner, and may have changed the word before that. So the word is
 * read at an address that depends on the owner: the section adds their difference, which is 0. */
static ALWAYS_INLINE void heap_free(struct superblock *sb, void *block)
{
    uint64_t number = block_number(sb, block), t, word;
again:
    __asm__ volatile goto(
        RSEQ_SECTION_BEGIN
        "ldrh %w[word], %[owner]\n\t"
        "eor %w[t], %w[t], %w[word]\n\tcbnz %[t], %l[remote]\n\t"
        "ldr %[word], [%[sb], %[t]]\n\t"
        "and %[t], %[word], #0xffff\n\teor %[t], %[t], %[cookie]\n\tstr %[t], [%[block]]\n\t"
        "add %[word], %[word], #0x10, lsl #12\n\tbfi %[word], %[number], #0, #16\n\t"
        "str %[word], [%[sb]]\n\t"
        RSEQ_SECTION_END
        : [t] "=&r"(t), [word] "=&r"(word)
        : RSEQ_SECTION_INPUTS, [sb] "r"(sb), [owner] "m"(sb->role.owner), [block] "r"(block),
          [number] "r"(number), [cookie] "r"(superblock_cookie)
        : "memory"
        : again, remote);
    if (UNLIKELY((uint16_t)(word >> 16) >= sb->role.regroup_at)) heap_regroup(sb);
    return;
remote:
    heap_free_slow(sb, block);
}

/* clang-format on */

#endif
