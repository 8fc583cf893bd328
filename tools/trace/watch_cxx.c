/* SPDX-License-Identifier: Apache-2.0 */
/* watch_cxx.c: C++'s operators new and delete, which libreap-malloc has itself; another library's call
 * malloc, from within. Where there is no next one the program has none, and does not call. An exception of
 * new passes through: the thread has to leave before. */

#include "watch.h"

static void leave(const unsigned *entered)
{
    if (*entered) watch_leave();
}

/* A function new: its name, its parameters, and what is passed on. */
#define NEW(name, parameters, ...)                                                                           \
    PUBLIC void *name parameters;                                                                            \
    PUBLIC void *name parameters                                                                             \
    {                                                                                                        \
        __attribute__((cleanup(leave))) unsigned entered = watch_enter();                                    \
        void *object = NEXT(name)(__VA_ARGS__);                                                              \
        return entered ? watch_made(object, size, CALLER) : object;                                          \
    }

#define DELETE(name, parameters, ...)                                                                        \
    PUBLIC void name parameters;                                                                             \
    PUBLIC void name parameters                                                                              \
    {                                                                                                        \
        __attribute__((cleanup(leave))) unsigned entered = watch_enter();                                    \
        if (entered) watch_free(object);                                                                     \
        NEXT(name)(__VA_ARGS__);                                                                             \
    }

NEW(_Znwm, (size_t size), size)
NEW(_Znam, (size_t size), size)
NEW(_ZnwmRKSt9nothrow_t, (size_t size, const void *nothrow), size, nothrow)
NEW(_ZnamRKSt9nothrow_t, (size_t size, const void *nothrow), size, nothrow)
NEW(_ZnwmSt11align_val_t, (size_t size, size_t alignment), size, alignment)
NEW(_ZnamSt11align_val_t, (size_t size, size_t alignment), size, alignment)
NEW(_ZnwmSt11align_val_tRKSt9nothrow_t, (size_t size, size_t alignment, const void *nothrow), size, alignment,
    nothrow)
NEW(_ZnamSt11align_val_tRKSt9nothrow_t, (size_t size, size_t alignment, const void *nothrow), size, alignment,
    nothrow)

DELETE(_ZdlPv, (void *object), object)
DELETE(_ZdaPv, (void *object), object)
DELETE(_ZdlPvm, (void *object, size_t size), object, size)
DELETE(_ZdaPvm, (void *object, size_t size), object, size)
DELETE(_ZdlPvRKSt9nothrow_t, (void *object, const void *nothrow), object, nothrow)
DELETE(_ZdaPvRKSt9nothrow_t, (void *object, const void *nothrow), object, nothrow)
DELETE(_ZdlPvSt11align_val_t, (void *object, size_t alignment), object, alignment)
DELETE(_ZdaPvSt11align_val_t, (void *object, size_t alignment), object, alignment)
DELETE(_ZdlPvmSt11align_val_t, (void *object, size_t size, size_t alignment), object, size, alignment)
DELETE(_ZdaPvmSt11align_val_t, (void *object, size_t size, size_t alignment), object, size, alignment)
DELETE(_ZdlPvSt11align_val_tRKSt9nothrow_t, (void *object, size_t alignment, const void *nothrow), object,
       alignment, nothrow)
DELETE(_ZdaPvSt11align_val_tRKSt9nothrow_t, (void *object, size_t alignment, const void *nothrow), object,
       alignment, nothrow)
