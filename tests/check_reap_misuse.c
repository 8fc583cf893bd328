/* check_reap_misuse.c: each call that takes a reap, given what is none; each call that takes an object, given
 * what is none of this reap: one line that names the call and the pointer, and the end. (tests/misuse has a
 * program for each kind of mistake.) */
#include "check_reap.h"

#include <string.h>

#include "expect.h"
#include "reap_chunk.h"

/* --- what is no reap ------------------------------------------------------------------------- */

static void nothing(void *arg) { (void)arg; }

static int no_object(void *object, size_t size, void *arg) { return object && size && arg; }

static void vprintf_in(void **reap, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    reapVprintf(reap, format, args);
    va_end(args);
}

static void *other;
static struct reap_stats stats;
static reap_mark mark;

static void with_create(void **reap) { reapCreate(&other, reap); }
static void with_create_with(void **reap)
{
    struct reap_options options = {.size = sizeof options};
    reapCreateWith(&other, reap, &options);
}
static void with_malloc(void **reap) { (reapMalloc)(reap, 100); }
static void with_malloc_large(void **reap) { reapMalloc(reap, 1000000); }
static void with_malloc_huge(void **reap) { reapMalloc(reap, OPAQUE(SIZE_MAX)); }
static void with_malloc_empty(void **reap) { reapMalloc(reap, 0); }
static void with_calloc(void **reap) { reapCalloc(reap, 10, 10); }
static void with_calloc_large(void **reap) { reapCalloc(reap, 1000, 1000); }
static void with_realloc(void **reap) { reapRealloc(reap, other, 1000); }
static void with_aligned(void **reap) { reapAlignedAlloc(reap, 64, 10); }
static void with_free(void **reap) { reapFree(reap, other); }
static void with_strdup(void **reap) { reapStrdup(reap, "text"); }
static void with_strndup(void **reap) { reapStrndup(reap, "text", 2); }
static void with_memdup(void **reap) { reapMemdup(reap, "text", 4); }
static void with_printf(void **reap) { reapPrintf(reap, "text"); }
static void with_vprintf(void **reap) { vprintf_in(reap, "text"); }
static void with_parent(void **reap) { reapParent(reap); }
static void with_set_name(void **reap) { reapSetName(reap, "name"); }
static void with_name(void **reap) { reapName(reap); }
static void with_on_destroy(void **reap) { reapOnDestroy(reap, nothing, NULL); }
static void with_cancel(void **reap) { reapCancelOnDestroy(reap, nothing, NULL); }
static void with_mark(void **reap) { reapMark(reap, &mark); }
static void with_rewind(void **reap) { reapRewind(reap, &mark); }
static void with_unmark(void **reap) { reapUnmark(reap, &mark); }
static void with_stats(void **reap) { reapStats(reap, &stats); }
static void with_report(void **reap) { reapReport(reap, stderr); }
static void with_walk(void **reap) { reapWalk(reap, no_object, NULL); }
static void with_move(void **reap) { reapMove(other, reap, &other); }
static void with_move_to(void **reap) { reapMove(reapMalloc(&other, 10), &other, reap); }
static void with_adopt(void **reap) { reapAdopt(reap, &other); }
static void with_adopt_by(void **reap) { reapAdopt(&other, reap); }
static void with_enter(void **reap) { reapEnter(reap); }
static void with_set_limit(void **reap) { reapSetLimit(reap, 1000); }
static void with_on_limit(void **reap) { reapOnLimit(reap, NULL, NULL); }
static void with_free_all(void **reap) { reapFreeAll(reap); }
static void with_destroy(void **reap) { reapDestroy(reap); }

/* A NULL handle is nothing wrong; any memory is believed to be a reap, for the fast path has no check, and
 * what it finds there may crash it. */
enum { TAKES_NULL = 1, BELIEVES = 2 };

static const struct {
    const char *call;
    void (*make)(void **reap);
    unsigned but;
} calls[] = {{"reapCreate", with_create, TAKES_NULL},
             {"reapCreateWith", with_create_with, TAKES_NULL},
             {"reapMalloc", with_malloc, BELIEVES},
             {"reapMalloc", with_malloc_large, 0},
             {"reapMalloc", with_malloc_huge, 0},
             {"reapMalloc", with_malloc_empty, 0},
             {"reapCalloc", with_calloc, 0},
             {"reapCalloc", with_calloc_large, 0},
             {"reapRealloc", with_realloc, 0},
             {"reapAlignedAlloc", with_aligned, 0},
             {"reapFree", with_free, BELIEVES},
             {"reapStrdup", with_strdup, 0},
             {"reapStrndup", with_strndup, 0},
             {"reapMemdup", with_memdup, 0},
             {"reapPrintf", with_printf, 0},
             {"reapVprintf", with_vprintf, 0},
             {"reapParent", with_parent, 0},
             {"reapSetName", with_set_name, 0},
             {"reapName", with_name, 0},
             {"reapOnDestroy", with_on_destroy, 0},
             {"reapCancelOnDestroy", with_cancel, 0},
             {"reapMark", with_mark, 0},
             {"reapRewind", with_rewind, 0},
             {"reapUnmark", with_unmark, 0},
             {"reapStats", with_stats, 0},
             {"reapReport", with_report, 0},
             {"reapWalk", with_walk, 0},
             {"reapMove", with_move, 0},
             {"reapMove", with_move_to, 0},
             {"reapAdopt", with_adopt, 0},
             {"reapAdopt", with_adopt_by, TAKES_NULL},
             {"reapEnter", with_enter, 0},
             {"reapSetLimit", with_set_limit, 0},
             {"reapOnLimit", with_on_limit, 0},
             {"reapFreeAll", with_free_all, 0},
             {"reapDestroy", with_destroy, TAKES_NULL}};
