/* memtool.h: telling Valgrind what is an object and what is not.   (floor 0)
 *
 * Memcheck knows malloc; of memory that an allocator carves up itself it has to be told. A pool is
 * known by an address, its objects by theirs: what is in no object must not be touched, what was
 * just allocated is undefined. Callers ask memtool_running() once, and make these calls only then:
 * they are a few instructions each even where no Valgrind runs. Without Valgrind's header when the
 * library is built they are empty, and memtool_running() is false.
 */
#ifndef MEMTOOL_H
#define MEMTOOL_H

#include <stdbool.h>
#include <stddef.h>

#if defined(__has_include)
#if __has_include(<valgrind/memcheck.h>)
#include <valgrind/memcheck.h>
#define MEMTOOL_VALGRIND 1
#endif
#endif

#ifdef MEMTOOL_VALGRIND

/* Memcheck answers such a request with something else than 0; other tools, callgrind for one, do not,
 * and are to see what runs without them. */
static inline bool memtool_running(void)
{
    char probe = 0;
    return VALGRIND_MAKE_MEM_DEFINED(&probe, sizeof probe) != 0;
}

static inline void memtool_pool_begin(void *pool) { VALGRIND_CREATE_MEMPOOL(pool, 0, 0); }

/* Ends a pool; what was in its objects must not be touched any more. */
static inline void memtool_pool_end(void *pool) { VALGRIND_DESTROY_MEMPOOL(pool); }

static inline void memtool_alloc(void *pool, void *object, size_t size, bool zeroed)
{
    VALGRIND_MEMPOOL_ALLOC(pool, object, size);
    if (zeroed) (void)VALGRIND_MAKE_MEM_DEFINED(object, size);
}

static inline void memtool_free(void *pool, void *object) { VALGRIND_MEMPOOL_FREE(pool, object); }

/* An object of size `from` has size `to` now, in the same place. */
static inline void memtool_resize(void *pool, void *object, size_t from, size_t to)
{
    VALGRIND_MEMPOOL_CHANGE(pool, object, object, to);
    if (to > from) (void)VALGRIND_MAKE_MEM_UNDEFINED((char *)object + from, to - from);
    if (to < from) (void)VALGRIND_MAKE_MEM_NOACCESS((char *)object + to, from - to);
}

/* Memory that nobody may touch; memory that its allocator uses. */
static inline void memtool_hide(void *at, size_t size) { (void)VALGRIND_MAKE_MEM_NOACCESS(at, size); }
static inline void memtool_show(void *at, size_t size) { (void)VALGRIND_MAKE_MEM_DEFINED(at, size); }

#else

static inline bool memtool_running(void) { return false; }
static inline void memtool_pool_begin(void *pool) { (void)pool; }
static inline void memtool_pool_end(void *pool) { (void)pool; }
static inline void memtool_alloc(void *pool, void *object, size_t size, bool zeroed)
{
    (void)pool, (void)object, (void)size, (void)zeroed;
}
static inline void memtool_free(void *pool, void *object) { (void)pool, (void)object; }
static inline void memtool_resize(void *pool, void *object, size_t size)
{
    (void)pool, (void)object, (void)size;
}
static inline void memtool_hide(void *at, size_t size) { (void)at, (void)size; }
static inline void memtool_show(void *at, size_t size) { (void)at, (void)size; }

#endif
#endif
