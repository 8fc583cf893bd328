/* SPDX-License-Identifier: Apache-2.0 */
/* check_reap_handle.c: a handle in the place of its address. Each call is given `reap` where `&reap` is
 * meant, as a program does that forgets the `&`, and does the same; what would set a handle says that it is
 * none. */
#include "support/check_reap.h"

#include "support/expect.h"

/* The reaps of these tests, by number. */
enum { ROOT, CHILD, SHARED, BUFFERED, KINDS };

static void *make(int kind)
{
    static _Alignas(1024) char buffer[64 * 1024];
    static void *root;
    void *reap = NULL;
    struct reap_options options = {.size = sizeof options};
    switch (kind) {
    case CHILD:
        if (!root) reapCreate(&root, NULL);
        reapCreate(&reap, root);
        break;
    case SHARED: reap = new_shared(NULL, 0); break;
    case BUFFERED:
        options.buffer = buffer;
        options.buffer_size = sizeof buffer;
        ck_assert_int_eq(reapCreateWith(&reap, NULL, &options), 0);
        break;
    default: reapCreate(&reap, NULL);
    }
    ck_assert_ptr_nonnull(reap);
    return reap;
}

static int calls;
static void note(void *arg) { calls += arg != NULL; }
static int no_object(void *object, size_t size, void *arg) { return object && size && arg; }
static void met(void **reap, size_t size, void *arg) { *(bool *)arg = *reap && size; }

static void objects(void *r)
{
    char *object = reapMalloc(r, 40), *beside = (reapMalloc)(r, 40), *large = reapMalloc(r, 9000);
    bool follow = !apart_on && reap_mode != MODE_PARTS;
    if (follow) ck_assert_ptr_eq(beside, object + 48);
    reapFree(r, object);
    if (follow) ck_assert_ptr_eq(reapMalloc(r, 40), object);
    reapFree(r, large);
    ck_assert_int_eq(*(char *)reapCalloc(r, 10, 10), 0);
    ck_assert_ptr_nonnull(beside = reapRealloc(r, beside, 4000));
    ck_assert_uint_eq((uintptr_t)reapAlignedAlloc(r, 256, 10) % 256, 0);
    ck_assert_str_eq(reapStrdup(r, "text"), "text");
    ck_assert_str_eq(reapStrndup(r, "text", 2), "te");
    ck_assert_str_eq(reapMemdup(r, "text", 5), "text");
    ck_assert_str_eq(reapPrintf(r, "%d", 7), "7");
    void *owner;
    ck_assert_int_eq(reapOf(beside, &owner), 0);
    ck_assert_ptr_eq(owner, r);
}

static void functions_and_marks(void *r)
{
    reap_mark mark;
    reapMark(r, &mark);
    reapMalloc(r, 100);
    reapRewind(r, &mark);
    reapUnmark(r, &mark);
    ck_assert_int_eq(reapOnDestroy(r, note, r), 0);
    ck_assert_int_eq(reapCancelOnDestroy(r, note, r), 0);
    ck_assert_int_eq(reapOnDestroy(r, note, r), 0);
    ck_assert_int_eq(reapSetName(r, "name"), 0);
    ck_assert_str_eq(reapName(r), "name");
    ck_assert_int_eq(reapWalk(r, no_object, NULL), 0);
}

static void limits(void *r)
{
    bool asked = false;
    struct reap_stats stats;
    ck_assert_int_eq(reapStats(r, &stats), 0);
    ck_assert_int_eq(reapSetLimit(r, stats.live_bytes + 1000), 0);
    reapOnLimit(r, met, &asked);
    ck_assert_ptr_null(reapMalloc(r, 5000));
    ck_assert_int_eq(asked, true);
    ck_assert_int_eq(reapSetLimit(r, 0), 0);
}

static void tree(void *r)
{
    void *child, *other, *parent;
    reapCreate(&child, r);
    ck_assert_ptr_eq(reapParent(child), r);
    ck_assert_ptr_nonnull(reapMalloc(reapParent(child), 10));
    reapCreate(&other, NULL);
    ck_assert_int_eq(reapAdopt(child, other), 0);
    ck_assert_int_eq(reapAdopt(other, r), 0);
    ck_assert_ptr_eq(parent = reapParent(other), r);
    char *object = strcpy(reapMalloc(child, 10), "moves");
    ck_assert_str_eq(object = reapMove(object, child, r), "moves");
    ck_assert_str_eq(reapMove(object, r, other), "moves");
    reapEnter(r);
    reapLeave();
    char text[1000];
    FILE *out = fmemopen(text, sizeof text, "w");
    reapReport(r, out);
    fclose(out);
    ck_assert_ptr_nonnull(strstr(text, "name"));
}

/* Twice: a clear leaves the reap as good as it was. */
TEST(each_call_takes_either, .times = KINDS)
{
    void *reap = make(_i);
    for (int round = 1; round <= 2; round++) {
        calls = 0;
        objects(reap);
        functions_and_marks(reap);
        limits(reap);
        tree(reap);
        assert_valid(reap);
        reapFreeAll(reap);
        ck_assert_int_eq(calls, 1);
        ck_assert_uint_eq(stats_of(reap).live_objects, 0);
    }
    void *copy = reap;
    reapDestroy(&copy);
    ck_assert_ptr_null(copy);
}

