/* pools.h on malloc and free alone: a doubly linked list of the objects, freed one by one. */
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

static inline void pool_child(struct pool *child, struct pool *parent)
{
    (void)parent;
    pool_begin(child);
}

static inline void *pool_get(struct pool *pool, size_t size)
{
    struct link *object = malloc(sizeof *object + size);
    if (!object) return NULL;
    object->next = pool->objects.next;
    object->previous = &pool->objects;
    object->next->previous = object;
    pool->objects.next = object;
    return object + 1;
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

#define POOL_FREES
static inline void pool_put(struct pool *pool, void *object_)
{
    (void)pool;
    struct link *object = (struct link *)object_ - 1;
    object->next->previous = object->previous;
    object->previous->next = object->next;
    free(object);
}

#include "pools.h"
