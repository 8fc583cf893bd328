/* SPDX-License-Identifier: Apache-2.0 */
/* pools.h on malloc and free alone: a doubly linked list of the objects, freed one by one. Where two
 * threads use it, the one frees what the other took off the list when it sent it. */
#include <pthread.h>
#include <stdlib.h>

struct link {
    struct link *next, *previous;
};

struct pool {
    struct link objects; /* the list's head, circular */
};

static inline void pool_begin(struct pool *root)
{
    root->objects.next = root->objects.previous = &root->objects;
}

static inline void pool_child(struct pool *child, struct pool *parent, int objects)
{
    (void)parent, (void)objects;
    pool_begin(child);
}

static inline void *link_in(struct pool *pool, struct link *object)
{
    if (!object) return NULL;
    object->next = pool->objects.next;
    object->previous = &pool->objects;
    object->next->previous = object;
    pool->objects.next = object;
    return object + 1;
}

static inline void *pool_get(struct pool *pool, size_t size)
{
    return link_in(pool, malloc(sizeof(struct link) + size));
}

static inline void pool_clear(struct pool *pool)
{
    for (struct link *object = pool->objects.next, *next; object != &pool->objects; object = next) {
        next = object->next;
        free(object);
    }
    pool_begin(pool);
}

static inline void pool_end(struct pool *pool) { pool_clear(pool); }

static inline struct link *link_out(void *object_)
{
    struct link *object = (struct link *)object_ - 1;
    object->next->previous = object->previous;
    object->previous->next = object->next;
    return object;
}

#define POOL_FREES
static inline void pool_put(struct pool *pool, void *object, size_t size)
{
    (void)pool, (void)size;
    free(link_out(object));
}

static inline void *pool_resize(struct pool *pool, void *object, size_t old, size_t size)
{
    (void)old;
    return link_in(pool, realloc(link_out(object), sizeof(struct link) + size));
}

#define POOL_FREES_ELSEWHERE
static inline void pool_send(struct pool *pool, void *object)
{
    (void)pool;
    link_out(object);
}
static inline void pool_put_elsewhere(struct pool *pool, void *object)
{
    (void)pool;
    free((struct link *)object - 1);
}

/* The list has a lock. */
#define POOL_SHARES
static pthread_mutex_t pool_lock = PTHREAD_MUTEX_INITIALIZER;
static inline void pool_shared(struct pool *child, struct pool *parent) { pool_child(child, parent, 0); }
static inline void *pool_get_shared(struct pool *pool, size_t size)
{
    struct link *object = malloc(sizeof *object + size);
    pthread_mutex_lock(&pool_lock);
    void *linked = link_in(pool, object);
    pthread_mutex_unlock(&pool_lock);
    return linked;
}

#define POOL_PASSES
static inline void pool_passed(struct pool *child, struct pool *parent) { pool_child(child, parent, 0); }
static inline void *pool_get_passed(struct pool *pool, size_t size) { return pool_get_shared(pool, size); }
static inline void pool_put_passed(struct pool *pool, void *object)
{
    (void)pool;
    pthread_mutex_lock(&pool_lock);
    struct link *link = link_out(object);
    pthread_mutex_unlock(&pool_lock);
    free(link);
}

#include "pools_run.h"
