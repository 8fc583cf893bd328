/* SPDX-License-Identifier: Apache-2.0 */
/* sanitizer.h: telling Valgrind's Memcheck and AddressSanitizer what is an object and what is not.
 *
 * Both know malloc; of memory that an allocator carves up itself they have to be told. A pool is known by
 * an address, its objects by theirs: what is in no object must not be touched, what was just allocated is
 * undefined. Objects are told with the size that was asked for; the rest of their last 16 bytes is theirs,
 * too, but not to be touched until sanitizer_widen. With the pool NULL an object is a block of the tool's own
 * malloc, which knows it: then the rest is all that there is to tell.
 *
 * AddressSanitizer is found in the process by its functions, so nothing is built for it. It checks what
 * instrumented code touches, and what its own memcpy and the like do for the library; Memcheck checks all.
 *
 * Callers ask sanitizer_running() once, and make these calls only then. Without Valgrind's header when the
 * library is built, or with configure's --without-valgrind, it does not know Valgrind.
 */
#ifndef SANITIZER_H
#define SANITIZER_H

#include <stdbool.h>
#include <stddef.h>

/* Is one of them watching? */
bool sanitizer_running(void);

/* Begins a pool; ends it: what was in its objects must not be touched any more. */
void sanitizer_pool_begin(void *pool);
void sanitizer_pool_end(void *pool);

void sanitizer_alloc(void *pool, void *object, size_t size, bool zeroed);

/* Frees an object that has so many bytes, the rest included. */
void sanitizer_free(void *pool, void *object, size_t size);

/* An object of `from` bytes, all of them in use, has `to` now, in the same place. */
void sanitizer_resize(void *pool, void *object, size_t from, size_t to);

/* All `size` bytes of an object, a multiple of 16, are in use. */
void sanitizer_widen(void *pool, void *object, size_t size);

/* Memory that nobody may touch; that anybody may; that only its allocator's own code touches. */
void sanitizer_hide(void *at, size_t size);
void sanitizer_show(void *at, size_t size);
void sanitizer_use(void *at, size_t size);

/* Has the tool say on standard error what it knows of an address: who allocated and freed it. */
void sanitizer_describe(const void *at);

#endif
