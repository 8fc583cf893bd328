/* SPDX-License-Identifier: Apache-2.0 */
/* rseq_aarch64.h: the sections of rseq.h in the instructions of aarch64.
 *
 * Only rseq.h includes it, at its end.
 *
 * x86-64 orders memory by itself. Here a section's loads and stores are plain, and this orders them:
 *
 *   one holder of an id to the next   The kernel's context switches and its handing over of ids are full
 *                                     barriers: data of holders only (words, links) needs nothing more.
 *   a holder to others                Other threads read a word for its counts only, or after rseq_fence, a
 *                                     full barrier on every processor: the commit needs no stlr.
 *   others to a holder                They store the row or the owner that leads to their data with release.
 *                                     A section loads the data from an address that depends on what it read
 *                                     there, so it cannot read the data before: it needs no ldar, which
 *                                     would wait for every earlier stlr of this processor.
 *   cpu.ids and all it stands for     rseq_init calls rseq_fence before other threads see them.
 */
#ifndef RSEQ_AARCH64_H
#define RSEQ_AARCH64_H

#define RSEQ_TEXT_OF(x) #x
#define RSEQ_TEXT(x) RSEQ_TEXT_OF(x)

/* The descriptor of the section 1..2 has its abort handler at 4, which is where the section is entered: the
 * inputs are as they were. So a signal's frame, which the kernel builds there, has the function's frame
 * information. The signature before the handler is an instruction that traps (.inst: little-endian). */
#define RSEQ_SECTION_BEGIN                                                                                   \
    "b 4f\n\t.inst " RSEQ_TEXT(                                                                              \
        RSEQ_SIG_CODE) "\n\t4:\n\t"                                                                          \
                       ".pushsection __rseq_cs, \"aw\"\n\t.balign 32\n\t3:\n\t.long 0, 0\n\t"                \
                       ".quad 1f, (2f - 1f), 4b\n\t.popsection\n\t"                                          \
                       "adrp %[t], 3b\n\tadd %[t], %[t], :lo12:3b\n\tstr %[t], [%[thread], "                 \
                       "%[section_at]]\n\t1:\n\t"                                                            \
                       "ldr %w[t], [%[thread], %[id_at]]\n\t"
#define RSEQ_SECTION_END "2:\n\t"
#define RSEQ_SECTION_INPUTS                                                                                  \
    [thread] "r"(__builtin_thread_pointer()), [section_at] "r"(cpu.section_at), [id_at] "r"(rseq_id_at)

/* Returns this thread's id. It may have another one at the next instruction. */
static inline uint32_t rseq_id(void)
{
    uint32_t id;
    __asm__ volatile("ldr %w[id], [%[thread], %[id_at]]"
                     : [id] "=r"(id)
                     : [thread] "r"(__builtin_thread_pointer()), [id_at] "r"(rseq_id_at));
    return id;
}

#define RSEQ_STORE_UNLESS                                                                                    \
    RSEQ_SECTION_BEGIN                                                                                       \
    "cmp %w[t], %w[id]\n\tb.ne %l[moved]\n\t"                                                                \
    "ldr %w[t], [%[flag]]\n\tcbnz %w[t], %l[changed]\n\t"                                                    \
    "ldr %[t], [%[at]]\n\tcmp %[t], %[expected]\n\tb.ne %l[changed]\n\t"                                     \
    "str %[value], [%[at]]\n\t" RSEQ_SECTION_END

#endif