static void create_in(void *r) { (reapCreate)(r, NULL); }
static void create_with_in(void *r)
{
    struct reap_options options = {.size = sizeof options};
    reapCreateWith(r, NULL, &options);
}
static void tell_in(void *r) { reapOf(r, r); }

TEST(a_reap_is_no_handle, .times = KINDS)
{
    static const char what[] = "a reap, where the address of a handle is to be set";
    void *reap = make(_i);
    assert_misuse(create_in, reap, "reapCreate", what);
    assert_misuse(create_with_in, reap, "reapCreateWith", what);
    assert_misuse(tell_in, reap, "reapOf", what);
    reapDestroy(&reap);
}

/* Handles in memory of any alignment, where a reap or a face would be, too; its bytes are never read. */
TEST(handles_anywhere, .times = KINDS - 1)
{
    void *reap = make(_i);
    for (int at = 0; at < 2048; at += 16) {
        char *object = reapAlignedAlloc(&reap, 1024, 2048 + sizeof(void *));
        void **handle = (void **)(object + at);
        reapCreate(handle, &reap);
        reapMalloc(handle, 10);
        ck_assert_int_eq(reapOf(*handle, handle), -1); /* a reap is no object */
        reapFree(&reap, object);
        if (at % 256 == 0) reapFreeAll(&reap);
    }
    reapDestroy(&reap);
}

/* How a reap is that has its handle in an object of its own. */
enum {
    IS_CHILD = 1,
    IS_SHARED = 2,
    IS_LIMITED = 4,
    HAS_CHILD = 8,
    HAS_FUNCTION = 16,
    IS_MARKED = 32,
    WAYS = 64
};

enum { SMALL, AMONG_OTHERS, ALONE, OF_CHILD, PLACES };

static void free_in(void *object)
{
    void *owner;
    ck_assert_int_eq(reapOf(object, &owner), 0);
    reapFree(&owner, object);
}

static void use_it(void *handle) { ck_assert_ptr_nonnull(reapMalloc(handle, 10)); }

/* A function finds the handle as it was, or frees it. */
static void **new_with_handle(void **above, int way, int where)
{
    struct reap_options options = {.size = sizeof options, .source = {take_pages, give_pages, NULL}};
    void *reap, *child, **handle;
    options.flags = way & IS_SHARED ? REAP_SHARED : 0;
    options.limit = way & IS_LIMITED ? 1 << 20 : 0;
    ck_assert_int_eq(reapCreateWith(&reap, way & IS_CHILD ? above : NULL, &options), 0);
    if (way & HAS_CHILD) reapCreate(&child, &reap);
    if (where == AMONG_OTHERS) /* not in the first chunk, nor alone in one */
        for (int i = 0; i < 100; i++) ck_assert_ptr_nonnull(reapMalloc(&reap, 200));
    void **of = where == OF_CHILD && way & HAS_CHILD ? &child : &reap;
    handle = reapMalloc(of, where == ALONE ? 200000 : sizeof *handle);
    if (way & HAS_FUNCTION) ck_assert_int_eq(reapOnDestroy(&reap, note, &calls), 0);
    if (way & HAS_FUNCTION)
        ck_assert_int_eq(reapOnDestroy(of, way & IS_LIMITED ? use_it : free_in, handle), 0);
    static reap_mark mark;
    if (way & IS_MARKED) reapMark(&reap, &mark);
    *handle = reap;
    return handle;
}

TEST(a_handle_in_its_reap, .times = PLACES)
{
    void *above;
    reapCreate(&above, NULL);
    for (int way = 0; way < WAYS; way++) {
        for (int by = 0; by < 2; by++) {
            calls = 0;
            void **handle = new_with_handle(&above, way, _i), *copy = *handle;
            reapDestroy(by ? *handle : handle);
            ck_assert_int_eq(calls, !!(way & HAS_FUNCTION));
            ck_assert_uint_eq(stats_of(above).children, 0);
            handle = new_with_handle(&above, way, _i), copy = *handle;
            reapFreeAll(by ? *handle : handle);
            ck_assert_uint_eq(stats_of(copy).live_objects, 0);
            ck_assert_ptr_nonnull(reapMalloc(copy, 100));
            reapDestroy(&copy);
        }
    }
    reapDestroy(&above);
}

/* A typed handle is the reap's first word. */
TEST(a_typed_handle)
{
    reap_t *connection = reapNew(NULL), *request = reapNew(connection);
    char *line = reapMalloc(&request->self, 80);
    ck_assert_ptr_eq(request->self, request);
    ck_assert_ptr_eq(reapParent(&request->self), connection);
    reapFree(&request->self, line);
    reapDestroy(&request->self);
    ck_assert_uint_eq(stats_of(connection).children, 0);
    reapDestroy(&connection->self);
}

int main(void) { return run_tests((struct suite){.modes = ALL_MODES}); }
