/* SPDX-License-Identifier: Apache-2.0 */
/* hardened.h: malloc's blocks with checks: the option harden.
 *
 * Only the slow paths of malloc, free and their family call this module: while the option is on, the fast
 * path's tables of classes and guesses stay empty.
 *
 *     block of a class    | the bytes asked for | canary | zero bytes | seal |
 *                                                                      ^ room
 *     large object        | the bytes asked for | canary | (harden=2) pages that nobody may touch |
 *
 * A block's last eight bytes are its seal, a word that no other block has. The seal of a live block tells its
 * size; a freed block has its dead seal. The last bytes of a block that was never used are zero. A large
 * object's size lies in its descriptor.
 *
 *     fresh blocks        heap -> pool, at a random place -> program (above 2,040 bytes without)
 *     freed blocks        program -> waits at a random place (up to 1 KiB) -> waits in a ring -> heap
 *     large objects       program -> waits without memory -> arena
 *
 * free checks the state, the canary, and the seal of the block before; then it clears the block. malloc, and
 * the end of the quarantine, find later writes. An object of size 0 has a canary alone.
 *
 * Invariants
 *     - a block's seal is 0, or its dead one, or that of a size up to its room
 *     - in a block that is not live all bytes are zero, except the seal and the first 16, which the heap
 *       writes to; while it waits, those too. So superblocks are cleared before use (superblock_clears)
 *     - a block waits, or lies in a pool, at one place
 *
 * Threads: any. There is no lock: a thread claims a place by an exchange. So a fork finds each block whole;
 * the child never frees a block that another thread had claimed.
 */
#ifndef HARDENED_H
#define HARDENED_H

#include "hoard/owner.h"

/* 0: off. Set once, at the start, which is after the options are read and before the first block. */
extern HIDDEN unsigned hardened_level;
void hardened_start(void);

/* Allocates zero bytes. The alignment is a power of two. NULL and ENOMEM. */
void *hardened_alloc(size_t alignment, size_t size);

/* free, realloc and malloc_usable_size of a pointer, which may be NULL for free, or of a reap. They end the
 * program with a line that names `call` if it is no live object, or memory around it was written to. The
 * usable size is the size that was asked for. `arena` is the pointer's. */
void hardened_free(struct arena *arena, void *block, const char *call);
void *hardened_resize(void *block, size_t size, const char *call);
size_t hardened_usable(const void *block, const char *call);

/* Ends the program if the live object has another size than `size`, which the program gave to free. */
void hardened_check_size(void *block, size_t size, const char *call);

#endif
