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

static const struct reap_options no_options = {.size = sizeof no_options};

/* A NULL handle is nothing wrong; any memory is believed to be a reap, for the fast path has no check, and
 * what it finds there may crash it; so may an address where nothing is; there need be no address of a handle.
 */
enum { TAKES_NULL = 1, BELIEVES = 2, READS = 4, NEEDS_NONE = 8 };

/* Each call that takes a reap, and which of these it is. reapCreate is in no mode of the test's. */
#define EACH_CALL(ROW)                                                                                       \
    ROW(reapCreate, TAKES_NULL | NEEDS_NONE, (reapCreate)(&other, reap))                                     \
    ROW(reapCreateWith, TAKES_NULL | NEEDS_NONE, reapCreateWith(&other, reap, &no_options))                  \
    ROW(reapMalloc, BELIEVES | READS, (reapMalloc)(reap, 100))                                               \
    ROW(reapMalloc, READS, reapMalloc(reap, 1000000))                                                        \
    ROW(reapMalloc, READS, reapMalloc(reap, OPAQUE(SIZE_MAX)))                                               \
    ROW(reapMalloc, READS, reapMalloc(reap, 0))                                                              \
    ROW(reapCalloc, 0, reapCalloc(reap, 10, 10))                                                             \
    ROW(reapCalloc, 0, reapCalloc(reap, 1000, 1000))                                                         \
    ROW(reapRealloc, 0, reapRealloc(reap, other, 1000))                                                      \
    ROW(reapRealloc, 0, reapRealloc(reap, NULL, 1000))                                                       \
    ROW(reapAlignedAlloc, 0, reapAlignedAlloc(reap, 64, 10))                                                 \
    ROW(reapFree, BELIEVES | READS, reapFree(reap, other))                                                   \
    ROW(reapStrdup, 0, reapStrdup(reap, "text"))                                                             \
    ROW(reapStrndup, 0, reapStrndup(reap, "text", 2))                                                        \
    ROW(reapMemdup, 0, reapMemdup(reap, "text", 4))                                                          \
    ROW(reapPrintf, 0, reapPrintf(reap, "text"))                                                             \
    ROW(reapVprintf, 0, vprintf_in(reap, "text"))                                                            \
    ROW(reapAppend, 0, reapAppend(reap, &builder, "text", 4))                                                \
    ROW(reapAppendString, 0, reapAppendString(reap, &builder, "text"))                                       \
    ROW(reapAppendf, 0, reapAppendf(reap, &builder, "text"))                                                 \
    ROW(reapVappendf, 0, vappend_in(reap, &builder, "text"))                                                 \
    ROW(reapExtend, 0, reapExtend(reap, &builder, 10))                                                       \
    ROW(reapFinish, 0, reapFinish(reap, &builder))                                                           \
    ROW(reapEnterQuietly, TAKES_NULL | NEEDS_NONE, reapEnterQuietly(reap))                                   \
    ROW(reapParent, 0, reapParent(reap))                                                                     \
    ROW(reapTrim, 0, reapTrim(reap, 0))                                                                      \
    ROW(reapSetName, 0, reapSetName(reap, "name"))                                                           \
    ROW(reapName, 0, reapName(reap))                                                                         \
    ROW(reapOnDestroy, 0, reapOnDestroy(reap, nothing, NULL))                                                \
    ROW(reapCancelOnDestroy, 0, reapCancelOnDestroy(reap, nothing, NULL))                                    \
    ROW(reapMark, 0, reapMark(reap, &mark))                                                                  \
    ROW(reapRewind, 0, reapRewind(reap, &mark))                                                              \
    ROW(reapUnmark, 0, reapUnmark(reap, &mark))                                                              \
    ROW(reapStats, 0, reapStats(reap, &stats))                                                               \
    ROW(reapReport, NEEDS_NONE, reapReport(reap, stderr))                                                    \
    ROW(reapWalk, 0, reapWalk(reap, no_object, NULL))                                                        \
    ROW(reapMove, 0, reapMove(other, reap, &other))                                                          \
    ROW(reapMove, 0, reapMove(reapMalloc(&other, 10), &other, reap))                                         \
    ROW(reapAdopt, 0, reapAdopt(reap, &other))                                                               \
    ROW(reapAdopt, TAKES_NULL | NEEDS_NONE, reapAdopt(&other, reap))                                         \
    ROW(reapEnter, TAKES_NULL | NEEDS_NONE, reapEnter(reap))                                                 \
    ROW(reapSetLimit, 0, reapSetLimit(reap, 1000))                                                           \
    ROW(reapOnLimit, 0, reapOnLimit(reap, NULL, NULL))                                                       \
    ROW(reapFreeAll, 0, reapFreeAll(reap))                                                                   \
    ROW(reapDestroy, TAKES_NULL, reapDestroy(reap))

