/* SPDX-License-Identifier: Apache-2.0 */
#include "lives.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST = 1024, MARKS = 64 };

/* Numbers by addresses: open addressing, half full at most; an entry whose number is 0 is free. */
struct lives_map {
    uint64_t *keys;
    uint32_t *values;
    uint32_t size, used; /* size: a power of two */
};

/* Marks that are open, oldest first: their numbers, and the serial of the newest object then. */
struct lives_pool {
    uint64_t address;
    uint32_t newest, parent, child, sibling, previous; /* 0: none */
    uint32_t n_marks;
    uint32_t ending; /* the slot of who is ending it; 0, which is no thread's: nobody */
    struct mark {
        uint64_t number, serial, pools;
    } * marks;
    uint64_t serial; /* pools: how many had begun before */
};

/* --- maps ------------------------------------------------------------------------------------------- */

static struct lives_map *map_new(uint32_t size)
{
    struct lives_map *map = calloc(1, sizeof *map);
    if (!map) return NULL;
    *map = (struct lives_map){calloc(size, sizeof *map->keys), calloc(size, sizeof *map->values), size, 0};
    if (map->keys && map->values) return map;
    free(map->keys), free(map->values), free(map);
    return NULL;
}

static void map_free(struct lives_map *map)
{
    if (map) free(map->keys), free(map->values);
    free(map);
}

static uint32_t map_home(const struct lives_map *map, uint64_t key)
{
    return (uint32_t)((key * 0x9e3779b97f4a7c15u) >> 32) & (map->size - 1);
}

static uint32_t map_find(const struct lives_map *map, uint64_t key)
{
    uint32_t i = map_home(map, key);
    while (map->values[i] != 0 && map->keys[i] != key) i = (i + 1) & (map->size - 1);
    return i;
}

static bool map_put(struct lives_map **at, uint64_t key, uint32_t value)
{
    struct lives_map *map = *at;
    if (map->used >= map->size / 2) {
        struct lives_map *larger = map->size < 1u << 30 ? map_new(map->size * 2) : NULL;
        if (!larger) return false;
        for (uint32_t i = 0; i < map->size; i++)
            if (map->values[i] != 0) map_put(&larger, map->keys[i], map->values[i]);
        map_free(map);
        *at = map = larger;
    }
    uint32_t i = map_find(map, key);
    map->used += map->values[i] == 0;
    map->keys[i] = key;
    map->values[i] = value;
    return true;
}

/* Entries behind it move up, so that each is found from its home on. */
static void map_drop(struct lives_map *map, uint64_t key)
{
    uint32_t hole = map_find(map, key), mask = map->size - 1;
    if (map->values[hole] == 0) return;
    for (uint32_t i = (hole + 1) & mask; map->values[i] != 0; i = (i + 1) & mask) {
        if (((i - map_home(map, map->keys[i])) & mask) < ((i - hole) & mask)) continue;
        map->keys[hole] = map->keys[i];
        map->values[hole] = map->values[i];
        hole = i;
    }
    map->values[hole] = 0;
    map->used--;
}

/* --- tables ------------------------------------------------------------------------------------------ */

/* A number that is free; 0: no memory. The free ones are linked by `next`. */
static bool room_for(void *table_, uint32_t *room, uint32_t n, size_t size)
{
    void **table = table_;
    if (n < *room) return true;
    uint32_t more = *room > 0 ? *room * 2 : FIRST;
    void *grown = more > n ? realloc(*table, more * size) : NULL;
    if (!grown) return false;
    *table = grown;
    *room = more;
    return true;
}

static uint32_t new_object(struct lives *lives)
{
    uint32_t number = lives->free;
    if (number > 0)
        lives->free = lives->table[number].older;
    else if (room_for(&lives->table, &lives->room, lives->n, sizeof *lives->table))
        number = lives->n++;
    lives->no_memory |= number == 0;
    return number;
}

