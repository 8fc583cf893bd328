/* SPDX-License-Identifier: Apache-2.0 */
/* reap_hooks.h: the way up from free() to a reap's own free.
 *
 * Reaps are layers above the allocator, and free() may be given one of their objects; so the reap
 * layer registers what is then to be done.
 */
#ifndef REAP_HOOKS_H
#define REAP_HOOKS_H

#include <stddef.h>

/* What hoard does with a block that turns out to lie in a chunk: free() and realloc() of a reap's
 * object, from any thread, under libreap-malloc. Set once, by the reap layer, before its first
 * chunk is handed out. `call` is the public name of the caller, for messages. free_object leaves errno as it
 * is. What is done around fork is done before locks of the backend are taken, and after they are given
 * back. */
struct reap_hooks {
    void (*free_object)(void *chunk, void *object, const char *call);
    void *(*realloc_object)(void *chunk, void *object, size_t size, const char *call);
    size_t (*usable_size)(void *chunk, const void *object, const char *call);
    void *(*alloc)(void *reap, size_t alignment, size_t size); /* for the thread that has entered the reap */
    void (*fork_prepare)(void);
    void (*fork_parent)(void);
    void (*fork_child)(void);
};
void reap_hooks_set(const struct reap_hooks *client);
extern const struct reap_hooks *reap_hooks;

#endif
