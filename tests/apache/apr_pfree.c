/* SPDX-License-Identifier: Apache-2.0 */
/* apr_pfree.c: what reaps add to APR's pools, as a module would use it that runs on stock pools too.
 *
 * apr_pfree.sh runs it with and without libreap-apr, and with a kind of misuse as argument.
 */
#define REAP_APR_OPTIONAL
#include "apr_reap.h"

#include <apr_allocator.h>
#include <apr_strings.h>
#include <setjmp.h>
#include <sys/resource.h>

#include "apr_expect.h" /* reap.h is weak, as apr_reap.h comes first */

static size_t resident_pages(void)
{
    size_t size, resident = 0;
    FILE *statm = fopen("/proc/self/statm", "r");
    expect(statm && fscanf(statm, "%zu %zu", &size, &resident) == 2, "/proc/self/statm");
    fclose(statm);
    return resident;
}

static void free_singly(apr_pool_t *pool)
{
    size_t before = stats_of(pool).live_objects;
    void *object[500];
    for (int round = 0; round < 200; round++) {
        for (int i = 0; i < 500; i++) memset(object[i] = apr_palloc(pool, 16 + (size_t)(i % 50) * 8), i, 16);
        for (int i = 0; i < 500; i++) expect(*(unsigned char *)object[i] == (i & 0xff), "contents");
        for (int i = 0; i < 500; i++) apr_pfree(pool, object[i * 7 % 500]);
    }
    apr_pfree(pool, NULL);
    expect(stats_of(pool).live_objects == before, "all was freed");
    expect(stats_of(pool).peak_chunk_bytes < 1000000,
           "memory was used again"); /* 20 MB were asked for in all */
}

static void resize(apr_pool_t *pool)
{
    volatile size_t too_much = SIZE_MAX / 4;
    char *text = apr_prealloc(pool, NULL, 10);
    strcpy(text, "123456789");
    text = apr_prealloc(pool, text, 100000);
    expect(!strcmp(text, "123456789"), "grown");
    text = apr_prealloc(pool, text, 5);
    expect(!memcmp(text, "12345", 5), "shrunk");
    expect(apr_prealloc(pool, text, SIZE_MAX) == NULL && text[4] == '5', "refused, and kept");
    apr_pfree(pool, text);
    apr_pfree(pool, apr_psprintf(pool, "%d", 1));
    apr_pfree(pool, apr_pstrdup(pool, "text"));
    expect(apr_pmemdup(pool, "", too_much) == NULL, "no copy of more than there is");
    expect(apr_pstrmemdup(pool, "", too_much) == NULL, "nor of a string");
}

/* A text that grows stays in its object, its end included, where something lives right behind that. */
static void texts_in_holes(apr_pool_t *pool)
{
    for (int length = 1020; length < 1030; length++) {
        apr_pool_clear(pool);
        char *hole = apr_palloc(pool, 1024), *behind = apr_pstrdup(pool, "behind");
        apr_pfree(pool, hole);
        char *text = apr_psprintf(pool, "%*d", length, 7);
        expect(strlen(text) == (size_t)length && text[length - 1] == '7', "a text as long as its object");
        expect(!strcmp(behind, "behind"), "what is behind a text");
    }
}

/* The reap of a pool has the pool's place in the tree, and its name. */
static void reap_of(apr_pool_t *pool)
{
    apr_pool_t *child, *grandchild;
    void *owner = NULL;
    char *object = apr_palloc(pool, 100);
    expect(apr_pool_create(&child, pool) == APR_SUCCESS, "child");
    expect(reapParent(apr_pool_reap(child)) == *apr_pool_reap(pool), "parent");
    expect(reapOf(object + 50, &owner) == 0 && owner == *apr_pool_reap(pool), "owner");
    apr_pool_tag(child, "a tag");
    expect(!strcmp(reapName(apr_pool_reap(child)), "a tag"), "name");
    apr_pool_clear(child);
    expect(!strcmp(reapName(apr_pool_reap(child)), "a tag"), "name after clear");
    expect(apr_pool_create(&grandchild, child) == APR_SUCCESS, "child after clear");
    expect(reapParent(apr_pool_reap(grandchild)) == *apr_pool_reap(child), "parent after clear");
    apr_pool_destroy(child);
}

static apr_pool_t *late;
static int ended;

static apr_status_t count_end(void *unused)
{
    (void)unused;
    ended++;
    return APR_SUCCESS;
}

static apr_status_t make_late(void *pool)
{
    expect(apr_pool_create(&late, pool) == APR_SUCCESS, "late child");
    apr_pool_cleanup_register(late, NULL, count_end, apr_pool_cleanup_null);
    return APR_SUCCESS;
}

