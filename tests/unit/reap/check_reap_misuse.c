/* SPDX-License-Identifier: Apache-2.0 */
/* check_reap_misuse.c: each call that takes a reap gets a pointer to no reap, and each call that takes an
 * object gets a pointer to no object of this reap: one line names the call and the pointer, and the program
 * ends. (tests/misuse has a case for each kind of mistake.) */
#include "support/check_reap.h"

#include "region/reap_chunk.h"
#include "support/expect.h"

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

static int vappend_in(void **reap, reap_builder *builder, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int result = reapVappendf(reap, builder, format, args);
    va_end(args);
    return result;
}

static void *other;
static reap_builder builder;
static struct reap_stats stats;
static reap_mark mark;

static void with_create(void **reap) { (reapCreate)(&other, reap); } /* in no mode of the test's */
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
static void with_realloc_null(void **reap) { reapRealloc(reap, NULL, 1000); }
static void with_aligned(void **reap) { reapAlignedAlloc(reap, 64, 10); }
static void with_free(void **reap) { reapFree(reap, other); }
static void with_strdup(void **reap) { reapStrdup(reap, "text"); }
static void with_strndup(void **reap) { reapStrndup(reap, "text", 2); }
static void with_memdup(void **reap) { reapMemdup(reap, "text", 4); }
static void with_printf(void **reap) { reapPrintf(reap, "text"); }
static void with_vprintf(void **reap) { vprintf_in(reap, "text"); }
static void with_append(void **reap) { reapAppend(reap, &builder, "text", 4); }
static void with_append_string(void **reap) { reapAppendString(reap, &builder, "text"); }
static void with_appendf(void **reap) { reapAppendf(reap, &builder, "text"); }
static void with_vappendf(void **reap) { vappend_in(reap, &builder, "text"); }
static void with_extend(void **reap) { reapExtend(reap, &builder, 10); }
static void with_finish(void **reap) { reapFinish(reap, &builder); }
static void with_enter_quietly(void **reap) { reapEnterQuietly(reap); }
static void with_parent(void **reap) { reapParent(reap); }
static void with_trim(void **reap) { reapTrim(reap, 0); }
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
 * what it finds there may crash it; so may an address where nothing is. */
enum { TAKES_NULL = 1, BELIEVES = 2, READS = 4 };

