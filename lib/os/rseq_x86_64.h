/* SPDX-License-Identifier: Apache-2.0 */
/* rseq_x86_64.h: the sections of rseq.h in the instructions of x86-64.
 *
 * Only rseq.h includes it, at its end.
 */
#ifndef RSEQ_X86_64_H
#define RSEQ_X86_64_H

/* The code addresses the area from the thread pointer (%fs). The descriptor of the section 1..2 has its abort
 * handler at 4, which is where the section is entered: the inputs are as they were. So a signal's frame,
 * which the kernel builds there, has the function's call frame information. The signature that the kernel
 * wants before the handler ends an instruction that only passes by. */
#define RSEQ_SIGNATURE "0x53053053"
#define RSEQ_SECTION_ENTER                                                                                   \
    "4:\n\t.pushsection __rseq_cs, \"aw\"\n\t.balign 32\n\t3:\n\t.long 0, 0\n\t"                             \
    ".quad 1f, (2f - 1f), 4b\n\t.popsection\n\t"                                                             \
    "leaq 3b(%%rip), %[t]\n\tmovq %[t], %%fs:(%[section_at])\n\t1:\n\t"
#define RSEQ_SECTION_BEGIN                                                                                   \
    ".byte 0x0f, 0x1f, 0x05\n\t.long " RSEQ_SIGNATURE "\n\t" RSEQ_SECTION_ENTER /* a nop */                  \
    "movl %%fs:(%[id_at]), %k[t]\n\t"
#define RSEQ_SECTION_END "2:\n\t"
#define RSEQ_SECTION_INPUTS [section_at] "r"(cpu.section_at), [id_at] "r"(rseq_id_at)

/* The same without the nop, and with one register less. It makes [row], which was the number of a class, the
 * address of the class's word in a table, by an instruction that the signature ends. So the register `from`
 * has the table's address less the signature. */
#define RSEQ_SECTION_BEGIN_OF_CLASS(from)                                                                    \
    "leaq -" RSEQ_SIGNATURE "+%[table], " from "\n\tleaq " RSEQ_SIGNATURE "(" from                           \
    ", %[row], 8), %[row]\n\t" RSEQ_SECTION_ENTER "movq %[id_at], %[t]\n\tmovl %%fs:(%[t]), %k[t]\n\t"
#define RSEQ_SECTION_INPUTS_OF_CLASS(in)                                                                     \
    [section_at] "r"(cpu.section_at), [id_at] "m"(rseq_id_at), [table] "m"(in)

/* Returns this thread's id. It may have another one at the next instruction. */
static inline uint32_t rseq_id(void)
{
    uint32_t id;
    __asm__ volatile("movl %%fs:(%[id_at]), %[id]" : [id] "=r"(id) : [id_at] "r"(rseq_id_at));
    return id;
}

#define RSEQ_STORE_UNLESS                                                                                    \
    RSEQ_SECTION_BEGIN                                                                                       \
    "cmpl %[id], %k[t]\n\tjne %l[moved]\n\t"                                                                 \
    "cmpl $0, (%[flag])\n\tjne %l[changed]\n\t"                                                              \
    "cmpq %[expected], (%[at])\n\tjne %l[changed]\n\t"                                                       \
    "movq %[value], (%[at])\n\t" RSEQ_SECTION_END

#endif
