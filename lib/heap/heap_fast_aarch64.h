/* SPDX-License-Identifier: Apache-2.0 */
/* heap_fast_aarch64.h: the sections of heap_fast.h in the instructions of aarch64.
 *
 * The last thing that heap_fast.h includes; nobody else does. rseq_aarch64.h tells why loads and stores
 * are plain.
 */
#ifndef HEAP_FAST_AARCH64_H
#define HEAP_FAST_AARCH64_H

/* clang-format off */

/* What both ways to take a block begin with: sb, word, and block := its origin, of the active superblock. */
#define HEAP_SECTION_ACTIVE                                                                                  \
    RSEQ_SECTION_BEGIN                                                                                       \
    "add %[t], %[row], %[t], lsl #9\n\t" /* sizeof(struct heap_row) */                                       \
    "ldr %[sb], [%[t]]\n\t"                                                                                  \
    "cbz %[sb], %l[none]\n\t"                                                                                \
    "ldp %[word], %[block], [%[sb]]\n\t"

/* Takes the first free block of this heap's active superblock of the class, or NULL. The chain from one pop
 * to the next is word, first, link, word; the cookie is looked at last. */
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
    *(uint64_t *)block = 0; /* what looks free must be free; and not before the commit */
    return block;
none:
    return heap_none();
written:
    superblock_written(block);
}

/* Carves a run of blocks off this heap's active superblock of the class, if nothing in it is free that was
 * carved before; the first is the caller's, the others, linked from the last to the second, are the new
 * list. Or NULL. What is being linked is nobody's before the commit, and who is interrupted starts again, so
 * that no link is written after it. */
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
        "6:\n\tsub %w[word], %w[word], #0x10, lsl #12\n\t" /* what is free, without its carve */
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

/* Takes the block that was last put into this heap's batch of the class, or NULL. */
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

/* Frees what superblock_starts_at says is the start of a block: in one section if this heap owns the
 * superblock. Where there is no rseq nobody owns one, but the section may not be entered to find that out.
 * Whoever makes this heap the owner may be no holder of its id, and may have changed the word before: so the
 * word is read at an address that depends on the owner, by adding their difference, which is 0. */
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
