/* SPDX-License-Identifier: Apache-2.0 */
/* reap_hooks.h: the way up from free() to a reap's own free.
 *
 * Reaps are layers above the allocator, but free() may get a reap's object. So the reap layer registers the
 * functions for such objects.
 */
#ifndef REAP_HOOKS_H
#define REAP_HOOKS_H

#include <stddef.h>

/* hoard's calls for a block that lies in a chunk: free() and realloc() of a reap's object, from any thread,
 * under libreap-malloc. The reap layer sets them once, before it hands out its first chunk. `call` is the
 * public name of the caller, for messages. free_object keeps errno. fork_prepare runs before fork takes the
 * backend's locks, the other two after it gave them back. */
struct reap_hooks {
    void (*free_object)(void *chunk, void *object, const char *call);
    void *(*realloc_object)(void *chunk, void *object, size_t size, const char *call);
    size_t (*usable_size)(void *chunk, const void *object, const char *call);
    void *(*alloc)(void *reap, size_t alignment, size_t size); /* for the thread that has entered the reap */
    void (*trim)(void);      /* gives back what is kept for reaps to come; */
    void (*give_idle)(void); /* of it, what was not used since the last call */
    size_t (*kept)(void);    /* bytes */
    void (*fork_prepare)(void);
    void (*fork_parent)(void);
    void (*fork_child)(void);
    void (*take_along)(void); /* in a forked child: gives the reaps that this thread is in its generation */
};
void reap_hooks_set(const struct reap_hooks *client);
extern const struct reap_hooks *reap_hooks;

/* For a thread that may run while the program makes its first reap. NULL: there is none yet. */
static inline const struct reap_hooks *reap_hooks_now(void)
{
    return __atomic_load_n(&reap_hooks, __ATOMIC_ACQUIRE);
}

/* Has the reap layer give back what it keeps for reaps to come. */
static inline void hoard_give_kept_reaps(void)
{
    if (reap_hooks_now() != NULL) reap_hooks_now()->trim();
}

#endif
