/* SPDX-License-Identifier: Apache-2.0 */
/* loads.h: programs for many processors, run by one thread (vcpu.h).
 *
 * Each has at most `bytes` live. One load in a process.
 */
#ifndef LOADS_H
#define LOADS_H

#include <stddef.h>

struct load {
    const char *name;
    const char *what;
    unsigned classes;
    unsigned share; /* the most blocks that share lines with one, itself included */
    void (*prepare)(unsigned processors, size_t bytes); /* comes before what is to be counted */
    void (*run)(unsigned processors, size_t bytes);
    const char *options; /* under which it shows what it is for, where not bounds are tested; NULL: any */
};

/* Bytes of the blocks of the loads that use one class: a multiple of the line, of which a superblock has no
 * rest. */
enum { LOAD_SIZE = 256 };
extern unsigned load_size; /* LOAD_SIZE, until a test says another */

extern const struct load load_pairs, load_round, load_ended, load_worst, load_growing, load_shrinking,
    load_active, load_passive, load_handed, load_mixed, load_moving;
extern const struct load *const loads[]; /* all of them, then NULL */

/* What a load wants in the place of so many bytes, to be what it is meant to be. */
size_t load_bytes(const struct load *load, unsigned processors, size_t bytes);

/* Frees what is live yet, as processor 0. */
void load_finish(void);

#endif