#define NAMED(name, but, call) {#name, but},
static const struct {
    const char *name;
    unsigned but;
} calls[] = {EACH_CALL(NAMED)};
enum { CALLS = sizeof calls / sizeof calls[0] };

#define MADE(name, but, call)                                                                                \
    if (n-- == 0) (void)(call);
static void make_call(void **reap, unsigned n) { EACH_CALL(MADE) }

static unsigned asked;
static void ask(void *handle) { make_call(&handle, asked); }
static void ask_nothing(void *unused) { make_call(OPAQUE((void **)(unused = NULL)), asked); }

static void assert_no_reap(void *handle, unsigned but)
{
    for (asked = 0; asked < CALLS; asked++)
        if (!(calls[asked].but & but)) assert_misuse(ask, handle, calls[asked].name, "not a live reap");
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
    reapCreate(&reap, NULL);
    reapDestroy(reap); /* no handle is there to be cleared */
    assert_no_reap(reap, 0);
}

TEST(some_memory)
{
    static _Alignas(1024) char memory[4096];
    assert_no_reap(memory, BELIEVES);
    assert_no_reap(memory + REAP_HEADER, BELIEVES);
    assert_no_reap(memory + sizeof memory - REAP_FACE, BELIEVES);
    assert_no_reap(reapCalloc(&other, 1, 100), BELIEVES);
    char *object = reapCalloc(&other, 1, 100), *large = reapCalloc(&other, 1, 100000);
    assert_no_reap(object + 16, BELIEVES);
    assert_no_reap((char *)other + 16, BELIEVES | READS);
    assert_no_reap((char *)other - REAP_HEADER, BELIEVES | READS);
    assert_no_reap(large + 8192, BELIEVES);
    assert_no_reap((void *)((uintptr_t)(large + 8192) / 1024 * 1024 + REAP_HEADER), BELIEVES);
    reapMalloc(&other, 100);
    reapFree(&other, object);
    assert_no_reap(object, apart_on ? BELIEVES | READS : BELIEVES); /* links of malloc's are in it */
    reapFree(&other, large);
    if (!apart_on) assert_no_reap(large, BELIEVES | READS); /* else it is memory still */
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
        needs(!apart_on, "all objects are watched"); /* which keeps it */
        hoard_trim(0);
        assert_no_reap(handle, READS);
    }
}

/* --- what is no argument --------------------------------------------------------------------- */

/* Each argument that must not be NULL, but for the address of a handle. */
#define EACH_NULL(ROW)                                                                                       \
    ROW(reapCreate, (reapCreate)(OPAQUE((void **)NULL), NULL))                                               \
    ROW(reapCreateWith, reapCreateWith(OPAQUE((void **)NULL), NULL, &no_options))                            \
    ROW(reapStrdup, reapStrdup(reap, OPAQUE((char *)NULL)))                                                  \
    ROW(reapStrndup, reapStrndup(reap, OPAQUE((char *)NULL), 0))                                             \
    ROW(reapMemdup, reapMemdup(reap, OPAQUE((void *)NULL), 1))                                               \
    ROW(reapPrintf, reapPrintf(reap, OPAQUE((char *)NULL), 0))                                               \
    ROW(reapVprintf, vprintf_in(reap, OPAQUE((char *)NULL)))                                                 \
    ROW(reapAppend, reapAppend(reap, &builder, OPAQUE((char *)NULL), 1))                                     \
    ROW(reapAppend, reapAppend(reap, OPAQUE((reap_builder *)NULL), "text", 4))                               \
    ROW(reapAppendString, reapAppendString(reap, &builder, OPAQUE((char *)NULL)))                            \
    ROW(reapAppendString, reapAppendString(reap, OPAQUE((reap_builder *)NULL), "t"))                         \
    ROW(reapAppendf, reapAppendf(reap, &builder, OPAQUE((char *)NULL), 0))                                   \
    ROW(reapAppendf, reapAppendf(reap, OPAQUE((reap_builder *)NULL), "text"))                                \
    ROW(reapVappendf, vappend_in(reap, &builder, OPAQUE((char *)NULL)))                                      \
    ROW(reapVappendf, vappend_in(reap, OPAQUE((reap_builder *)NULL), "text"))                                \
    ROW(reapExtend, reapExtend(reap, OPAQUE((reap_builder *)NULL), 10))                                      \
    ROW(reapFinish, reapFinish(reap, OPAQUE((reap_builder *)NULL)))                                          \
    ROW(reapOf, reapOf(reap, OPAQUE((void **)NULL)))                                                         \
    ROW(reapOnDestroy, reapOnDestroy(reap, OPAQUE((void (*)(void *))NULL), NULL))                            \
    ROW(reapMark, reapMark(reap, OPAQUE((reap_mark *)NULL)))                                                 \
    ROW(reapRewind, reapRewind(reap, OPAQUE((reap_mark *)NULL)))                                             \
    ROW(reapUnmark, reapUnmark(reap, OPAQUE((reap_mark *)NULL)))                                             \
    ROW(reapStats, reapStats(reap, OPAQUE((struct reap_stats *)NULL)))                                       \
    ROW(reapReport, reapReport(reap, OPAQUE((FILE *)NULL)))                                                  \
    ROW(reapWalk, reapWalk(reap, OPAQUE((int (*)(void *, size_t, void *))NULL), NULL))                       \
    ROW(reapMove, reapMove(other, OPAQUE((void **)NULL), reap))                                              \
    ROW(reapMove, reapMove(other, reap, OPAQUE((void **)NULL)))

