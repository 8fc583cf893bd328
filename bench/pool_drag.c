/* SPDX-License-Identifier: Apache-2.0 */
/* pools.h on regions that note when each object was used last, for what Berger calls drag (thesis 2002, 5.3.1
 * and 5.4.3): memory that regions hold, over what would be held if each object ended after its last use. He
 * had the binary instrumented; here the compiler does it: this file is compiled with -fsanitize=thread, which
 * puts a call at each read and write of memory, and is not linked with its library: the calls are below.
 *
 *     number      when it was allocated; time is the number of objects that were allocated by then
 *     size[], last[], ended[]     by number
 *     owner[]                     by 16 bytes of memory, the number of the object that is there, and 1
 *
 * No memory is used twice, so an address has one owner. What libc's functions read is not seen, but for
 * memcmp, which is one of our own here. Told are, summed up over all allocations and weighted by their
 * bytes, how much regions held and how much was needed; and the most of both.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define UNSEEN __attribute__((no_sanitize_thread))

enum { DRAG_UNIT = 16, DRAG_OBJECTS = 1 << 24 };
static const size_t DRAG_BYTES = (size_t)1 << 30;

static char *drag_memory, *drag_bump;
static uint32_t *drag_owner, *drag_size, *drag_last, *drag_ended, drag_n;

static UNSEEN void *drag_table(size_t bytes)
{
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void *table = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (table == MAP_FAILED) abort();
    return table;
}

static UNSEEN __attribute__((constructor)) void drag_begin(void)
{
    drag_memory = drag_bump = drag_table(DRAG_BYTES);
    drag_owner = drag_table(DRAG_BYTES / DRAG_UNIT * sizeof *drag_owner);
    drag_size = drag_table(DRAG_OBJECTS * sizeof *drag_size);
    drag_last = drag_table(DRAG_OBJECTS * sizeof *drag_last);
    drag_ended = drag_table(DRAG_OBJECTS * sizeof *drag_ended);
}

/* --- what the compiler calls --------------------------------------------------------------------- */

static inline UNSEEN void drag_use(const void *address)
{
    size_t at = (size_t)((const char *)address - drag_memory);
    if (at < DRAG_BYTES && drag_owner[at / DRAG_UNIT]) drag_last[drag_owner[at / DRAG_UNIT] - 1] = drag_n;
}

/* Under a name of ours, for the compiler has types of its own for theirs. */
/* clang-format off */
#define CALLED(type, name, parameters)                         \
    type drag_##name parameters __asm__("__tsan_" #name);      \
    UNSEEN type drag_##name parameters

CALLED(void, init, (void)) {}
CALLED(void, func_entry, (void *caller)) { (void)caller; }
CALLED(void, func_exit, (void)) {}

#define USED(name) \
    CALLED(void, name, (void *address)) { drag_use(address); }
#define USED_BOTH(size) USED(read##size) USED(write##size)
#define USED_UNALIGNED(size) USED(unaligned_read##size) USED(unaligned_write##size)
USED_BOTH(1) USED_BOTH(2) USED_BOTH(4) USED_BOTH(8) USED_BOTH(16)
USED_UNALIGNED(2) USED_UNALIGNED(4) USED_UNALIGNED(8) USED_UNALIGNED(16)
CALLED(void, read_range, (void *address, long n)) { (void)n, drag_use(address); }
CALLED(void, write_range, (void *address, long n)) { (void)n, drag_use(address); }

/* clang's, since its release 15: a unit at a time. */
static UNSEEN void *drag_range(void *address, size_t n)
{
    for (size_t at = 0; at < n; at += DRAG_UNIT) drag_use((char *)address + at);
    return address;
}
CALLED(void *, memset, (void *to, int byte, size_t n))
{
    return memset(drag_range(to, n), byte, n);
}
CALLED(void *, memcpy, (void *to, void *from, size_t n))
{
    return memcpy(drag_range(to, n), drag_range(from, n), n);
}
CALLED(void *, memmove, (void *to, void *from, size_t n))
{
    return memmove(drag_range(to, n), drag_range(from, n), n);
}

