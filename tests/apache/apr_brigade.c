/* SPDX-License-Identifier: Apache-2.0 */
/* apr_brigade.c: brigades that are destroyed and used again, also by those who have destroyed them, and what
 * an allocator keeps of freed memory. apr_brigade.sh runs it on stock pools and on reaps.
 */
#define REAP_APR_OPTIONAL
#include "apr_reap.h"

#include <apr_allocator.h>
#include <apr_buckets.h>
#include <apr_strings.h>

#include "hoard.h"
#include <time.h>

#pragma weak hoard_stats
#pragma weak reapStats
#define REAP_NO_INLINE /* the inline part calls the library by a name that is not weak */
#include "apr_expect.h"

static apr_pool_t *pool;
static apr_bucket_alloc_t *list;

static void fill(apr_bucket_brigade *brigade, const char *text)
{
    APR_BRIGADE_INSERT_TAIL(brigade, apr_bucket_transient_create(text, strlen(text), list));
}

static int holds(apr_bucket_brigade *brigade, const char *text)
{
    char *flat;
    apr_size_t length;
    expect(apr_brigade_pflatten(brigade, &flat, &length, pool) == APR_SUCCESS, "flatten");
    return length == strlen(text) && memcmp(flat, text, length) == 0;
}

/* As an HTTP/2 connection does for each stream, with some of them open at once. */
static size_t grow_on(int streams)
{
    apr_bucket_brigade *open[10] = {NULL};
    for (int i = 0; i < streams; i++) {
        apr_bucket_brigade **place = &open[i % 10];
        if (*place) apr_brigade_destroy(*place);
        *place = apr_brigade_create(pool, list);
        fill(*place, "a stream");
    }
    for (int i = 0; i < 10; i++) apr_brigade_destroy(open[i]);
    return stats_of(pool).live_bytes;
}

/* A module that fills a brigade which it has destroyed loses nothing, and takes nothing of others. */
static void use_after_destroy(void)
{
    apr_bucket_brigade *used = apr_brigade_create(pool, list), *others[40];
    fill(used, "before");
    apr_brigade_destroy(used);
    expect(APR_BRIGADE_EMPTY(used), "destroyed, and empty");
    fill(used, "after");
    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < 40; i++) {
            others[i] = apr_brigade_create(pool, list);
            expect(others[i] != used, "a brigade in use is nobody else's");
            fill(others[i], "other");
        }
        for (int i = 0; i < 40; i++) expect(holds(others[i], "other"), "the others");
        for (int i = 0; i < 40; i++) apr_brigade_destroy(others[i]);
    }
    expect(holds(used, "after"), "what was filled in after the destroy");
    apr_brigade_destroy(used);
    expect(APR_BRIGADE_EMPTY(used), "destroyed again");
    apr_brigade_destroy(used);
}

static void destroy_twice(void)
{
    apr_bucket_brigade *twice = apr_brigade_create(pool, list), *made[40];
    for (int i = 0; i < 3; i++) expect(apr_brigade_destroy(twice) == APR_SUCCESS, "destroyed again");
    for (int i = 0; i < 40; i++) made[i] = apr_brigade_create(pool, list);
    for (int i = 0; i < 40; i++)
        for (int j = 0; j < i; j++) expect(made[i] != made[j], "one brigade for two");
    for (int i = 0; i < 40; i++) apr_brigade_destroy(made[i]);
}

/* One that did not come from apr_brigade_create. */
static void destroy_foreign(void)
{
    apr_bucket_brigade own = {.p = pool, .bucket_alloc = list};
    apr_bucket_brigade *made;
    APR_RING_INIT(&own.list, apr_bucket, link);
    fill(&own, "own");
    expect(apr_brigade_destroy(&own) == APR_SUCCESS && APR_BRIGADE_EMPTY(&own), "a brigade on the stack");
    own.p = NULL;
    fill(&own, "own");
    expect(apr_brigade_destroy(&own) == APR_SUCCESS && APR_BRIGADE_EMPTY(&own), "a brigade without a pool");
    for (int i = 0; i < 40; i++) {
        made = apr_brigade_create(pool, list);
        expect(made != &own, "the stack's brigade is nobody else's");
        apr_brigade_destroy(made);
    }
}

static int emptied;

static void count(void *data)
{
    (void)data;
    emptied++;
}

/* What a brigade holds goes with its pool, in the order of cleanups. */
static apr_status_t look(void *wanted)
{
    expect(emptied == (int)(intptr_t)wanted, "the order of cleanups");
    return APR_SUCCESS;
}

static void end_with_the_pool(void)
{
    apr_pool_t *child;
    emptied = 0;
    expect(apr_pool_create(&child, pool) == APR_SUCCESS, "create");
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 20; i++) apr_brigade_destroy(apr_brigade_create(child, list));
        apr_pool_cleanup_register(child, (void *)(intptr_t)(round + 1), look, apr_pool_cleanup_null);
        apr_bucket_brigade *brigade = apr_brigade_create(child, list);
        char *text = malloc(8);
        APR_BRIGADE_INSERT_TAIL(brigade, apr_bucket_heap_create(text, 8, count, list));
        apr_pool_cleanup_register(child, (void *)(intptr_t)round, look, apr_pool_cleanup_null);
        apr_pool_clear(child);
        free(text);
    }
    expect(emptied == 3, "brigades are emptied with their pool");
    apr_pool_destroy(child);
}