#define NAMED_NULL(name, call) #name,
static const char *const nulls[] = {EACH_NULL(NAMED_NULL)};

#define MADE_NULL(name, call)                                                                                \
    if (n-- == 0) (void)(call);
static void make_null(void **reap, unsigned n) { EACH_NULL(MADE_NULL) }

static void ask_null(void *unused) { (void)unused, make_null(&other, asked); }

/* Each argument that must not be NULL; that a handle's address may be, where it is a parent's, the header
 * says. */
TEST(an_argument_is_null)
{
    for (asked = 0; asked < sizeof nulls / sizeof *nulls; asked++)
        assert_misuse(ask_null, NULL, nulls[asked], "an argument is NULL");
    for (asked = 0; asked < CALLS; asked++)
        if (!(calls[asked].but & (NEEDS_NONE | READS)))
            assert_misuse(ask_nothing, NULL, calls[asked].name, "an argument is NULL");
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
        assert_misuse(uses[i].make, pointer, uses[i].call, said);
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
    assert_no_object(freed_large, apart_on ? "freed twice" : "not a reap's object"); /* its chunk is gone */
    assert_no_object(object + 16, "not the start of an object");
    assert_no_object(object + 1, "not the start of an object");
    assert_no_object(large + 50000, "not the start of an object");
    assert_no_object(handle, "not the start of an object");
    if (!apart_on) assert_no_object(last + 4096, "not a live object"); /* apart, an object may lie there */
    assert_no_object(reapMalloc(&other, 100), "an object of another reap");
    assert_no_object(reapMalloc(&other, 100000), "an object of another reap");
    assert_no_object(&on_stack, "not a reap's object");
    assert_no_object(&in_data, "not a reap's object");
    assert_no_object(block, "not a reap's object");
    assert_no_object((void *)16, "not a reap's object");
    assert_no_object((void *)-16, "not a reap's object");
    reapFreeAll(&reap);
    assert_no_object(object, "not a live object");
    assert_no_object(large, apart_on ? "not a live object" : "not a reap's object");
    free(block);
    reapDestroy(&reap);
}

/* Writes the header of a live chunk of a large object to another place, as one of an object there. */
static char *forge_chunk(const struct reap_chunk *chunk, char *at)
{
    struct reap_chunk *forged = memcpy(at, chunk, REAP_HEADER);
    forged->tag = reap_chunk_tag(forged);
    forged->first = reap_unit(at + REAP_HEADER);
    return at;
}

/* In a span, a large object starts behind the chunk's header. Anything else at that distance from a
 * multiple of 64 KiB is no large object, even if a program has written there what is in a header. */
TEST(what_is_no_large_object)
{
    enum { SIZE = 300000 };
    needs(!apart_on, "no chunk has one large object and its header");
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
    ck_assert_int_eq(differ, reap_mode == MODE_PARTS && !apart_on);
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
    for (int i = 0; i < PIECES; i++) /* apart, each one remembers its free */
        assert_no_object(pieces[i], apart_on && i / EACH == 1 ? "freed twice" : "not a live object");
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
