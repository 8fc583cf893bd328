/* SPDX-License-Identifier: Apache-2.0 */
/* metadata.h: memory for the allocator's own descriptors.
 *
 *     mapping of 256 KiB   | used | descriptor | descriptor | ...        | not yet given |
 *
 * It lies apart from all memory of the program, so that no overflow of an object reaches it, and it never
 * goes back: who keeps a pointer to a descriptor may always read it.
 *
 * Threads: any, without a lock.
 */
#ifndef METADATA_H
#define METADATA_H

#include "base/base.h"

/* Zero bytes at a multiple of 64. NULL when there are none. */
void *metadata_alloc(size_t size);

#endif
