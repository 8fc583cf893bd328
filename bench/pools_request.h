/* SPDX-License-Identifier: Apache-2.0 */
/* pools_request.h: the ordinary request of a server, compiled for each pool (pools.h). Many connections are
 * alive, a pool each; they have requests in turn, each a child, which ends before the next one begins.
 *
 *     served N F   a request has N objects of 16 to 128 bytes. From half of them on it frees F others, one by
 *                  one, and makes another object for each. Who cannot free one leaves it
 *     resized      60 objects of 64 bytes, and a buffer that gets 40 bytes of each: it doubles from 512 bytes
 *                  by the pool's realloc
 *     copied       the same by a new object, a copy, and no free
 *     built        the same by the pool's builder, or else from 64 bytes on as resized, or as copied
 *     marked       50 objects, and ten times five more that go back to a mark, or in a child of the request
 *     limited      50 objects in a request that may have 1 MiB, which the pool sees to
 *     waited N     2000 connections, each with an object of 200 bytes and five requests of N objects, wait
 *
 * Each byte of an object is written, and read before it ends. An operation is a request; of waited, a
 * connection, of which it tells the bytes: growth of RSS (rss) and what the pool counts (held), when it has
 * begun (new_) and at the end (idle_).
 */
#ifndef POOLS_REQUEST_H
#define POOLS_REQUEST_H

#include "pools_memory.h"

/* clang-format off */
enum {
    CONNECTIONS = 200, WAITING = 2000, CONNECTION = 200 /* bytes */, SERVED = 3000000, SERVED_MOST = 256,
    PIECES = 60, PIECE = 40, BESIDE = 64, BUFFER_FIRST = 512, BUILT_FIRST = 64, BUFFERS = 50000,
    BEFORE_TRIES = 50, TRIES = 10, TRIED = 5, MARKED = 20000, LIMIT = 1024 * 1024, LIMITED = 50000
};
/* clang-format on */

static struct pool connections[WAITING], serving; /* zeros at first, for one that keeps a place there */
static unsigned place;                            /* among the sizes */

static inline void make_whole(struct pool *pool, struct used *used, size_t size)
{
    *used = (struct used){pool_get(pool, size), size};
    measure_need(used->object != NULL, "no memory");
    use_write_all(used->object, size);
}

static inline void make_some(struct pool *pool, struct used *objects, int n)
{
    for (int i = 0; i < n; i++) make_whole(pool, &objects[i], sizes[place++ % SIZES]);
}

static inline void read_some(const struct used *objects, int n)
{
    for (int i = 0; i < n; i++) use_read_all(objects[i].object, objects[i].size);
}

static void connect_all(int n)
{
    struct used used;
    pool_many(true);
    for (int i = 0; i < n; i++) {
        pool_child(&connections[i], &root, 1);
        make_whole(&connections[i], &used, CONNECTION);
    }
}

static inline __attribute__((always_inline)) uint64_t in_turn(int requests,
                                                              void (*serve)(struct pool *connection))
{
    requests = times(requests, CONNECTIONS);
    connect_all(CONNECTIONS);
    restart_clocks();
    for (int i = 0; i < requests; i++) {
        serve(&connections[i % CONNECTIONS]);
        pool_end(&serving);
    }
    return (uint64_t)requests;
}

/* --- objects, of which some are freed ---------------------------------------------------------- */

static inline void replace_one(struct used *used)
{
    read_some(used, 1);
#ifdef POOL_FREES
    pool_put(&serving, used->object, used->size);
#endif
    make_some(&serving, used, 1);
}

static inline void serve_objects(struct pool *connection)
{
    struct used objects[SERVED_MOST];
    int half = number / 2, freed = 0;
    pool_child(&serving, connection, number + number_2);
    make_some(&serving, objects, half);
    for (int i = half; i < number; i++) {
        for (int due = number_2 * (i - half + 1) / (number - half); freed < due; freed++)
            replace_one(&objects[freed * 7 % half]);
        make_some(&serving, &objects[i], 1);
    }
    read_some(objects, number);
}

static uint64_t served(void)
{
    measure_need(number >= 2 && number <= SERVED_MOST, "2 to 256 objects");
    return in_turn(SERVED / (number + number_2 + 10), serve_objects);
}

/* --- a buffer that grows ----------------------------------------------------------------------- */

struct buffer {
    char *bytes;
    size_t length, room;
};

static inline void copy_to(struct pool *pool, struct buffer *buffer, size_t room)
{
    char *bytes = pool_get(pool, room);
    measure_need(bytes != NULL, "no memory");
    if (buffer->length > 0) memcpy(bytes, buffer->bytes, buffer->length);
    *buffer = (struct buffer){bytes, buffer->length, room};
}