/* A child that a cleanup makes of a pool that goes is its parent's, and ends with that. */
static void late_child(apr_pool_t *pool)
{
    apr_pool_t *child;
    expect(apr_pool_create(&child, pool) == APR_SUCCESS, "child");
    apr_pool_cleanup_register(child, child, make_late, apr_pool_cleanup_null);
    apr_pool_destroy(child);
    expect(apr_pool_parent_get(late) == pool && !ended, "it is handed up");
    apr_pool_clear(pool);
    expect(ended == 1, "it ends with its parent");
}

/* A list of nodes comes back as a whole. */
static void lists_of_nodes(apr_allocator_t *allocator)
{
    size_t before = 0;
    for (int round = 0; round < 1000; round++) {
        apr_memnode_t *last = apr_allocator_alloc(allocator, 60000);
        apr_memnode_t *first = apr_allocator_alloc(allocator, 60000);
        expect(first && last, "nodes");
        first->next = last;
        memset(last->first_avail, round, 60000);
        apr_allocator_free(allocator, first);
        if (round == 9) before = resident_pages();
    }
    expect(resident_pages() < before + 2000, "memory of nodes was used again"); /* 15,000 without */
}

/* Roots, and the last of many siblings, are not kept for others: their memory is free. */
static void misuse_freed(const char *kind, apr_pool_t *parent)
{
    apr_pool_t *pools[200];
    int is_root = !strncmp(kind, "root", 4);
    int n = is_root ? 1 : 200;
    for (int i = 0; i < n; i++)
        expect((is_root ? apr_pool_create_unmanaged(&pools[i]) : apr_pool_create(&pools[i], parent)) == 0,
               "pool");
    for (int i = 0; i < n; i++) apr_pool_destroy(pools[i]);
    if (!strcmp(kind, "root-text")) apr_pstrdup(pools[0], "text");
    if (!strcmp(kind, "root-clear")) apr_pool_clear(pools[0]);
    if (!strcmp(kind, "root-register")) apr_pool_cleanup_register(pools[0], NULL, count_end, count_end);
    apr_pool_destroy(pools[n - 1]);
}

static void misuse(const char *kind, apr_pool_t *pool, apr_pool_t *other)
{
    char *object = apr_palloc(pool, 100);
    printf("%p\n", (void *)object);
    fflush(stdout);
    if (!strcmp(kind, "twice")) apr_pfree(pool, object), apr_pfree(pool, object);
    if (!strcmp(kind, "interior")) apr_pfree(pool, object + 16);
    if (!strcmp(kind, "foreign")) apr_pfree(pool, strdup("malloc'd"));
    if (!strcmp(kind, "other")) apr_pfree(other, object);
    if (!strcmp(kind, "parent")) apr_pfree(apr_pool_parent_get(pool), object);
    if (!strcmp(kind, "resized")) apr_pfree(pool, object), object = apr_prealloc(pool, object, 200);
    if (!strcmp(kind, "cleared")) apr_pool_clear(pool), apr_pfree(pool, object);
    if (!strcmp(kind, "destroyed")) apr_pool_destroy(pool), apr_pfree(other, object);
    if (!strncmp(kind, "gone", 4)) apr_pool_destroy(pool);
    if (!strcmp(kind, "gone")) apr_pool_destroy(pool);
    if (!strcmp(kind, "gone-clear")) apr_pool_clear(pool);
    if (!strcmp(kind, "gone-tag")) apr_pool_tag(pool, "tag");
    if (!strcmp(kind, "gone-create")) apr_pool_create(&other, pool);
    if (!strcmp(kind, "gone-abort")) apr_pool_abort_set(NULL, pool);
    if (!strcmp(kind, "gone-allocator")) apr_pool_allocator_get(pool);
    if (!strcmp(kind, "gone-register")) apr_pool_cleanup_register(pool, NULL, count_end, count_end);
    if (!strcmp(kind, "gone-pre")) apr_pool_pre_cleanup_register(pool, NULL, count_end);
    if (!strcmp(kind, "gone-kill")) apr_pool_cleanup_kill(pool, NULL, count_end);
    if (!strcmp(kind, "gone-set")) apr_pool_child_cleanup_set(pool, NULL, count_end, count_end);
    if (!strcmp(kind, "gone-data")) apr_pool_userdata_setn("value", "key", NULL, pool);
    if (!strcmp(kind, "gone-get")) apr_pool_userdata_get((void **)&object, "key", pool);
    if (!strncmp(kind, "root", 4) || !strcmp(kind, "many")) misuse_freed(kind, other);
    if (!strcmp(kind, "direct")) apr_pfree(pool, object), reapFree(apr_pool_reap(pool), object);
    printf("not caught\n");
    exit(1);
}

