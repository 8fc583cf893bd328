/* SPDX-License-Identifier: Apache-2.0 */
/* metadata.h: memory for the allocator's own descriptors.
 *
 *     mapping of 256 KiB   | used | descriptor | descriptor | ...        | not yet given |
 *
 * Descriptors lie apart from all memory of the program, so that no overflow of an object reaches them. They
 * never go back to the OS: a pointer to a descriptor may always be read.
 *
 * Threads: any; no lock.
 */
#ifndef METADATA_H
#define METADATA_H

#include "base/base.h"

/* Returns size zero bytes at a multiple of 64. NULL: no memory. */
void *metadata_alloc(size_t size);

#endif
