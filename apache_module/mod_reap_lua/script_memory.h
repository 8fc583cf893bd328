/* SPDX-License-Identifier: Apache-2.0 */
/* script_memory: the memory of one Lua state, taken from the request's pool.
 *
 * Where pools can free single objects (apr_pfree, when libreap-apr is preloaded) the garbage goes back at
 * once. Elsewhere, or when told so, nothing goes back, and an object that grows leaves its old place behind.
 *
 * A script that comes within a sixteenth of its limit, and does so after a collection too, gets an error at
 * its next instruction, which has a place and a traceback; Lua's own, for one object beyond the limit, has
 * neither.
 *
 * Invariants: held = bytes taken - bytes given back, as Lua asked for them; held <= peak; limit == 0 or
 * peak <= limit. Threads: as for the pool, one at a time.
 */
#ifndef SCRIPT_MEMORY_H
#define SCRIPT_MEMORY_H

#include "script_limits.h"

#include <apr_pools.h>
#include <stddef.h>

struct script_memory {
    apr_pool_t *pool;
    bool frees;   /* objects are given back one by one */
    bool refused; /* the limit has been met at least once */
    bool pressed; /* a sixteenth is left, and the script will look at its next instruction */
    size_t taken; /* bytes since the script was told to look */
    struct script_limits *limits;
    size_t limit; /* on held; 0: none */
    size_t held;
    size_t peak; /* the most that held has been */
};

/* Whether this process's pools can free single objects. */
bool script_memory_pools_free(void);

/* may_free: free single objects where the pools can. */
void script_memory_init(struct script_memory *memory, apr_pool_t *pool, bool may_free, size_t limit);

/* Between two instructions: collects garbage where that helps, and raises the error of the limit. */
void script_memory_look(lua_State *L, struct script_memory *memory);

/* A lua_Alloc; self is the struct script_memory. NULL past the limit and on exhaustion; the pool's
 * abort function, which in httpd ends the process, is not called. */
void *script_memory_allocate(void *self, void *object, size_t old_size, size_t new_size);

/* A copy of a string that lives as long as the request, counted as held; NULL as above. */
char *script_memory_strdup(struct script_memory *memory, const char *string);

#endif