static inline void resize_to(struct pool *pool, struct buffer *buffer, size_t room)
{
#ifdef POOL_FREES
    if (buffer->room > 0) {
        buffer->bytes = pool_resize(pool, buffer->bytes, buffer->room, room);
        measure_need(buffer->bytes != NULL, "no memory");
        buffer->room = room;
        return;
    }
#endif
    copy_to(pool, buffer, room);
}

typedef void grow(struct pool *pool, struct buffer *buffer, size_t room);

static inline __attribute__((always_inline)) void append(struct buffer *buffer, size_t first,
                                                         const char *bytes, grow *to)
{
    if (buffer->length + PIECE > buffer->room)
        to(&serving, buffer, buffer->room > 0 ? 2 * buffer->room : first);
    memcpy(buffer->bytes + buffer->length, bytes, PIECE);
    buffer->length += PIECE;
}

#ifndef POOL_BUILDS
#define builder buffer
#define pool_append(pool, buffer, bytes, n) append(buffer, BUILT_FIRST, bytes, resize_to)
#define pool_built(pool, buffer) ((buffer)->bytes)
#endif

static inline __attribute__((always_inline)) void serve_buffer(struct pool *connection, grow *to)
{
    struct buffer buffer = {NULL, 0, 0};
    struct builder text = {0};
    struct used used;
    pool_child(&serving, connection, 2 * PIECES);
    for (int i = 0; i < PIECES; i++) {
        make_whole(&serving, &used, BESIDE);
        if (to)
            append(&buffer, BUFFER_FIRST, used.object, to);
        else
            pool_append(&serving, &text, used.object, PIECE);
    }
    use_read_all(to ? buffer.bytes : pool_built(&serving, &text), PIECES * PIECE);
}

#ifdef POOL_FREES
static inline void serve_resized(struct pool *connection) { serve_buffer(connection, resize_to); }
static uint64_t resized(void) { return in_turn(BUFFERS, serve_resized); }
#endif
static inline void serve_copied(struct pool *connection) { serve_buffer(connection, copy_to); }
static uint64_t copied(void) { return in_turn(BUFFERS, serve_copied); }
static inline void serve_built(struct pool *connection) { serve_buffer(connection, NULL); }
static uint64_t built(void) { return in_turn(BUFFERS, serve_built); }

/* --- marks and limits -------------------------------------------------------------------------- */

static inline void try_some(void)
{
    struct used objects[TRIED];
#ifdef POOL_STACKS
    struct pool *tried = &serving;
    struct mark mark;
    pool_mark(tried, &mark);
#else
    static struct pool below, *tried = &below;
    pool_child(tried, &serving, TRIED);
#endif
    make_some(tried, objects, TRIED);
    read_some(objects, TRIED);
#ifdef POOL_STACKS
    pool_release(tried, &mark);
#else
    pool_end(tried);
#endif
}

static inline void serve_marked(struct pool *connection)
{
    struct used objects[BEFORE_TRIES];
    pool_child(&serving, connection, BEFORE_TRIES);
    make_some(&serving, objects, BEFORE_TRIES);
    for (int i = 0; i < TRIES; i++) try_some();
    read_some(objects, BEFORE_TRIES);
}

static uint64_t marked(void) { return in_turn(MARKED, serve_marked); }

#ifdef POOL_LIMITS
static inline void serve_limited(struct pool *connection)
{
    struct used objects[BEFORE_TRIES];
    pool_limited(&serving, connection, LIMIT);
    make_some(&serving, objects, BEFORE_TRIES);
    read_some(objects, BEFORE_TRIES);
}

static uint64_t limited(void) { return in_turn(LIMITED, serve_limited); }
#endif

/* --- connections that wait --------------------------------------------------------------------- */

static void tell_connections(const char *rss, const char *held, long before)
{
    tell(rss, (measure_resident() - before) * 1024 / WAITING);
#ifdef POOL_HELD
    tell(held, (long)(pool_held(&root) / WAITING));
#else
    (void)held;
#endif
}

static uint64_t waited(void)
{
    warm_up();
    long before = measure_resident();
    connect_all(WAITING);
    tell_connections("new_rss", "new_held", before);
    for (int i = 0; i < 5 * WAITING; i++) {
        serve_objects(&connections[i % WAITING]);
        pool_end(&serving);
    }
    tell_connections("idle_rss", "idle_held", before);
    return WAITING;
}

#endif
