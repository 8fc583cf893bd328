/* SPDX-License-Identifier: Apache-2.0 */
/* program.h: the constants of the main program.
 *
 * They stay as they are as long as the process runs; those of a library go when it is unloaded. They lie in
 * the segments before the first one that is written to.
 *
 * Threads: program_find runs once, before all others look.
 */
#ifndef PROGRAM_H
#define PROGRAM_H

#include "base/base.h"

struct program_constants {
    uintptr_t from;
    size_t size; /* bytes; 0: where they are is not known */
};
extern HIDDEN struct program_constants program_constants;

/* Finds them in the program headers that the kernel tells of. Takes no lock: the loader's may be held. */
void program_find(void);

/* The bytes from an address to their end, if it is one of them; else 0. */
static inline size_t program_left(const void *address)
{
    size_t at = (uintptr_t)address - program_constants.from;
    return at < program_constants.size ? program_constants.size - at : 0;
}

#endif
