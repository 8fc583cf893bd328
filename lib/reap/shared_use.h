/* SPDX-License-Identifier: Apache-2.0 */
/* shared_use.h: objects of shared reaps.
 *
 * A call that makes an object enters the part (shard) of this thread's id; a call that frees or resizes an
 * object enters the part that has the object (reap_shared.h). In the part the call does the same as in an
 * ordinary reap, with the same checks.
 *
 * Threads: any, while the reap lives.
 */
#ifndef SHARED_USE_H
#define SHARED_USE_H

#include "reap/reap_shared.h"

/* What a call uses: an ordinary reap, the reap of an entered part, or of a part of a taken reap. */
struct reap_use {
    struct reap *reap;
    struct reap_part *part; /* that the thread has entered; or NULL */
};

/* Stands before the variable of a reap_use. Where the variable's scope ends, its use ends. */
#define USED __attribute__((cleanup(reap_use_end), unused))

static inline void reap_use_end(struct reap_use *use)
{
    if (use->part)
        reap_part_leave(use->part);
    else
        reap_let_go(&use->reap);
}

/* Begins to use a part in which this thread may make objects. */
struct reap_use reap_use_face(struct reap_face *face);

/* Begins to use the part of a shared reap that has an object. Aborts when it is none of the reap's. */
struct reap_use reap_use_object(struct reap_face *face, const void *object, const char *call);

/* Checks the handle that `call` was given, and begins to use its reap for a new object. */
static inline struct reap_use reap_use(void **handle, const char *call)
{
    REAP_NOT_NULL(handle, call);
    struct reap *reap = *handle;
    if (LIKELY(handle_is_plain(reap))) return (struct reap_use){reap, NULL};
    return reap_use_face(handle_face(reap, call));
}

/* After a failed allocation: returns true if a limit may have refused it that other parts have drawn on, or
 * whose function has yet to be called. Then the thread has taken the reap, and uses the reap itself. */
bool reap_use_whole(struct reap_use *use);

/* An object of size bytes at an alignment, a power of two. NULL: no memory. */
void *reap_use_malloc(struct reap_use *use, size_t alignment, size_t size);

/* reapMalloc and reapFree of a shared reap, whose handle was read before. They abort on misuse. */
void *shared_malloc(void *handle, size_t size);
void shared_free(void *handle, void *object);

/* The same for other calls, and any handles. */
void *shared_malloc_any(void *handle, size_t size, const char *call);
void shared_free_any(void *handle, void *object, const char *call);

/* Resizes an object of a shared reap. NULL: no memory, and it stays as it was. */
void *shared_realloc(struct reap_face *face, void *object, size_t size, const char *call);

#endif
