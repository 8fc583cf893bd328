/* SPDX-License-Identifier: Apache-2.0 */
#include "script_memory.h"

#define REAP_APR_OPTIONAL /* the module runs on stock pools too */
#include "apr_reap.h"

#include <string.h>

enum { BETWEEN_LOOKS = 1 << 20 }; /* bytes */

bool script_memory_pools_free(void) { return apr_pfree && apr_prealloc; }

void script_memory_init(struct script_memory *memory, apr_pool_t *pool, bool may_free, size_t limit)
{
    *memory =
        (struct script_memory){.pool = pool, .frees = may_free && script_memory_pools_free(), .limit = limit};
}

/* A new object, or the same one with another size, of the pool without its abort function: httpd's ends the
 * process when a pool is exhausted; a script gets an error instead. */
static void *take(apr_pool_t *pool, void *object, size_t size)
{
    apr_abortfunc_t abort_function = apr_pool_abort_get(pool);
    apr_pool_abort_set(NULL, pool);
    void *taken = object ? apr_prealloc(pool, object, size) : apr_palloc(pool, size);
    apr_pool_abort_set(abort_function, pool);
    return taken;
}

static bool within_limit(struct script_memory *memory, size_t more)
{
    if (memory->limit == 0 || more <= memory->limit - memory->held) return true;
    memory->refused = true;
    return false;
}

static bool is_short(const struct script_memory *memory)
{
    return memory->limit != 0 && memory->held > memory->limit - memory->limit / 16;
}

static void account(struct script_memory *memory, size_t taken, size_t given_back)
{
    memory->held += taken - given_back;
    memory->taken += taken;
    if (memory->held > memory->peak) memory->peak = memory->held;
    bool presses = is_short(memory) && !memory->pressed;
    if (memory->taken < BETWEEN_LOOKS && !presses) return;
    memory->taken = 0;
    memory->pressed |= presses;
    script_limits_hurry(memory->limits);
}

void script_memory_look(lua_State *L, struct script_memory *memory)
{
    if (!memory->pressed) return;
    memory->pressed = false;
    if (memory->frees) lua_gc(L, LUA_GCCOLLECT, 0);
    if (!is_short(memory)) return;
    memory->refused = true;
    lua_pushliteral(L, "not enough memory");
    lua_error(L);
}

static void *allocate(struct script_memory *memory, size_t size)
{
    if (!within_limit(memory, size)) return NULL;
    void *object = take(memory->pool, NULL, size);
    if (object) account(memory, size, 0);
    return object;
}

static void release(struct script_memory *memory, void *object, size_t size)
{
    if (!memory->frees || !object) return;
    apr_pfree(memory->pool, object);
    account(memory, 0, size);
}

/* Lua relies on it that shrinking never fails. */
static void *shrink(struct script_memory *memory, void *object, size_t old_size, size_t new_size)
{
    if (!memory->frees) return object;
    void *resized = take(memory->pool, object, new_size);
    account(memory, new_size, old_size);
    return resized ? resized : object;
}

static void *grow(struct script_memory *memory, void *object, size_t old_size, size_t new_size)
{
    if (!memory->frees) {
        void *place = allocate(memory, new_size);
        return place ? memcpy(place, object, old_size) : NULL;
    }
    if (!within_limit(memory, new_size - old_size)) return NULL;
    void *resized = take(memory->pool, object, new_size);
    if (resized) account(memory, new_size, old_size);
    return resized;
}

void *script_memory_allocate(void *self, void *object, size_t old_size, size_t new_size)
{
    struct script_memory *memory = self;
    if (new_size == 0) {
        release(memory, object, old_size);
        return NULL;
    }
    if (!object) return allocate(memory, new_size); /* old_size is a type here, not a size */
    if (new_size <= old_size) return shrink(memory, object, old_size, new_size);
    return grow(memory, object, old_size, new_size);
}

char *script_memory_strdup(struct script_memory *memory, const char *string)
{
    size_t size = strlen(string) + 1;
    char *copy = allocate(memory, size);
    return copy ? memcpy(copy, string, size) : NULL;
}
