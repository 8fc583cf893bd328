/* SPDX-License-Identifier: Apache-2.0 */
/* preload_early.h: a library that allocates whenever it can: in its constructor, in its fork
 * handlers, in a destructor. Foreign to the malloc, as any library may be. */
#ifndef PRELOAD_EARLY_H
#define PRELOAD_EARLY_H

/* What the constructor made: a block with a known text. */
extern char *early_block;

/* How often each fork handler ran in this process. */
extern int early_prepared, early_in_parent, early_in_child;

/* Takes the lock that the fork handlers take, allocates under it, and lets go: so a fork that
 * locked the malloc before this library's prepare handler ran would stand still. */
void early_work_under_lock(void);

#endif
