/* SPDX-License-Identifier: Apache-2.0 */
/* sanitizer.h: tells Valgrind's Memcheck and AddressSanitizer which memory is an object.
 *
 * Both tools know malloc. An allocator that carves up memory itself has to tell them of its objects. A pool
 * is known by an address, and its objects by theirs. The program must not touch memory of a pool outside of
 * objects; a new object is undefined. The allocator reports an object with the size that the program
 * requested. The rest of its last 16 bytes belongs to the object too, but must not be touched until
 * sanitizer_widen. With the pool NULL an object is a block of the tool's own malloc, which the tool knows:
 * then only the rest is reported.
 *
 * The library finds AddressSanitizer in the process by its functions, and needs no build of its own for it.
 * AddressSanitizer checks accesses of instrumented code, and those of its own memcpy and the like for the
 * library. Memcheck checks all accesses.
 *
 * Callers ask sanitizer_running() once, and make these calls only if it is true. A library that was built
 * without Valgrind's header, or with configure's --without-valgrind, does not know Valgrind.
 */
#ifndef SANITIZER_H
#define SANITIZER_H

#include <stdbool.h>
#include <stddef.h>

/* Returns true if one of the two tools watches this process. */
bool sanitizer_running(void);

/* Begins a pool, or ends it. After the end the program must not touch the memory of its objects. */
void sanitizer_pool_begin(void *pool);
void sanitizer_pool_end(void *pool);

void sanitizer_alloc(void *pool, void *object, size_t size, bool zeroed);

/* Frees an object of `size` bytes, the rest of its last 16 included. */
void sanitizer_free(void *pool, void *object, size_t size);

/* Resizes an object in place from `from` bytes, all of them in use, to `to` bytes. */
void sanitizer_resize(void *pool, void *object, size_t from, size_t to);

/* Says that the program may touch all `size` bytes of an object, a multiple of 16. */
void sanitizer_widen(void *pool, void *object, size_t size);

/* sanitizer_hide: nobody may touch the memory. sanitizer_show: anybody may. sanitizer_use: only the
 * allocator's own code touches it. */
void sanitizer_hide(void *at, size_t size);
void sanitizer_show(void *at, size_t size);
void sanitizer_use(void *at, size_t size);

/* Makes the tool write to standard error who allocated and freed the memory at an address. */
void sanitizer_describe(const void *at);

#endif
