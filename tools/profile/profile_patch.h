/* SPDX-License-Identifier: Apache-2.0 */
/* profile_patch.h: a running program's calls of some functions go elsewhere for a while, and back.
 *
 * Each loaded object has words with the addresses of the functions that it calls (its global offset table),
 * and of those that it has pointers to. ld.so wrote them; these calls write others over them, one word at a
 * time, and back.
 *
 *     program    call *[word of malloc] ----> malloc                          off: as without this library
 *                                       `---> instead ----> malloc            on
 *
 * A word is changed only where it has the real function's address, or waits for its first call, and back only
 * where it has the other one's. Words of a page that ld.so has made read-only after its work are changed
 * while the page is made writable; where that page is still writable, ld.so works on the object, which is
 * left for later.
 *
 * Not seen: calls by an address that the program asked of dlsym or copied before, and calls within one
 * object.
 *
 * Threads: any; one at a time works, the others return.
 */
#ifndef PROFILE_PATCH_H
#define PROFILE_PATCH_H

#include <stdint.h>

#include "profile_sample.h"

/* Sends the program's calls elsewhere, or back. False: there is no /proc or no memory to see what may be
 * written. */
bool profile_patch(bool on);

/* The same for objects that were loaded since, while the profile is on. Returns
 * profile_loads (profile_unwind.h); 0: another thread is at work. */
uint64_t profile_patch_new(void);

/* Around a fork, also in the child: ld.so's lock on the list of objects, which is taken here, stays taken in
 * a child whose parent was in dl_iterate_phdr (glibc 2.36). */
void profile_patch_lock(void);
void profile_patch_unlock(void);

#endif