static uint32_t new_pool(struct lives *lives)
{
    uint32_t number = lives->free_pool;
    if (number > 0)
        lives->free_pool = lives->pools[number].sibling;
    else if (room_for(&lives->pools, &lives->room_pools, lives->n_pools, sizeof *lives->pools))
        number = lives->n_pools++;
    lives->no_memory |= number == 0;
    return number;
}

bool lives_begin(struct lives *lives, lives_told *told, void *arg)
{
    *lives = (struct lives){.told = told, .arg = arg, .n = 1, .n_pools = 1};
    lives->at = map_new(FIRST);
    lives->pool_at = map_new(FIRST);
    return lives->at && lives->pool_at && room_for(&lives->table, &lives->room, 0, sizeof *lives->table) &&
           room_for(&lives->pools, &lives->room_pools, 0, sizeof *lives->pools);
}

void lives_end(struct lives *lives)
{
    for (uint32_t i = 1; i < lives->n_pools; i++) free(lives->pools[i].marks);
    map_free(lives->at);
    map_free(lives->pool_at);
    free(lives->table);
    free(lives->pools);
}

uint32_t lives_find(const struct lives *lives, uint64_t address)
{
    return lives->at->values[map_find(lives->at, address)];
}

uint64_t lives_pool_address(const struct lives *lives, uint32_t pool) { return lives->pools[pool].address; }

/* --- objects ----------------------------------------------------------------------------------------- */

static void link_object(struct lives *lives, uint32_t number)
{
    struct lives_object *object = &lives->table[number];
    uint32_t *newest = &lives->pools[object->pool].newest;
    object->newer = 0;
    object->older = *newest;
    if (object->older) lives->table[object->older].newer = number;
    *newest = number;
}

static void unlink_object(struct lives *lives, const struct lives_object *object)
{
    if (object->older) lives->table[object->older].newer = object->newer;
    if (object->newer)
        lives->table[object->newer].older = object->older;
    else
        lives->pools[object->pool].newest = object->older;
}

static void die(struct lives *lives, uint32_t number, const struct reader_event *event)
{
    struct lives_object *object = &lives->table[number];
    lives->bytes -= object->size;
    lives->objects--;
    lives->told(LIVES_DIED, number, object->size, event, lives->arg);
    object = &lives->table[number];
    if (lives_find(lives, object->address) == number) map_drop(lives->at, object->address);
    if (object->pool) unlink_object(lives, object);
    object->serial = 0;
    object->older = lives->free;
    lives->free = number;
}

/* What was at an address, and whose end no event has told. */
static void cover(struct lives *lives, const struct reader_event *event)
{
    uint32_t before = lives_find(lives, event->object);
    if (before == 0) return;
    lives->covered++;
    die(lives, before, event);
}

static void bear(struct lives *lives, const struct reader_event *event, uint32_t pool)
{
    cover(lives, event);
    uint32_t number = new_object(lives);
    if (number == 0 || !map_put(&lives->at, event->object, number)) {
        lives->no_memory = true;
        return;
    }
    lives->asked += event->size;
    lives->bytes += event->size;
    lives->objects++;
    lives->table[number] = (struct lives_object){.address = event->object,
                                                 .size = event->size,
                                                 .born = event->time,
                                                 .born_bytes = lives->asked,
                                                 .serial = ++lives->serial,
                                                 .stack = event->stack,
                                                 .pool = pool};
    if (pool) link_object(lives, number);
    lives->told(LIVES_BORN, number, 0, event, lives->arg);
}

static void resize(struct lives *lives, uint32_t number, const struct reader_event *event)
{
    struct lives_object *object = &lives->table[number];
    uint64_t was = object->size;
    lives->bytes += event->size - was;
    if (event->size > was) lives->asked += event->size - was;
    object->size = event->size;
    lives->told(LIVES_RESIZED, number, was, event, lives->arg);
}

