/* SPDX-License-Identifier: Apache-2.0 */
/* rseq_x86_64.h: the sections of rseq.h in the instructions of x86-64.
 *
 * Only rseq.h includes it, at its end.
 */
#ifndef RSEQ_X86_64_H
#define RSEQ_X86_64_H

/* The code addresses the area from the thread pointer (%fs). The descriptor of the section 1..2 has its abort
 * handler at 4. The signature that the kernel wants stands before it. */
#define RSEQ_SECTION_DESCRIPTOR                                                                              \
    ".pushsection __rseq_cs, \"aw\"\n\t.balign 32\n\t3:\n\t.long 0, 0\n\t"                                   \
    ".quad 1f, (2f - 1f), 4f\n\t.popsection\n\t"
#define RSEQ_SECTION_BEGIN                                                                                   \
    RSEQ_SECTION_DESCRIPTOR                                                                                  \
    "leaq 3b(%%rip), %[t]\n\tmovq %[t], %%fs:8(%[area])\n\t1:\n\t"                                           \
    "movl %%fs:(%[id_at]), %k[t]\n\t"
#define RSEQ_SECTION_END                                                                                     \
    "2:\n\t.pushsection .text.unlikely.rseq, \"ax\"\n\t.byte 0x0f, 0xb9, 0x3d\n\t.long 0x53053053\n\t"       \
    "4: jmp %l[again]\n\t.popsection\n\t"
#define RSEQ_SECTION_INPUTS [area] "r"(cpu.area_at), [id_at] "r"(rseq_id_at)

/* The same with one register less. */
#define RSEQ_SECTION_BEGIN_SMALL                                                                             \
    RSEQ_SECTION_DESCRIPTOR                                                                                  \
    "leaq 3b(%%rip), %[t]\n\tmovq %[t], %%fs:8(%[area])\n\t1:\n\t"                                           \
    "movq %[id_at], %[t]\n\tmovl %%fs:(%[t]), %k[t]\n\t"
#define RSEQ_SECTION_INPUTS_SMALL [area] "r"(cpu.area_at), [id_at] "m"(rseq_id_at)

/* Returns this thread's id. It may have another one at the next instruction. */
static inline uint32_t rseq_id(void)
{
    uint32_t id;
    __asm__ volatile("movl %%fs:(%[id_at]), %[id]" : [id] "=r"(id) : [id_at] "r"(rseq_id_at));
    return id;
}

/* The section of rseq_store_unless. */
#define RSEQ_STORE_UNLESS                                                                                    \
    RSEQ_SECTION_BEGIN                                                                                       \
    "cmpl %[id], %k[t]\n\tjne %l[moved]\n\t"                                                                 \
    "cmpl $0, (%[flag])\n\tjne %l[changed]\n\t"                                                              \
    "cmpq %[expected], (%[at])\n\tjne %l[changed]\n\t"                                                       \
    "movq %[value], (%[at])\n\t" RSEQ_SECTION_END

#endif