enum { FIRST = 32768 /* bytes of a pool's first chunk, at most */ };

static apr_pool_t *pool_of(apr_allocator_t **allocator, apr_size_t most)
{
    apr_pool_t *made;
    expect(apr_allocator_create(allocator) == APR_SUCCESS, "an allocator");
    apr_allocator_max_free_set(*allocator, most);
    expect(apr_pool_create_ex(&made, NULL, NULL, *allocator) == APR_SUCCESS, "a pool");
    apr_allocator_owner_set(*allocator, made);
    return made;
}

static void grow_large(apr_pool_t *large)
{
    for (int i = 0; i < 4000; i++) memset(apr_palloc(large, 200), i, 200);
}

/* A pool that was large keeps no more than its allocator's max_free, and its first chunk. */
static void max_free(apr_size_t most)
{
    apr_allocator_t *allocator;
    apr_pool_t *large = pool_of(&allocator, most);
    for (int round = 0; round < 5; round++) {
        grow_large(large);
        apr_pool_clear(large);
    }
    expect(stats_of(large).chunk_bytes <= most + FIRST, "max_free holds");
    apr_pool_destroy(large);
}

static time_t second(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return now.tv_sec;
}

static size_t heap_bytes(void)
{
    struct hoard_stats stats;
    hoard_stats(&stats);
    return stats.live_bytes;
}

/* Without a limit a pool and its allocator keep what they need again; but for the first clear in a second,
 * which gives all back. A round that lasts into the next second says nothing. */
static void once_a_second(void)
{
    enum { NODES = 3, NODE = 8192 };
    apr_allocator_t *allocator;
    apr_pool_t *large = pool_of(&allocator, APR_ALLOCATOR_MAX_FREE_UNLIMITED);
    size_t before, first, again;
    time_t began;
    do {
        apr_memnode_t *node[NODES];
        for (began = second(); second() == began;) apr_sleep(1000);
        began = second();
        grow_large(large);
        for (int i = 0; i < NODES; i++) node[i] = apr_allocator_alloc(allocator, 1);
        for (int i = 0; i < NODES; i++) apr_allocator_free(allocator, node[i]);
        size_t grown = stats_of(large).chunk_bytes;
        before = heap_bytes();
        apr_pool_clear(large);
        first = stats_of(large).chunk_bytes;
        before -= heap_bytes() + (grown - first);
        grow_large(large);
        apr_pool_clear(large);
        again = stats_of(large).chunk_bytes;
    } while (second() != began);
    expect(first <= FIRST, "the first clear in a second gives all back");
    expect(before == NODES * NODE, "and what the allocator keeps");
    expect(again > 400 * 1024, "the next one keeps what it needs again");
    apr_pool_destroy(large);
}

/* Nodes that are freed and taken again are whole. */
static void nodes(void)
{
    apr_allocator_t *allocator;
    apr_memnode_t *node[20];
    expect(apr_allocator_create(&allocator) == APR_SUCCESS, "an allocator");
    for (int round = 0; round < 50; round++) {
        for (int i = 0; i < 20; i++) {
            node[i] = apr_allocator_alloc(allocator, i % 3 == 2 ? 20000 : 1);
            expect(node[i] && node[i]->next == NULL, "a node");
            expect(node[i]->first_avail == (char *)node[i] + APR_MEMNODE_T_SIZE, "its beginning");
            size_t bytes = (size_t)(node[i]->endp - (char *)node[i]);
            expect(bytes == (node[i]->index + 1) * (size_t)4096, "its end");
            memset(node[i]->first_avail, i, bytes - APR_MEMNODE_T_SIZE);
            node[i]->first_avail = node[i]->endp; /* as a bucket allocator leaves it */
        }
        for (int i = 0; i < 20; i++)
            for (char *at = (char *)node[i] + APR_MEMNODE_T_SIZE; at < node[i]->endp; at += 500)
                expect(*at == i, "a node of its own");
        for (int i = 0; i + 1 < 10; i++) node[i]->next = node[i + 1]; /* a list, and single ones */
        apr_allocator_free(allocator, node[0]);
        for (int i = 10; i < 20; i++) apr_allocator_free(allocator, node[i]);
        if (round == 20) apr_allocator_max_free_set(allocator, 1);
        if (round == 30) apr_allocator_max_free_set(allocator, 20000);
    }
    apr_allocator_destroy(allocator);
}

int main(int argc, char **argv)
{
    int keeps = argc > 1 && strcmp(argv[1], "keep") == 0;
    expect(apr_initialize() == APR_SUCCESS, "initialize");
    expect(apr_pool_create(&pool, NULL) == APR_SUCCESS, "a pool");
    list = apr_bucket_alloc_create(pool);
    use_after_destroy();
    destroy_twice();
    destroy_foreign();
    end_with_the_pool();
    nodes();
    if (!apr_pool_reap) {
        puts("stock pools");
        return 0;
    }
    size_t some = grow_on(1000), many = grow_on(100000);
    if (keeps)
        expect(many - some >= 100000 * sizeof(apr_bucket_brigade), "brigades stay where the user wants it");
    else
        expect(many == some, "a hundred thousand brigades, and no growth");
    once_a_second();
    max_free(1);
    max_free(100 * 1024);
    puts(keeps ? "kept" : "flat");
    apr_terminate();
    return 0;
}