static void land(struct lives *lives, const struct reader_event *event)
{
    uint32_t number = lives->lifted[event->slot].number;
    lives->lifted[event->slot].number = 0;
    if (number == 0 || lives->table[number].serial != lives->lifted[event->slot].serial) {
        bear(lives, event, 0);
        return;
    }
    if (lives_find(lives, lives->table[number].address) == number)
        map_drop(lives->at, lives->table[number].address);
    cover(lives, event);
    lives->table[number].address = event->object;
    lives->no_memory |= !map_put(&lives->at, event->object, number);
    resize(lives, number, event);
}

static void lift(struct lives *lives, const struct reader_event *event)
{
    uint32_t number = lives_find(lives, event->object);
    lives->unknown += number == 0;
    lives->lifted[event->slot].number = number;
    if (number == 0) return;
    lives->lifted[event->slot].serial = lives->table[number].serial;
    map_drop(lives->at, event->object);
}

/* --- pools ------------------------------------------------------------------------------------------- */

static uint32_t find_pool(const struct lives *lives, uint64_t address)
{
    return lives->pool_at->values[map_find(lives->pool_at, address)];
}

static void unlink_pool(struct lives *lives, uint32_t number)
{
    struct lives_pool *pool = &lives->pools[number];
    if (pool->sibling) lives->pools[pool->sibling].previous = pool->previous;
    if (pool->previous)
        lives->pools[pool->previous].sibling = pool->sibling;
    else if (pool->parent)
        lives->pools[pool->parent].child = pool->sibling;
    pool->parent = pool->sibling = pool->previous = 0;
}

static void link_pool(struct lives *lives, uint32_t number, uint32_t parent)
{
    struct lives_pool *pool = &lives->pools[number];
    pool->parent = parent;
    pool->previous = 0;
    pool->sibling = parent ? lives->pools[parent].child : 0;
    if (pool->sibling) lives->pools[pool->sibling].previous = number;
    if (parent) lives->pools[parent].child = number;
}

static void end_pool(struct lives *lives, uint32_t number, const struct reader_event *event);

/* What has begun in a pool after `serial`, and its children after `pools`. */
static void empty_pool(struct lives *lives, uint32_t number, uint64_t serial, uint64_t pools,
                       const struct reader_event *event)
{
    for (uint32_t child = lives->pools[number].child; child && lives->pools[child].serial >= pools;
         child = lives->pools[number].child)
        end_pool(lives, child, event);
    for (uint32_t object = lives->pools[number].newest; object && lives->table[object].serial > serial;
         object = lives->pools[number].newest)
        die(lives, object, event);
}

/* Iterates where pools are nested: a trace may have a chain of any length. */
static void end_pool(struct lives *lives, uint32_t number, const struct reader_event *event)
{
    for (uint32_t now = number;;) {
        while (lives->pools[now].child) now = lives->pools[now].child;
        uint32_t parent = lives->pools[now].parent;
        empty_pool(lives, now, 0, 0, event);
        lives->told(LIVES_POOL_DIED, now, parent, event, lives->arg);
        map_drop(lives->pool_at, lives->pools[now].address);
        unlink_pool(lives, now);
        free(lives->pools[now].marks);
        lives->pools[now] = (struct lives_pool){.sibling = lives->free_pool};
        lives->free_pool = now;
        if (now == number) return;
        now = parent;
    }
}

static uint32_t begin_pool(struct lives *lives, uint64_t address, uint32_t parent,
                           const struct reader_event *event)
{
    uint32_t number = new_pool(lives);
    if (number == 0 || !map_put(&lives->pool_at, address, number)) {
        lives->no_memory = true;
        return 0;
    }
    lives->pools[number] = (struct lives_pool){.address = address, .serial = lives->pools_begun++};
    link_pool(lives, number, parent);
    lives->told(LIVES_POOL_BORN, number, parent, event, lives->arg);
    return number;
}