static unsigned aborts;

static int count_abort(int status)
{
    expect(status == APR_ENOMEM, "the abort function is told that there is no memory");
    aborts++;
    return -1;
}

/* As libreap-apr(7) has it: past a limit on a pool's reap its abort function is called, which in httpd ends
 * the process; so is that of a pool below. A reap of one's own gives NULL, and no function is called. */
static void limited(apr_pool_t *parent)
{
    apr_pool_t *pool, *child;
    void *own;
    apr_pool_create_ex(&pool, parent, count_abort, NULL);
    apr_pool_create(&child, pool);
    reapCreate(&own, apr_pool_reap(pool));
    expect(reapSetLimit(&own, 10000) == 0, "a limit on a reap below a pool's");
    expect(!reapMalloc(&own, 20000) && aborts == 0, "a reap of one's own gives NULL");
    expect(reapSetLimit(apr_pool_reap(pool), 100000) == 0, "a limit on a pool's reap");
    expect(apr_palloc(pool, 1000) && aborts == 0, "below the limit");
    expect(!apr_palloc(pool, 200000) && aborts == 1, "past the limit the pool's abort function is called");
    expect(!apr_palloc(child, 200000) && aborts == 2, "and in a pool below");
    expect(!reapMalloc(&own, 20000) && aborts == 2, "and not for a reap of one's own");
    apr_pool_destroy(pool);
}

static jmp_buf out;

static int leave(int status) { longjmp(out, status); }

/* There is a dead pool for the next one, and no memory for its reap. */
static void left_by_its_abort(apr_pool_t *parent)
{
    static apr_pool_t *pool, *child;
    struct rlimit all, none = {.rlim_cur = 1};
    void *own = NULL;
    apr_pool_create_ex(&pool, parent, leave, NULL);
    apr_pool_create(&child, pool);
    apr_pool_destroy(child);
    getrlimit(RLIMIT_AS, &all);
    none.rlim_max = all.rlim_max;
    setrlimit(RLIMIT_AS, &none);
    do reapCreate(&own, apr_pool_reap(pool));
    while (own);
    if (setjmp(out) == 0) expect(apr_pool_create(&child, pool) == -1, "the abort function leaves");
    expect(child == NULL, "then there is no pool");
    setrlimit(RLIMIT_AS, &all);
    apr_pool_destroy(pool);
}

/* What a module may write without a test, on stock pools and on reaps. */
static void everywhere(apr_pool_t *pool)
{
    char *text = apr_prealloc_sized(pool, NULL, 77, 10), *place = text;
    expect(apr_reap_loaded() == (apr_pfree != NULL), "whether pools are reaps");
    strcpy(text, "123456789");
    text = apr_prealloc_sized(pool, text, 10, 1 << 16);
    expect(!strcmp(text, "123456789"), "grown");
    memset(text, 'x', 1 << 16);
    expect(apr_reap_loaded() || !strcmp(place, "123456789"), "stock pools leave the old object");
    text = apr_prealloc_sized(pool, place = text, 1 << 16, 5);
    expect(text && text[4] == 'x' && (apr_reap_loaded() || text == place), "shrunk");
    apr_pfree(pool, text);
    apr_pfree(pool, NULL);
    text = apr_prealloc(pool, NULL, 20);
    expect(text != NULL, "apr_prealloc of NULL");
    place = apr_prealloc(pool, text, 40);
    expect(apr_reap_loaded() == (place != NULL), "stock pools do not know an object's size");
    if (place) apr_pfree(pool, place);
    expect(apr_reap_loaded() == (apr_pool_reap(pool) != NULL), "a pool's reap");
    expect(apr_reap_loaded() == (reapStats && reapMalloc), "calls of reap.h");
}

int main(int argc, char **argv)
{
    apr_pool_t *pool, *other;
    expect(apr_initialize() == APR_SUCCESS, "initialize");
    expect(apr_pool_create(&pool, NULL) == APR_SUCCESS, "pool");
    expect(apr_pool_create(&other, NULL) == APR_SUCCESS, "other pool");
    expect(!!apr_pfree == !!apr_prealloc && !!apr_pfree == !!apr_pool_reap, "all three, or none");
    everywhere(pool);
    if (!apr_pfree) {
        puts("stock pools");
        return argc > 1;
    }
    if (argc > 1) misuse(argv[1], pool, other);
    free_singly(pool);
    resize(pool);
    texts_in_holes(other);
    reap_of(pool);
    late_child(pool);
    limited(other);
    left_by_its_abort(other);
    lists_of_nodes(apr_pool_allocator_get(pool));
    apr_terminate();
    puts("reaps");
    return 0;
}