/* Of pools.h's atomic variables, which nobody else uses: there is one thread. */
#define ATOMIC(bits, type)                                                                  \
    CALLED(type, atomic##bits##_load, (const type *at, int order)) { return (void)order, *at; } \
    CALLED(void, atomic##bits##_store, (type *at, type value, int order)) { (void)order, *at = value; } \
    CALLED(type, atomic##bits##_fetch_add, (type *at, type more, int order))                \
    {                                                                                       \
        (void)order;                                                                        \
        return (*at += more) - more;                                                        \
    }
ATOMIC(32, uint32_t)
ATOMIC(64, uint64_t)
/* clang-format on */

static inline int drag_memcmp(const void *a, const void *b, size_t n)
{
    for (const unsigned char *x = a, *y = b; n > 0; n--, x++, y++)
        if (*x != *y) return *x - *y;
    return 0;
}
#define memcmp drag_memcmp

/* --- pools ------------------------------------------------------------------------------------- */

struct pool {
    uint32_t *objects; /* their numbers */
    size_t n, room;
};

static inline UNSEEN void pool_begin(struct pool *root) { *root = (struct pool){NULL, 0, 0}; }

static inline void pool_child(struct pool *child, struct pool *parent, int objects)
{
    (void)parent, (void)objects;
    pool_begin(child);
}

static UNSEEN void *drag_new(size_t size)
{
    char *object = drag_bump;
    uint32_t *owner = &drag_owner[(size_t)(object - drag_memory) / DRAG_UNIT];
    size_t units = (size + DRAG_UNIT - 1) / DRAG_UNIT;
    drag_bump += units * DRAG_UNIT;
    if (drag_bump > drag_memory + DRAG_BYTES || drag_n == DRAG_OBJECTS) abort();
    drag_size[drag_n] = (uint32_t)size;
    for (size_t i = 0; i < units; i++) owner[i] = drag_n + 1;
    drag_n++;
    drag_last[drag_n - 1] = drag_n;
    return object;
}

static UNSEEN void drag_end(uint32_t number) { drag_ended[number] = drag_n; }

static UNSEEN void *pool_get(struct pool *pool, size_t size)
{
    if (pool->n == pool->room) {
        pool->room = pool->room > 0 ? 2 * pool->room : 16;
        pool->objects = realloc(pool->objects, pool->room * sizeof *pool->objects);
        if (!pool->objects) abort();
    }
    pool->objects[pool->n++] = drag_n;
    return drag_new(size);
}

static inline UNSEEN void pool_cut(struct pool *pool, size_t n)
{
    while (pool->n > n) drag_end(pool->objects[--pool->n]);
}

static inline void pool_clear(struct pool *pool) { pool_cut(pool, 0); }

static inline UNSEEN void pool_end(struct pool *pool)
{
    pool_clear(pool);
    free(pool->objects);
}

#define POOL_ONCE
#define POOL_STACKS
struct mark {
    size_t n;
};
static inline UNSEEN void pool_mark(struct pool *pool, struct mark *mark) { mark->n = pool->n; }
static inline UNSEEN void pool_release(struct pool *pool, struct mark *mark) { pool_cut(pool, mark->n); }
static inline UNSEEN void pool_put_last(struct pool *pool, void *object)
{
    (void)object;
    pool_cut(pool, pool->n - 1);
}
static inline UNSEEN void *pool_resize_last(struct pool *pool, void *object, size_t old, size_t size)
{
    void *longer = memcpy(drag_new(size), object, old);
    drag_end(pool->objects[pool->n - 1]);
    pool->objects[pool->n - 1] = drag_n - 1;
    return longer;
}

#define POOL_PLAIN
static inline UNSEEN void *pool_new(struct pool *pool, size_t size)
{
    (void)pool;
    return drag_new(size);
}
static inline UNSEEN void pool_delete(struct pool *pool, void *object, size_t size)
{
    (void)pool, (void)size;
    drag_end(drag_owner[(size_t)((char *)object - drag_memory) / DRAG_UNIT] - 1);
}

/* --- what it was ----------------------------------------------------------------------------- */

static UNSEEN __attribute__((destructor)) void drag_tell(void)
{
    size_t bytes = (drag_n + 1) * sizeof(int64_t);
    int64_t *held = drag_table(bytes), *needed = drag_table(bytes);
    int64_t now_held = 0, now_needed = 0, most_held = 0, most_needed = 0, area_held = 0, area_needed = 0;
    for (uint32_t i = 0; i < drag_n; i++) {
        held[i] += drag_size[i];
        needed[i] += drag_size[i];
        held[drag_ended[i] > 0 ? drag_ended[i] : drag_n] -= drag_size[i];
        needed[drag_last[i]] -= drag_size[i];
    }
    for (uint32_t i = 0; i < drag_n; i++) {
        now_held += held[i];
        now_needed += needed[i];
        if (most_held < now_held) most_held = now_held;
        if (most_needed < now_needed) most_needed = now_needed;
        area_held += now_held * drag_size[i];
        area_needed += now_needed * drag_size[i];
    }
    printf("area_held=%lld\narea_needed=%lld\n", (long long)area_held, (long long)area_needed);
    printf("most_held=%lld\nmost_needed=%lld\n", (long long)most_held, (long long)most_needed);
}

#include "pools_run.h"
