/* SPDX-License-Identifier: Apache-2.0 */
#include "os/program.h"

#include <link.h>
#include <sys/auxv.h>

struct program_constants program_constants;

void program_find(void)
{
    const ElfW(Phdr) *headers = (const void *)getauxval(AT_PHDR), *self = headers;
    const ElfW(Phdr) *end = headers ? headers + getauxval(AT_PHNUM) : NULL;
    uintptr_t from = UINTPTR_MAX, to = 0;
    while (self != end && self->p_type != PT_PHDR) self++;
    if (self == end) return; /* nobody says where the program was loaded */
    for (const ElfW(Phdr) *one = headers; one != end; one++) {
        if (one->p_type != PT_LOAD) continue;
        if (one->p_flags & PF_W) break; /* they are in the order of their addresses */
        if (from > one->p_vaddr) from = one->p_vaddr;
        to = one->p_vaddr + one->p_memsz;
    }
    if (to <= from) return;
    program_constants.from = (uintptr_t)headers - self->p_vaddr + from;
    program_constants.size = to - from;
}
