/* SPDX-License-Identifier: Apache-2.0 */
/* check_reap_faults.c: no memory. The n-th request of a scenario for a chunk fails, for every n until
 * none does; each time the call that met it must say so, and the reap must be as it was. */
#include "support/check_reap.h"

#include "hoard/chunk_provider.h"

static long until_failure; /* requests still granted; negative: all */
static bool failed;

void *__real_chunk_alloc(size_t size, size_t *got, bool *zeroed);
bool __real_chunk_resize(void *chunk, size_t size, size_t *got);
void *__wrap_chunk_alloc(size_t size, size_t *got, bool *zeroed);
bool __wrap_chunk_resize(void *chunk, size_t size, size_t *got);
void *__real_chunk_move(void *chunk, size_t size, size_t *got);
void *__wrap_chunk_move(void *chunk, size_t size, size_t *got);

static bool fails(void)
{
    failed = failed || until_failure == 0;
    return until_failure == 0 || until_failure-- == 0;
}

/* From the n-th request on all fail, as when memory has run out. */
void *__wrap_chunk_alloc(size_t size, size_t *got, bool *zeroed)
{
    if (!fails()) return __real_chunk_alloc(size, got, zeroed);
    errno = ENOMEM;
    return NULL;
}

bool __wrap_chunk_resize(void *chunk, size_t size, size_t *got)
{
    if (!fails()) return __real_chunk_resize(chunk, size, got);
    return __real_chunk_resize(chunk, 0, got) && false;
}

void *__wrap_chunk_move(void *chunk, size_t size, size_t *got)
{
    return fails() ? NULL : __real_chunk_move(chunk, size, got);
}

static void nothing(void *arg) { (void)arg; }

/* A failure must be one that was made, with its errno. */
static bool refused(const void *result)
{
    if (result) return false;
    ck_assert(failed);
    ck_assert_int_eq(errno, ENOMEM);
    return true;
}

static void fill(void **reap)
{
    void *objects[300] = {NULL};
    for (int i = 0; i < 300; i++) {
        struct reap_stats before = stats_of(*reap);
        objects[i] = reapMalloc(reap, (size_t)i * 7);
        if (!refused(objects[i])) continue;
        ck_assert_uint_eq(stats_of(*reap).live_objects, before.live_objects);
        ck_assert_uint_eq(stats_of(*reap).chunk_bytes, before.chunk_bytes);
    }
    for (int i = 0; i < 300; i += 2) reapFree(reap, objects[i]);
    for (int i = 0; i < 300; i += 3) refused(reapMalloc(reap, (size_t)i * 11));
}

static void resize(void **reap)
{
    static const size_t sizes[] = {10, 5000, 20000, 50000, 1000000, 40000, 30000, 100, 70000, 0};
    unsigned char *object = NULL;
    size_t size = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        unsigned char *next = reapRealloc(reap, object, sizes[i]);
        assert_valid(*reap); /* what it has ends where its chunk does */
        if (refused(next)) continue;
        ck_assert(!object || size == 0 || sizes[i] == 0 || next[0] == 77);
        object = next;
        size = sizes[i];
        memset(object, 77, size);
        ck_assert_uint_eq(reapUsableSize(object), size ? (size + 15) / 16 * 16 : 16);
    }
}

static void others(void **reap)
{
    char name[3000];
    memset(name, 'n', sizeof name);
    name[sizeof name - 1] = '\0';
    for (int i = 0; i < 40; i++) {
        if (reapSetName(reap, name + (i < 20 ? 2900 - i * 100 : 0)) != 0) ck_assert(refused(NULL));
        if (reapOnDestroy(reap, nothing, NULL) != 0) ck_assert(refused(NULL));
        refused(reapCalloc(reap, 1000, (size_t)i * 10));
        refused(reapAlignedAlloc(reap, (size_t)1 << (i % 15), (size_t)i * 1000));
        refused(reapPrintf(reap, "%*d", i * 50, i));
        refused(reapStrdup(reap, name));
        refused(reapStrndup(reap, name, 10));
        refused(reapMemdup(reap, name, sizeof name));
    }
}

static bool are_shared;

static void create(void **reap, void **parent)
{
    struct reap_options options = {.size = sizeof options, .flags = REAP_SHARED};
    if (!are_shared)
        reapCreate(reap, parent);
    else if (reapCreateWith(reap, parent, &options) != 0)
        ck_assert_ptr_null(*reap);
}

static void scenario(void)
{
    void *reap, *child;
    create(&reap, NULL);
    if (refused(reap)) return;
    create(&child, &reap);
    if (!refused(child)) fill(&child);
    fill(&reap);
    resize(&reap);
    others(&reap);
    reapFreeAll(&reap);
    ck_assert_uint_eq(stats_of(reap).live_objects, 0);
    fill(&reap);
    reapDestroy(&reap);
}

/* What is older than a mark stays, also where a growth of it was refused after the mark. */
TEST(a_refused_growth_leaves_an_object_as_old_as_it_was)
{
    enum { BYTES = 3 << 20 };
    void *handle = NULL, *owner;
    reap_mark mark;
    until_failure = -1;
    reapCreate(&handle, NULL);
    needs(!apart_on, "malloc has the memory to grow, and is not refused any");
    char *older = memset(reapMalloc(&handle, BYTES), 1, BYTES);
    char *oldest = memset(reapMalloc(&handle, BYTES), 2, BYTES);
    reapMark(&handle, &mark);
    char *newer = memset(reapMalloc(&handle, BYTES), 3, BYTES);
    until_failure = 0;
    ck_assert_ptr_null(reapRealloc(&handle, older, 2 * BYTES));
    until_failure = -1;
    ck_assert(reapOf(newer, &owner) == 0 && owner == handle);
    reapRewind(&handle, &mark);
    ck_assert(all_bytes(older, BYTES, 1) && all_bytes(oldest, BYTES, 2));
    ck_assert_uint_eq(stats_of(handle).live_bytes, reapUsableSize(older) + reapUsableSize(oldest));
    ck_assert_ptr_nonnull(older = reapRealloc(&handle, older, 2 * BYTES));
    ck_assert(all_bytes(older, BYTES, 1));
    reapDestroy(&handle);
}

/* Ordinary reaps, shared ones, and shared ones whose objects come from several parts in turn. */
TEST(every_request_may_fail, .times = 3)
{
    long n = 0;
    are_shared = _i > 0;
    if (_i > 1) use_path(PATHS - 1, "heaps=roundrobin");
    do {
        until_failure = n++;
        failed = false;
        scenario();
    } while (failed);
    ck_assert_int_gt(n, 20);
}

int main(void) { return run_tests((struct suite){0}); }
