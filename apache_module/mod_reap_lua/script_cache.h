/* SPDX-License-Identifier: Apache-2.0 */
/* script_cache: scripts as byte code, one cache for each process, so that a request does not compile them.
 *
 * A script is known by its file's name, and valid while device, inode, size and times are its file's. A file
 * that changed less than two seconds ago may change again within one tick of its file system's clock: each
 * request compiles it. The longest unused scripts go when the cache is full. Only what this process compiled
 * from text gets in: byte code can crash Lua. Scripts that do not compile are remembered with their message,
 * which is logged once.
 *
 * The memory is malloc's: a pool would keep what the cache gives up. Any thread, at any time: a lock is held
 * for a search and for a change, not while Lua reads.
 */
#ifndef SCRIPT_CACHE_H
#define SCRIPT_CACHE_H

#include <apr_file_info.h>
#include <lua.h>
#include <stdbool.h>
#include <stddef.h>

/* Once in each process, before other calls; size: the most bytes that the cache may hold; 0: nothing. */
void script_cache_init(size_t size);

/* Pushes the function of a cached script, and returns true. If there is none, or no memory for it, pushes
 * nothing. */
bool script_cache_load(lua_State *L, const char *name, const apr_finfo_t *file);

/* Keeps the function on top of the stack, which was compiled from this file after file was read. */
void script_cache_store(lua_State *L, const char *name, const apr_finfo_t *file);

/* Whether this message about this file is new; and remembers it. */
bool script_cache_is_news(const char *name, const apr_finfo_t *file, const char *message);

#endif
