/* SPDX-License-Identifier: Apache-2.0 */
/* sanitizer.h: what the library tells Valgrind's Memcheck and AddressSanitizer of memory.
 *
 * Both tools know malloc, and with either each object of a reap is a block of it (apart.h). What is left to
 * say is which bytes of a block nobody may touch; and where malloc is this library's, which memory is a
 * block.
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

bool sanitizer_running(void);

/* Begins a block, whose bytes are undefined; ends it, and nobody may touch it. */
void sanitizer_alloc(void *block, size_t size);
void sanitizer_free(void *block, size_t size);

/* The memory: nobody may touch it (hide); anybody may, and it is undefined (show); it is defined (use). */
void sanitizer_hide(void *at, size_t size);
void sanitizer_show(void *at, size_t size);
void sanitizer_use(void *at, size_t size);

/* Makes the tool write to standard error who allocated and freed the memory at an address. */
void sanitizer_describe(const void *at);

#endif
