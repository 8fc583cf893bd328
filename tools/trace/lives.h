/* SPDX-License-Identifier: Apache-2.0 */
/* lives.h: which objects live, by a trace's events: what an address is, and what ends with a pool.
 *
 *     object   begins by malloc or in a pool, may change its size and place, ends by a free or with its pool;
 *              if no event has told so, when another object begins at its place
 *     pool     has objects and children, which end with it; begins by an event, or by its first object
 *
 * Invariant: an address has one object at most, and a pool's list has its live objects, newest first.
 */
#ifndef LIVES_H
#define LIVES_H

#include "reader.h"

/* An object that lives, by its number in a table; a later object may get the same number. */
struct lives_object {
    uint64_t address, size;
    uint64_t born, born_bytes; /* time, and bytes that had been asked for until then, with its own */
    uint64_t serial;           /* 1 for the first object of the trace */
    uint32_t stack;
    uint32_t pool;         /* number, 0: none */
    uint32_t newer, older; /* in its pool, 0: none */
    uint32_t user;         /* of who is told, 0 at first */
};

enum lives_change {
    LIVES_BORN,
    LIVES_RESIZED,
    LIVES_DIED,
    LIVES_POOL_BORN,
    LIVES_POOL_DIED,
    LIVES_POOL_CLEARED
};

/* Is told of each change, when an object's size is the new one, and `was` the one before; number is the
 * object's, or the pool's, and then `was` its parent's. */
typedef void lives_told(enum lives_change change, uint32_t number, uint64_t was,
                        const struct reader_event *event, void *arg);

struct lives {
    lives_told *told;
    void *arg;
    uint64_t bytes, objects; /* alive */
    uint64_t asked, serial;  /* bytes and objects so far */
    uint64_t pools_begun;
    uint64_t unknown,
        covered; /* frees of what never began; objects that ended by another one at their place */
    bool no_memory, has_endings; /* has_endings: the trace has TRACE_POOL_ENDING */
    struct lives_object *table;  /* from 1 on */
    struct lives_pool *pools;    /* from 1 on */
    uint32_t n, room, free, n_pools, room_pools, free_pool;
    struct lives_map *at, *pool_at;
    struct {
        uint64_t serial;
        uint32_t number;   /* 0: none */
    } lifted[TRACE_SLOTS]; /* the object that a slot's realloc moves */
};

/* False: no memory. */
bool lives_begin(struct lives *lives, lives_told *told, void *arg);
void lives_take(struct lives *lives, const struct reader_event *event);
void lives_end(struct lives *lives);

/* The number of the object that begins at this address; 0: none. */
uint32_t lives_find(const struct lives *lives, uint64_t address);

/* The address of a pool, by its number. */
uint64_t lives_pool_address(const struct lives *lives, uint32_t pool);

#endif