enum { CALLS = sizeof calls / sizeof calls[0] };

struct asked {
    void *pointer;
    unsigned call;
};

static void ask(void *arg)
{
    struct asked *asked = arg;
    calls[asked->call].make(&asked->pointer);
}

static void assert_no_reap(void *handle, bool was_one)
{
    for (unsigned i = 0; i < CALLS; i++) {
        if (calls[i].but & (handle ? 0 : TAKES_NULL)) continue;
        if (calls[i].but & (was_one ? 0 : BELIEVES)) continue;
        struct outcome outcome = run_child(ask, &(struct asked){handle, i});
        ck_assert_msg(is_misuse(&outcome, calls[i].call, handle, "not a live reap"), "%s", calls[i].call);
    }
}

static void make_other(void)
{
    reapCreate(&other, NULL);
    reapMark(&other, &mark);
}

START_TEST(no_reap_at_all) { assert_no_reap(NULL, true); }
END_TEST

START_TEST(a_destroyed_reap)
{
    void *reap, *handle, *shared = new_shared(NULL, 0);
    reapCreate(&reap, NULL);
    handle = reap;
    reapDestroy(&reap);
    assert_no_reap(handle, true);
    handle = shared;
    reapDestroy(&shared);
    assert_no_reap(handle, true);
}
END_TEST

START_TEST(some_memory)
{
    static _Alignas(1024) char memory[4096];
    assert_no_reap(memory, false);
    assert_no_reap(memory + REAP_HEADER, false);
    assert_no_reap(memory + sizeof memory - REAP_FACE, false);
    assert_no_reap(reapMalloc(&other, 100), false);
}
END_TEST

/* --- what is no object of this reap ---------------------------------------------------------- */

static void *reap;

static void free_it(void *object) { reapFree(&reap, object); }
static void resize_it(void *object) { reapRealloc(&reap, object, 10); }
static void resize_much(void *object) { reapRealloc(&reap, object, 1000000); }
static void move_it(void *object) { reapMove(object, &reap, &other); }
static void stay_it(void *object) { reapMove(object, &reap, &reap); }
static void measure_it(void *object) { reapUsableSize(object); }

static const struct {
    const char *call;
    void (*make)(void *object);
} uses[] = {{"reapFree", free_it}, {"reapRealloc", resize_it}, {"reapRealloc", resize_much},
            {"reapMove", move_it}, {"reapMove", stay_it},      {"reapUsableSize", measure_it}};
enum { USES = sizeof uses / sizeof uses[0] };

static void assert_no_object(void *pointer, const char *what)
{
    for (unsigned i = 0; i < USES; i++) {
        bool measures = uses[i].make == measure_it, frees = uses[i].make == free_it;
        if (measures && strcmp(what, "an object of another reap") == 0) continue; /* of any reap */
        const char *said = !frees && strcmp(what, "freed twice") == 0 ? "not a live object" : what;
        struct outcome outcome = run_child(uses[i].make, pointer);
        ck_assert_msg(is_misuse(&outcome, uses[i].call, pointer, said), "%s", uses[i].call);
    }
}

/* Of a plain reap, and of a shared one. */
START_TEST(what_is_no_object_of_it)
{
    static int in_data;
    int on_stack;
    if (_i == 0) reapCreate(&reap, NULL);
    if (_i == 1) reap = new_shared(NULL, 0);
    char *freed = reapMalloc(&reap, 100), *object = reapMalloc(&reap, 100), *last = reapMalloc(&reap, 100);
    char *large = reapMalloc(&reap, 100000), *freed_large = reapMalloc(&reap, 100000);
    void *handle = reap, *block = malloc(100);
    memset(object, 1, 100);
    reapFree(&reap, freed);
    reapFree(&reap, freed_large);
    assert_no_object(freed, "freed twice");
    assert_no_object(freed_large, "not a reap's object"); /* its chunk is gone */
    assert_no_object(object + 16, "not the start of an object");
    assert_no_object(object + 1, "not the start of an object");
    assert_no_object(large + 50000, "not the start of an object");
    assert_no_object(handle, "not the start of an object");
    assert_no_object(last + 4096, "not a live object");
    assert_no_object(reapMalloc(&other, 100), "an object of another reap");
    assert_no_object(reapMalloc(&other, 100000), "an object of another reap");
    assert_no_object(&on_stack, "not a reap's object");
    assert_no_object(&in_data, "not a reap's object");
    assert_no_object(block, "not a reap's object");
    assert_no_object((void *)16, "not a reap's object");
    assert_no_object((void *)-16, "not a reap's object");
    reapFreeAll(&reap);
    assert_no_object(object, "not a live object");
    assert_no_object(large, "not a reap's object");
    free(block);
    reapDestroy(&reap);
}
END_TEST

int main(void)
{
    TCase *tests = new_case("reap_misuse", 60);
    tcase_add_checked_fixture(tests, make_other, NULL);
    tcase_add_test(tests, no_reap_at_all);
    tcase_add_test(tests, a_destroyed_reap);
    tcase_add_test(tests, some_memory);
    tcase_add_loop_test(tests, what_is_no_object_of_it, 0, 2);
    return run("reap_misuse", tests);
}
