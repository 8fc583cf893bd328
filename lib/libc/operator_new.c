/* SPDX-License-Identifier: Apache-2.0 */
/* operator_new.c: C++'s new and delete, as C functions under their mangled names.
 *
 * They find the new handler and std::bad_alloc through weak symbols, so C programs need not load libstdc++.
 * They are built with -fexceptions: an exception of a handler passes through.
 */
#include "hoard/malloc_fast.h"

#include <dlfcn.h>
#include <stdlib.h>

typedef void (*new_handler)(void);
typedef const struct nothrow *nothrow_t; /* a reference, to C */

extern new_handler std_get_new_handler(void) __asm__("_ZSt15get_new_handlerv") __attribute__((weak));
extern void std_throw_bad_alloc(void) __asm__("_ZSt17__throw_bad_allocv") __attribute__((weak, noreturn));

static ALWAYS_INLINE void *new_block(size_t size, size_t alignment, const void *caller)
{
    return alignment != 0 ? hoard_aligned(alignment, size, caller) : hoard_malloc_any(size, caller);
}

/* Calls the handler until it has made room, throws, or is taken away ([new.delete.single]). */
static COLD void *new_retry(size_t size, size_t alignment, const void *caller)
{
    for (;;) {
        new_handler handler = std_get_new_handler != NULL ? std_get_new_handler() : NULL;
        if (handler == NULL && std_throw_bad_alloc != NULL) std_throw_bad_alloc();
        if (handler == NULL) abort();
        handler();
        void *block = new_block(size, alignment, caller);
        if (block != NULL) return block;
    }
}

/* Plain new ends in a jump to these, so they have its return address. */
static NOINLINE void *new_slow(size_t size)
{
    const void *caller = __builtin_return_address(0);
    void *block = hoard_malloc_slow(size, caller);
    return LIKELY(block != NULL) ? block : new_retry(size, 0, caller);
}

static NOINLINE void *new_medium(size_t size) { return hoard_medium_with(size, new_slow); }

static ALWAYS_INLINE void *new_plain(size_t size) { return hoard_malloc_with(size, new_slow, new_medium); }

static ALWAYS_INLINE void *new_aligned(size_t size, size_t alignment)
{
    const void *caller = __builtin_return_address(0); /* of the operator that this is inlined into */
    void *block = new_block(size, alignment, caller);
    return LIKELY(block != NULL) ? block : new_retry(size, alignment, caller);
}

/* An exception of the handler must become NULL, and C cannot catch it. libstdc++'s own nothrow forms can:
 * they call the throwing form, which is this library's, and return NULL for an exception. */
static COLD void *new_nothrow_retry(size_t size, size_t alignment, nothrow_t nothrow)
{
    if (alignment != 0) {
        void *(*aligned)(size_t, size_t, nothrow_t) = dlsym(RTLD_NEXT, "_ZnwmSt11align_val_tRKSt9nothrow_t");
        return aligned != NULL ? aligned(size, alignment, nothrow) : NULL;
    }
    void *(*plain)(size_t, nothrow_t) = dlsym(RTLD_NEXT, "_ZnwmRKSt9nothrow_t");
    return plain != NULL ? plain(size, nothrow) : NULL;
}

static ALWAYS_INLINE void *new_nothrow(size_t size, size_t alignment, nothrow_t nothrow)
{
    void *block = new_block(size, alignment, __builtin_return_address(0));
    return LIKELY(block != NULL) ? block : new_nothrow_retry(size, alignment, nothrow);
}

/* A definition's mangled name, its parameters, its body. */
#define NEW(mangled, parameters, body)                                                                       \
    void *mangled parameters;                                                                                \
    void *mangled parameters { return body; }
#define DELETE(mangled, parameters, call)                                                                    \
    void mangled parameters;                                                                                 \
    void mangled parameters { hoard_free_fast(block, call); }
#define DELETE_SIZED(mangled, parameters, call)                                                              \
    void mangled parameters;                                                                                 \
    void mangled parameters { hoard_free_sized_fast(block, size, call); }

#define UNUSED __attribute__((unused))

NEW(_Znwm, (size_t size), new_plain(size))
NEW(_Znam, (size_t size), new_plain(size))
NEW(_ZnwmSt11align_val_t, (size_t size, size_t alignment), new_aligned(size, alignment))
NEW(_ZnamSt11align_val_t, (size_t size, size_t alignment), new_aligned(size, alignment))
NEW(_ZnwmRKSt9nothrow_t, (size_t size, nothrow_t nothrow), new_nothrow(size, 0, nothrow))
NEW(_ZnamRKSt9nothrow_t, (size_t size, nothrow_t nothrow), new_nothrow(size, 0, nothrow))
NEW(_ZnwmSt11align_val_tRKSt9nothrow_t, (size_t size, size_t alignment, nothrow_t nothrow),
    new_nothrow(size, alignment, nothrow))
NEW(_ZnamSt11align_val_tRKSt9nothrow_t, (size_t size, size_t alignment, nothrow_t nothrow),
    new_nothrow(size, alignment, nothrow))

DELETE(_ZdlPv, (void *block), "delete")
DELETE(_ZdaPv, (void *block), "delete[]")
DELETE_SIZED(_ZdlPvm, (void *block, size_t size), "delete")
DELETE_SIZED(_ZdaPvm, (void *block, size_t size), "delete[]")
DELETE(_ZdlPvSt11align_val_t, (void *block, size_t alignment UNUSED), "delete")
DELETE(_ZdaPvSt11align_val_t, (void *block, size_t alignment UNUSED), "delete[]")
DELETE_SIZED(_ZdlPvmSt11align_val_t, (void *block, size_t size, size_t alignment UNUSED), "delete")
DELETE_SIZED(_ZdaPvmSt11align_val_t, (void *block, size_t size, size_t alignment UNUSED), "delete[]")
DELETE(_ZdlPvRKSt9nothrow_t, (void *block, nothrow_t nothrow UNUSED), "delete")
DELETE(_ZdaPvRKSt9nothrow_t, (void *block, nothrow_t nothrow UNUSED), "delete[]")
DELETE(_ZdlPvSt11align_val_tRKSt9nothrow_t, (void *block, size_t alignment UNUSED, nothrow_t nothrow UNUSED),
       "delete")
DELETE(_ZdaPvSt11align_val_tRKSt9nothrow_t, (void *block, size_t alignment UNUSED, nothrow_t nothrow UNUSED),
       "delete[]")
