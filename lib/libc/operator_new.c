/* SPDX-License-Identifier: Apache-2.0 */
/* operator_new.c: C++'s new and delete, as C functions under their mangled names.
 *
 * They find the new handler and std::bad_alloc through weak symbols, so C programs need not load libstdc++.
 * They are built with -fexceptions: an exception of a handler passes through.
 *
 * A program may replace some of the forms, and all others end in these ([new.delete]). The C++ library's
 * arrays and nothrow forms call the others by their names, so there are none here. Those that are here for an
 * array or with a size jump to what the name is in the process.
 */
#include "hoard/hardened.h"
#include "hoard/malloc_fast.h"

#include <stdlib.h>

typedef void (*new_handler)(void);

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

#define UNUSED __attribute__((unused))
#if __has_attribute(noplt)
#define NOPLT __attribute__((noplt))
#else
#define NOPLT
#endif
#define OWN(mangled) __attribute__((alias(#mangled), visibility("hidden")))

void *_Znwm(size_t size);
void *_Znwm(size_t size) { return new_plain(size); }

void *_ZnwmSt11align_val_t(size_t size, size_t alignment);
void *_ZnwmSt11align_val_t(size_t size, size_t alignment) { return new_aligned(size, alignment); }

/* A delete without a size: its mangled name, its parameters, what it calls. own_ and the name is this
 * definition; the name itself is the program's, where that has one. (clang would inline what it names.) */
#define DELETE(mangled, parameters, call)                                                                    \
    NOINLINE void mangled parameters NOPLT;                                                                  \
    void mangled parameters { call; }                                                                        \
    OWN(mangled) void own##mangled parameters;

DELETE(_ZdlPv, (void *block), hoard_free_fast(block, "delete"))
DELETE(_ZdaPv, (void *block), _ZdlPv(block))
DELETE(_ZdlPvSt11align_val_t, (void *block, size_t alignment UNUSED), hoard_free_fast(block, "delete"))
DELETE(_ZdaPvSt11align_val_t, (void *block, size_t alignment), _ZdlPvSt11align_val_t(block, alignment))

/* clang would take the two to be the same. */
#define IS_OWN(mangled) (UNKNOWN(mangled) == own##mangled)

/* Where the program replaces an operator, the block may not be one of the hoard's. */
static COLD void check_size(void *block, size_t size)
{
    if (IS_OWN(_ZdlPv) && IS_OWN(_ZdaPv) && IS_OWN(_ZdlPvSt11align_val_t) && IS_OWN(_ZdaPvSt11align_val_t))
        hardened_check_size(block, size, "delete");
}

/* A delete with a size: its mangled name, its parameters, the one without. */
#define DELETE_SIZED(mangled, parameters, call)                                                              \
    void mangled parameters;                                                                                 \
    void mangled parameters                                                                                  \
    {                                                                                                        \
        if (UNLIKELY(hardened_level != 0)) check_size(block, size);                                          \
        call;                                                                                                \
    }

DELETE_SIZED(_ZdlPvm, (void *block, size_t size), _ZdlPv(block))
DELETE_SIZED(_ZdaPvm, (void *block, size_t size), _ZdaPv(block))
DELETE_SIZED(_ZdlPvmSt11align_val_t, (void *block, size_t size, size_t alignment),
             _ZdlPvSt11align_val_t(block, alignment))
DELETE_SIZED(_ZdaPvmSt11align_val_t, (void *block, size_t size, size_t alignment),
             _ZdaPvSt11align_val_t(block, alignment))