static uint32_t need_pool(struct lives *lives, uint64_t address, const struct reader_event *event)
{
    uint32_t number = address ? find_pool(lives, address) : 0;
    return number || !address ? number : begin_pool(lives, address, 0, event);
}

static void open_mark(struct lives_pool *pool, uint64_t number, uint64_t serial, uint64_t pools)
{
    if (!pool->marks) pool->marks = calloc(MARKS, sizeof *pool->marks);
    if (!pool->marks) return;
    if (pool->n_marks == MARKS) memmove(pool->marks, pool->marks + 1, --pool->n_marks * sizeof *pool->marks);
    pool->marks[pool->n_marks++] = (struct mark){number, serial, pools};
}

static void rewind_pool(struct lives *lives, uint32_t number, const struct reader_event *event)
{
    struct lives_pool *pool = &lives->pools[number];
    for (uint32_t i = pool->n_marks; i-- > 0;) {
        if (pool->marks[i].number != event->size) continue;
        pool->n_marks = i + 1;
        empty_pool(lives, number, pool->marks[i].serial, pool->marks[i].pools, event);
        return;
    }
}

/* An adoption that would make a circle is a trace's lie, or pools at one address at two times. */
static bool is_below(const struct lives *lives, uint32_t pool, uint32_t top)
{
    while (pool && pool != top) pool = lives->pools[pool].parent;
    return pool != 0;
}

static void take_pool(struct lives *lives, const struct reader_event *event)
{
    uint32_t other = trace_has_pool(event->kind) ? need_pool(lives, event->pool, event) : 0;
    uint32_t pool = event->kind == TRACE_POOL_ALLOC ? 0 : find_pool(lives, event->object);
    if (event->kind == TRACE_POOL && pool && other && is_below(lives, other, pool)) other = 0;
    switch (event->kind) {
    case TRACE_POOL:
        if (pool) end_pool(lives, pool, event);
        begin_pool(lives, event->object, other, event);
        break;
    case TRACE_POOL_ALLOC: bear(lives, event, other); break;
    case TRACE_POOL_CLEAR:
        if (!pool) break;
        empty_pool(lives, pool, 0, 0, event);
        lives->pools[pool].n_marks = 0;
        lives->told(LIVES_POOL_CLEARED, pool, lives->pools[pool].parent, event, lives->arg);
        break;
    case TRACE_POOL_ENDING:
        pool = need_pool(lives, event->object, event);
        if (pool) lives->pools[pool].ending = event->slot;
        lives->has_endings = true;
        break;
    case TRACE_POOL_END: /* of one that was there before, if nobody is ending this one */
        if (pool && lives->has_endings && lives->pools[pool].ending != event->slot) break;
        if (pool) end_pool(lives, pool, event);
        break;
    case TRACE_POOL_ADOPT:
        if (!pool || is_below(lives, other, pool)) break;
        unlink_pool(lives, pool);
        link_pool(lives, pool, other);
        break;
    case TRACE_POOL_MARK:
        if (pool) open_mark(&lives->pools[pool], event->size, lives->serial, lives->pools_begun);
        break;
    case TRACE_POOL_REWIND:
        if (pool) rewind_pool(lives, pool, event);
        break;
    default: break;
    }
}

void lives_take(struct lives *lives, const struct reader_event *event)
{
    uint32_t number;
    switch (event->kind) {
    case TRACE_THREAD:
    case TRACE_HELD: return;
    case TRACE_ALLOC: bear(lives, event, 0); return;
    case TRACE_LIFT: lift(lives, event); return;
    case TRACE_LAND: land(lives, event); return;
    case TRACE_FREE:
    case TRACE_RESIZE:
        number = lives_find(lives, event->object);
        lives->unknown += number == 0;
        if (number && event->kind == TRACE_FREE) die(lives, number, event);
        if (number && event->kind == TRACE_RESIZE) resize(lives, number, event);
        return;
    default: take_pool(lives, event);
    }
}