static const struct {
    const char *call;
    void (*make)(void **reap);
    unsigned but;
} calls[] = {{"reapCreate", with_create, TAKES_NULL},
             {"reapCreateWith", with_create_with, TAKES_NULL},
             {"reapMalloc", with_malloc, BELIEVES | READS},
             {"reapMalloc", with_malloc_large, READS},
             {"reapMalloc", with_malloc_huge, READS},
             {"reapMalloc", with_malloc_empty, READS},
             {"reapCalloc", with_calloc, 0},
             {"reapCalloc", with_calloc_large, 0},
             {"reapRealloc", with_realloc, 0},
             {"reapRealloc", with_realloc_null, 0},
             {"reapAlignedAlloc", with_aligned, 0},
             {"reapFree", with_free, BELIEVES | READS},
             {"reapStrdup", with_strdup, 0},
             {"reapStrndup", with_strndup, 0},
             {"reapMemdup", with_memdup, 0},
             {"reapPrintf", with_printf, 0},
             {"reapVprintf", with_vprintf, 0},
             {"reapAppend", with_append, 0},
             {"reapAppendString", with_append_string, 0},
             {"reapAppendf", with_appendf, 0},
             {"reapVappendf", with_vappendf, 0},
             {"reapExtend", with_extend, 0},
             {"reapFinish", with_finish, 0},
             {"reapEnterQuietly", with_enter_quietly, 0},
             {"reapParent", with_parent, 0},
             {"reapTrim", with_trim, 0},
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

static void assert_no_reap(void *handle, unsigned but)
{
    for (unsigned i = 0; i < CALLS; i++) {
        if (calls[i].but & but) continue;
        struct outcome outcome = run_child(ask, &(struct asked){handle, i});
        ck_assert_msg(is_misuse(&outcome, calls[i].call, handle, "not a live reap"), "%s", calls[i].call);
    }
}

static void make_other(void)
{
    reapCreate(&other, NULL);
    reapMark(&other, &mark);
}

TEST(no_reap_at_all) { assert_no_reap(NULL, TAKES_NULL); }

TEST(a_destroyed_reap)
{
    void *reap, *handle, *shared = new_shared(NULL, 0);
    reapCreate(&reap, NULL);
    handle = reap;
    reapDestroy(&reap);
    assert_no_reap(handle, 0);
    handle = shared;
    reapDestroy(&shared);
    assert_no_reap(handle, 0);
}

TEST(some_memory)
{
    static _Alignas(1024) char memory[4096];
    assert_no_reap(memory, BELIEVES);
    assert_no_reap(memory + REAP_HEADER, BELIEVES);
    assert_no_reap(memory + sizeof memory - REAP_FACE, BELIEVES);
    assert_no_reap(reapMalloc(&other, 100), BELIEVES);
    char *object = reapMalloc(&other, 100), *large = reapMalloc(&other, 100000);
    assert_no_reap(object + 16, BELIEVES);
    assert_no_reap((char *)other + 16, BELIEVES | READS);
    assert_no_reap((char *)other - REAP_HEADER, BELIEVES | READS);
    assert_no_reap(large + 8192, BELIEVES);
    assert_no_reap((void *)((uintptr_t)(large + 8192) / 1024 * 1024 + REAP_HEADER), BELIEVES);
    reapMalloc(&other, 100);
    reapFree(&other, object);
    assert_no_reap(object, BELIEVES);
    reapFree(&other, large);
    if (!reap_instrumented) assert_no_reap(large, BELIEVES | READS); /* else it is memory still */
}

/* Not even one that could be a reap's, by where it is in its KiB. */
TEST(no_memory_at_all, .modes = ORDINARY)
{
    uint64_t chance = random_seed();
    for (int i = 0; i < 20; i++) {
        uintptr_t wild = random_next(&chance) << random_below(&chance, 12) >> random_below(&chance, 24);
        if (i % 4 == 0) wild = wild / 1024 * 1024 + REAP_HEADER;
        if (i % 4 == 1) wild = wild / 1024 * 1024 + 1024 - REAP_FACE;
        if (wild) assert_no_reap((void *)wild, BELIEVES | READS);
    }
    assert_no_reap((void *)REAP_HEADER, BELIEVES | READS);
    assert_no_reap((void *)-(uintptr_t)(1024 - REAP_HEADER), BELIEVES | READS);
}

/* What was a reap's memory is nobody's: the OS has it back, with all around it. */
TEST(a_destroyed_reap_whose_memory_is_gone, .modes = ORDINARY)
{
    struct reap_options options = {.size = sizeof options, .first_chunk = (size_t)16 << 20};
    for (options.flags = 0; options.flags <= REAP_SHARED; options.flags += REAP_SHARED) {
        void *reap, *handle;
        ck_assert_int_eq(reapCreateWith(&reap, NULL, &options), 0);
        handle = reap;
        reapDestroy(&reap);
        needs(!reap_instrumented, "all objects are watched"); /* which keeps it */
        hoard_trim(0);
        assert_no_reap(handle, READS);
    }
}

/* --- what is no argument --------------------------------------------------------------------- */

static void null_create(void **reap) { (void)reap, (reapCreate)(OPAQUE((void **)NULL), NULL); }
static void null_create_with(void **reap)
{
    struct reap_options options = {.size = sizeof options};
    (void)reap;
    reapCreateWith(OPAQUE((void **)NULL), NULL, &options);
}
static void null_strdup(void **reap) { reapStrdup(reap, OPAQUE((char *)NULL)); }
static void null_strndup(void **reap) { reapStrndup(reap, OPAQUE((char *)NULL), 0); }
static void null_memdup(void **reap) { reapMemdup(reap, OPAQUE((void *)NULL), 1); }
static void null_printf(void **reap) { reapPrintf(reap, OPAQUE((char *)NULL), 0); }
static void null_vprintf(void **reap) { vprintf_in(reap, OPAQUE((char *)NULL)); }
static void null_append(void **reap) { reapAppend(reap, &builder, OPAQUE((char *)NULL), 1); }
static void null_append_to(void **reap) { reapAppend(reap, OPAQUE((reap_builder *)NULL), "text", 4); }
static void null_append_string(void **reap) { reapAppendString(reap, &builder, OPAQUE((char *)NULL)); }
static void null_append_string_to(void **reap) { reapAppendString(reap, OPAQUE((reap_builder *)NULL), "t"); }
static void null_appendf(void **reap) { reapAppendf(reap, &builder, OPAQUE((char *)NULL), 0); }
static void null_appendf_to(void **reap) { reapAppendf(reap, OPAQUE((reap_builder *)NULL), "text"); }
static void null_vappendf(void **reap) { vappend_in(reap, &builder, OPAQUE((char *)NULL)); }
static void null_vappendf_to(void **reap) { vappend_in(reap, OPAQUE((reap_builder *)NULL), "text"); }
static void null_extend(void **reap) { reapExtend(reap, OPAQUE((reap_builder *)NULL), 10); }
static void null_finish(void **reap) { reapFinish(reap, OPAQUE((reap_builder *)NULL)); }
static void null_of(void **reap) { reapOf(reap, OPAQUE((void **)NULL)); }
static void null_on_destroy(void **reap) { reapOnDestroy(reap, OPAQUE((void (*)(void *))NULL), NULL); }
static void null_mark(void **reap) { reapMark(reap, OPAQUE((reap_mark *)NULL)); }
static void null_rewind(void **reap) { reapRewind(reap, OPAQUE((reap_mark *)NULL)); }
static void null_unmark(void **reap) { reapUnmark(reap, OPAQUE((reap_mark *)NULL)); }
static void null_stats(void **reap) { reapStats(reap, OPAQUE((struct reap_stats *)NULL)); }
static void null_report(void **reap) { reapReport(reap, OPAQUE((FILE *)NULL)); }
static void null_walk(void **reap) { reapWalk(reap, OPAQUE((int (*)(void *, size_t, void *))NULL), NULL); }
static void null_move_from(void **reap) { reapMove(other, OPAQUE((void **)NULL), reap); }
static void null_move_to(void **reap) { reapMove(other, reap, OPAQUE((void **)NULL)); }

static const struct {
    const char *call;
    void (*make)(void **reap);
} nulls[] = {{"reapCreate", null_create},
             {"reapCreateWith", null_create_with},
             {"reapStrdup", null_strdup},
             {"reapStrndup", null_strndup},
             {"reapMemdup", null_memdup},
             {"reapPrintf", null_printf},
             {"reapVprintf", null_vprintf},
             {"reapAppend", null_append},
             {"reapAppend", null_append_to},
             {"reapAppendString", null_append_string},
             {"reapAppendString", null_append_string_to},
             {"reapAppendf", null_appendf},
             {"reapAppendf", null_appendf_to},
             {"reapVappendf", null_vappendf},
             {"reapVappendf", null_vappendf_to},
             {"reapExtend", null_extend},
             {"reapFinish", null_finish},
             {"reapOf", null_of},
             {"reapOnDestroy", null_on_destroy},
             {"reapMark", null_mark},
             {"reapRewind", null_rewind},
             {"reapUnmark", null_unmark},
             {"reapStats", null_stats},
             {"reapReport", null_report},
             {"reapWalk", null_walk},
             {"reapMove", null_move_from},
             {"reapMove", null_move_to}};

static void ask_null(void *arg) { nulls[*(unsigned *)arg].make(&other); }

static void ask_nothing(void *arg) { calls[*(unsigned *)arg].make(OPAQUE((void **)NULL)); }

/* Each argument that must not be NULL; that a handle's address may be, where it is a parent's, the header
 * says. */
TEST(an_argument_is_null)
{
    for (unsigned i = 0; i < sizeof nulls / sizeof *nulls; i++) {
        struct outcome outcome = run_child(ask_null, &i);
        ck_assert_msg(is_misuse(&outcome, nulls[i].call, NULL, "an argument is NULL"), "%s", nulls[i].call);
    }
    for (unsigned i = 0; i < CALLS; i++) {
        bool may_be =
            calls[i].make == with_report || (calls[i].but & TAKES_NULL && calls[i].make != with_destroy);
        if (may_be || calls[i].but & READS) continue;
        struct outcome outcome = run_child(ask_nothing, &i);
        ck_assert_msg(is_misuse(&outcome, calls[i].call, NULL, "an argument is NULL"), "%s", calls[i].call);
    }
}

static void (*no_function)(void *);

/* Those that are errors, and those that are nothing wrong. */
TEST(a_null_that_is_no_misuse)
{
    void *reap = &reap;
    void *block;
    ck_assert_int_eq(reapCreateWith(&reap, NULL, OPAQUE((struct reap_options *)NULL)), -1);
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_ptr_null(reap);
    ck_assert_int_eq(reapCancelOnDestroy(&other, OPAQUE(no_function), NULL), -1);
    ck_assert_int_eq(errno, ENOENT);
    ck_assert_int_eq(reapSetName(&other, NULL), 0);
    ck_assert_uint_eq(reapUsableSize(NULL), 0);
    ck_assert_int_eq(reapOf(NULL, &reap), -1);
    ck_assert_ptr_nonnull(reapMemdup(&other, NULL, 0));
    reapFree(&other, NULL);
    ck_assert_int_eq(hoard_stats(NULL), -1);
    ck_assert_int_eq(hoard_posix_memalign(NULL, 64, 64), EINVAL);
    ck_assert_int_eq(hoard_posix_memalign(&block, 64, 64), 0);
    hoard_free(block);
    ck_assert_uint_eq(hoard_usable_size(NULL), 0);
    hoard_free(hoard_realloc(NULL, 10));
    hoard_free(NULL);
}

/* A buffer that goes on at address 0. */
TEST(a_buffer_that_wraps, .modes = ORDINARY)
{
    struct reap_options options = {
        .size = sizeof options, .buffer = (void *)-(uintptr_t)8192, .buffer_size = 16384};
    void *reap;
    ck_assert_int_eq(reapCreateWith(&reap, NULL, &options), -1);
    ck_assert_int_eq(errno, EINVAL);
    options.buffer_size = SIZE_MAX;
    ck_assert_int_eq(reapCreateWith(&reap, NULL, &options), -1);
    ck_assert_int_eq(errno, EINVAL);
}

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

TEST(what_is_no_object_of_it)
{
    static int in_data;
    int on_stack;
    reapCreate(&reap, NULL);
    char *freed = reapMalloc(&reap, 100), *object = reapMalloc(&reap, 100), *last = reapMalloc(&reap, 100);
    char *large = reapMalloc(&reap, 100000), *freed_large = reapMalloc(&reap, 100000);
    void *handle = reap, *block = malloc(100);
    memset(object, 1, 100);
    reapFree(&reap, freed);
    reapFree(&reap, freed_large);
    assert_no_object(freed, "freed twice");
    assert_no_object(freed_large,
                     reap_instrumented ? "freed twice" : "not a reap's object"); /* its chunk is gone */
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
    assert_no_object(large, reap_instrumented ? "not a live object" : "not a reap's object");
    free(block);
    reapDestroy(&reap);
}

/* Writes the header of a live chunk of a large object to another place. */
static char *forge_chunk(const struct reap_chunk *chunk, char *at)
{
    struct reap_chunk *forged = memcpy(at, chunk, REAP_HEADER);
    forged->tag = reap_chunk_tag(forged);
    return at;
}

/* In a span, a large object starts behind the chunk's header. Anything else at that distance from a
 * multiple of 64 KiB is no large object, even if a program has written there what is in a header. */
TEST(what_is_no_large_object)
{
    enum { SIZE = 300000 };
    if (reap_instrumented) return; /* their chunks lie elsewhere */
    reapCreate(&reap, NULL);
    char *large = reapMalloc(&reap, SIZE), *aligned = reapAlignedAlloc(&reap, 4096, SIZE), *small = NULL;
    char *block = hoard_malloc(SIZE);
    struct reap_chunk *chunk = chunk_of(large, NULL), *regular = chunk;
    ck_assert_ptr_eq(reap_address(chunk->first), large);
    ck_assert_uint_eq((uintptr_t)chunk % SUPERBLOCK, 0);
    assert_no_object(forge_chunk(chunk, (char *)chunk + SUPERBLOCK) + REAP_HEADER,
                     "not the start of an object");
    assert_no_object((char *)chunk_of(aligned, NULL) + REAP_HEADER, "not the start of an object");
    ck_assert_uint_eq((uintptr_t)block % SUPERBLOCK, 0);
    assert_no_object(forge_chunk(chunk, block) + REAP_HEADER, "not a reap's object");
    for (int i = 0; i < 100000 && (regular->kind != REAP_REGULAR || regular->size < SUPERBLOCK); i++) {
        small = reapMalloc(&reap, 1000);
        regular = chunk_of(small, NULL);
    }
    ck_assert_uint_eq(regular->size, SUPERBLOCK); /* a span too, with an object where a large one would be */
    ck_assert_ptr_eq(small, (char *)regular + REAP_HEADER);
    ck_assert_uint_eq(reapUsableSize(small), 1008);
    reapFree(&reap, large);
    reapFree(&reap, aligned);
    reapFree(&reap, small);
    assert_valid(reap);
    hoard_free(block);
    reapDestroy(&reap);
}

/* Without a limit, and with one. */
TEST(large_objects_that_are_freed)
{
    reapCreate(&reap, NULL);
    size_t held = stats_of(reap).chunk_bytes;
    void *objects[3];
    for (unsigned i = 0; i < 3; i++) objects[i] = reapMalloc(&reap, 50000 + i * 40000);
    ck_assert_uint_ge(stats_of(reap).chunk_bytes, held + 3 * 50000);
    for (unsigned i = 0; i < 3; i++) {
        errno = 7;
        reapFree(&reap, objects[(i + 1) % 3]);
        ck_assert_int_eq(errno, 7);
        assert_valid(reap);
    }
    ck_assert_uint_eq(stats_of(reap).live_bytes, 0);
    if (reap_mode == MODE_ORDINARY) ck_assert_uint_eq(stats_of(reap).chunk_bytes, held);
    ck_assert_int_eq(reapSetLimit(&reap, 100000), 0);
    for (int i = 0; i < 5; i++) {
        void *object = reapMalloc(&reap, 60000);
        ck_assert_ptr_nonnull(object);
        ck_assert_ptr_null(reapMalloc(&reap, 60000));
        reapFree(&reap, object);
        assert_valid(reap);
    }
    reapDestroy(&reap);
}

enum { EACH = 4, PIECES = 3 * EACH };

static struct reap *owner_of(const void *object)
{
    const struct reap_chunk *chunk = chunk_of(object, NULL);
    return chunk->owner;
}

/* Objects of several parts, if that is the mode: on one CPU no two parts are found in turn. */
static void make_pieces(void **of, void **pieces)
{
    bool differ = false;
    reapCreate(of, NULL);
    for (int i = 0; i < PIECES; i++) {
        pieces[i] = memset(reapMalloc(of, 100), 1, 100);
        differ = differ || owner_of(pieces[i]) != owner_of(pieces[0]);
    }
    ck_assert_int_eq(differ, reap_mode == MODE_PARTS && !reap_instrumented);
}

/* The mistakes are made in another part than the one that has the object, and in its own; some of the freed
 * objects wait in an outbox. */
TEST(what_is_no_object_in_any_part)
{
    void *pieces[PIECES], *others[PIECES], *another;
    if (reap_mode == MODE_PARTS) needs_cpus(2);
    make_pieces(&reap, pieces);
    make_pieces(&another, others);
    for (int i = EACH; i < 2 * EACH; i++) {
        reapFree(&reap, pieces[i]);
        if (i % 2) reapMalloc(&reap, 16); /* so that the turns of parts differ */
    }
    for (int i = EACH; i < 2 * EACH; i++) assert_no_object(pieces[i], "freed twice");
    for (int i = 0; i < EACH; i++) {
        assert_no_object((char *)pieces[i] + 16, "not the start of an object");
        assert_no_object((char *)pieces[i] + 1, "not the start of an object");
        assert_no_object(others[i], "an object of another reap");
    }
    reapFreeAll(&reap);
    for (int i = 0; i < PIECES; i++) assert_no_object(pieces[i], "not a live object");
    reapDestroy(&reap);
    reap = another;
    assert_no_object(pieces[0], "not a live object");
}

/* Only the face is the handle. */
TEST(the_reaps_behind_a_face, .modes = NOT_ORDINARY)
{
    void *pieces[PIECES];
    if (reap_mode == MODE_PARTS) needs_cpus(2);
    make_pieces(&reap, pieces);
    assert_no_reap((void *)(uintptr_t)reap_behind(reap), BELIEVES | READS);
    for (int i = 0; i < EACH; i++) assert_no_reap(owner_of(pieces[i]), BELIEVES | READS); /* a part's */
}

/* --- what the program adds -------------------------------------------------------------------- */

static void say_more(char *line, size_t size, const char *call, const void *pointer, const char *what)
{
    size_t n = strlen(line);
    snprintf(line + n, size - n, ", as %s(%p): %s in a test", call, pointer, what);
}

static void say_too_much(char *line, size_t size, const char *call, const void *pointer, const char *what)
{
    (void)call, (void)pointer, (void)what;
    memset(line, 'x', size);
}

static void err(char *line, size_t size, const char *call, const void *pointer, const char *what)
{
    reapFree(&reap, (void *)(uintptr_t)pointer);
    say_more(line, size, call, pointer, what);
}

struct said {
    reap_misuse_line *fn;
    void *object;
};

static void free_twice(void *arg)
{
    const struct said *said = arg;
    reapOnMisuse(said->fn);
    reapFree(&reap, said->object);
    reapFree(&reap, said->object);
}

static struct outcome line_of(reap_misuse_line *fn, void *object)
{
    struct outcome outcome = run_child(free_twice, &(struct said){fn, object});
    ck_assert(WIFSIGNALED(outcome.status) && WTERMSIG(outcome.status) == SIGABRT);
    return outcome;
}

TEST(a_line_with_more)
{
    char more[200];
    reapCreate(&reap, NULL);
    void *object = reapMalloc(&reap, 100);
    ck_assert(!reapOnMisuse(say_more) && reapOnMisuse(NULL) == say_more && !reapOnMisuse(NULL));
    snprintf(more, sizeof more, "freed twice, as reapFree(%p): freed twice in a test", object);
    struct outcome outcome = line_of(say_more, object);
    ck_assert(is_misuse(&outcome, "reapFree", object, more));
    outcome = line_of(err, object); /* its own mistake gets the plain line */
    ck_assert(is_misuse(&outcome, "reapFree", object, "freed twice"));
    outcome = line_of(say_too_much, object);
    size_t n = strspn(outcome.text, "x");
    ck_assert_msg(n > 500 && strcmp(outcome.text + n, "\n") == 0, "%s", outcome.text);
}

int main(void) { return run_tests((struct suite){.begin = make_other, .modes = ALL_MODES}); }
