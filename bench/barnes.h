/* SPDX-License-Identifier: Apache-2.0 */
/* barnes.h: the workload of threads.c that computes: bodies that pull each other, by the method of Barnes and
 * Hut (Nature, 1986), with a tree of space that is made anew each round. 32,768 bodies and 20 rounds are
 * those of Berger, McKinley, Blumofe and Wilson (ASPLOS 2000, 5.2); a round has 50,000 objects of 40 and 104
 * bytes, as theirs has 58,000 of 39 on average.
 */
#ifndef BARNES_H
#define BARNES_H

#include <stdbool.h>
#include <stdint.h>

extern uint64_t barnes_sum; /* of where the bodies are, the same with any number of threads */

/* Nodes that were made. */
uint64_t barnes_on(int threads, bool brief);

#endif
