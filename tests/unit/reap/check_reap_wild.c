/* SPDX-License-Identifier: Apache-2.0 */
/* check_reap_wild.c: pointers before, at, in and behind every kind of chunk, given to each call that takes an
 * object: what is no live object of the reap ends in the one line that names the call. */
#include "support/check_reap.h"

#include "hoard/apart.h"
#include "region/reap_chunk.h"

static void *reap, *other;

/* --- the calls ------------------------------------------------------------------------------- */

static void free_it(void *object) { reapFree(&reap, object); }
static void resize_it(void *object) { reapRealloc(&reap, object, 10); }
static void resize_much(void *object) { reapRealloc(&reap, object, 1000000); }
static void move_it(void *object) { reapMove(object, &reap, &other); }
static void measure_it(void *object) { reapUsableSize(object); }
static void hoard_free_it(void *object) { hoard_free(object); }
static void hoard_resize_it(void *object) { ck_assert_ptr_null(hoard_realloc(object, 1000)); }
static void hoard_measure_it(void *object) { ck_assert_uint_eq(hoard_usable_size(object), 0); }

static const struct {
    const char *call;
    void (*make)(void *object);
    bool of_any; /* an object of any reap will do */
} uses[] = {{"reapFree", free_it, false},
            {"reapRealloc", resize_it, false},
            {"reapRealloc", resize_much, false},
            {"reapMove", move_it, false},
            {"reapUsableSize", measure_it, true},
            {"hoard_free", hoard_free_it, true},
            {"hoard_realloc", hoard_resize_it, true},
            {"hoard_usable_size", hoard_measure_it, true}};
enum { USES = sizeof uses / sizeof uses[0], REAPS_USES = 5 };

/* One line that begins so, and the end. */
static bool has_one_line(const struct outcome *outcome, const char *call, const void *pointer)
{
    char line[100];
    snprintf(line, sizeof line, "reap: %s(0x%lx): ", call, (unsigned long)pointer);
    return WIFSIGNALED(outcome->status) && WTERMSIG(outcome->status) == SIGABRT &&
           lines_of(outcome->text) == 1 && strncmp(outcome->text, line, strlen(line)) == 0;
}

static int is_it(void *object, size_t size, void *pointer) { return size && object == pointer; }

static unsigned tried;

static bool is_beside(const char *pointer, const void *block)
{
    return block && (uintptr_t)pointer / SUPERBLOCK == (uintptr_t)block / SUPERBLOCK;
}

/* Returns true if it may be the start of a block of the backend's, beside what the reaps themselves have
 * there. */
static bool is_the_backends(const char *pointer)
{
    const struct reap *it = reap_behind(reap);
    if (!reap_is_shared(it)) return false;
    for (int i = 0; i < 2; i++, it = reap_behind(other)) {
        if (is_beside(pointer, reap_face(it)->table)) return true;
        while ((it = reap_next_part(it)))
            if (is_beside(pointer, reap_own_part(it))) return true;
    }
    return false;
}

/* In make check, shared reaps have a third of the pointers. */
static bool is_left_out(void)
{
    static unsigned turn;
    return reap_mode != MODE_ORDINARY && turn++ % shorter(1, 3) != 0;
}

static void try_pointer(const char *kind, const char *pointer)
{
    if (is_left_out()) return;
    bool mine = reapWalk(&reap, is_it, (void *)(uintptr_t)pointer);
    bool others = reapWalk(&other, is_it, (void *)(uintptr_t)pointer);
    /* What is before an object apart is the start of a block perhaps, and of the backend's alone; as a reap's
     * wider table is, and that of parts. */
    unsigned n = apart_on || is_the_backends(pointer) ? REAPS_USES : USES;
    for (unsigned i = 0; i < n && pointer; i++) {
        if (mine || (others && uses[i].of_any)) continue;
        struct outcome outcome = run_child(uses[i].make, (void *)(uintptr_t)pointer);
        ck_assert_msg(has_one_line(&outcome, uses[i].call, pointer), "%s: %s(%p): status %x, %s", kind,
                      uses[i].call, (const void *)pointer, outcome.status, outcome.text);
        tried++;
    }
}

/* Around an address. */
static void try_around(const char *kind, const char *at)
{
    static const ptrdiff_t offsets[] = {-4096, -512, -496, -32, -16, -8, -1, 0, 1, 8, 16, 32, 512};
    for (size_t i = 0; i < sizeof offsets / sizeof offsets[0]; i++) try_pointer(kind, at + offsets[i]);
}

static void try_chunk(const char *kind, const struct reap_chunk *chunk)
{
    const char *start = (const char *)chunk;
    try_around(kind, start);
    try_around(kind, start + chunk->size);
    try_pointer(kind, start + REAP_HEADER);
    try_pointer(kind, start + chunk->size / 2 + 8);
    if (!reap_chunk_is_apart(chunk)) try_around(kind, reap_address(chunk->first));
}

/* All that a reap has, and around where it bumps. */
static void try_all(const char *kind)
{
    const struct reap *it = reap_behind(reap);
    const struct reap_chunk *last = NULL;
    unsigned regular = 0;
    if (it->bump) try_around(kind, it->bump);
    for (const struct reap_chunk *chunk = reap_chunk_begin(it); chunk; chunk = reap_chunk_after(it, chunk)) {
        bool is_one_of_many = chunk->kind == REAP_REGULAR && chunk != it->current;
        if (is_one_of_many && chunk != reap_first_chunk(it) && regular++ > 2) continue; /* enough */
        try_chunk(kind, chunk);
        last = chunk;
    }
    if (it->spare_bytes) try_chunk(kind, it->spares);
    ck_assert_ptr_eq(last, reap_first_chunk(it));
    ck_assert_uint_gt(tried, 0);
    assert_valid(reap);
}

/* --- kinds of reaps -------------------------------------------------------------------------- */

static void make_other(void)
{
    reapCreate(&other, NULL);
    reapMalloc(&other, 100);
}

static void make_some(int count, size_t size)
{
    for (int i = 0; i < count; i++) memset(reapMalloc(&reap, size), 1, size);
}

TEST(of_a_first_chunk)
{
    reapCreate(&reap, NULL);
    make_some(20, 100);
    try_all("a first chunk");
    reapFreeAll(&reap);
    try_all("a reap that was cleared");
}

/* The one that was first, what comes next, and a large object's. */
TEST(of_several_chunks)
{
    reapCreate(&reap, NULL);
    make_some(900, 60);
    reapMalloc(&reap, 100000);
    try_all("several chunks");
}

/* What the map of chunks has at the place of an object, of an open chunk and of a quiet one. */
TEST(four_gib_away)
{
    char *object = NULL;
    reapCreate(&reap, NULL);
    for (int i = 0; i < 100; i++) {
        reapFree(&reap, object);
        object = reapMalloc(&reap, 60);
        make_some(1, 60);
    }
    for (int round = 0; round < 2; round++) {
        try_pointer("4 GiB below an object", object - ((ptrdiff_t)1 << 32));
        try_pointer("4 GiB above an object", object + ((ptrdiff_t)1 << 32));
        reapTrim(&reap, 0);
    }
    ck_assert_uint_gt(tried, 0);
    assert_valid(reap);
}

/* A chunk of the reap with one object in it, so that what ends below the chunk is near the bump pointer; and
 * right above another one of the reap. NULL: nowhere they have come to lie so. */
static const struct reap_chunk *begin_above_another(void)
{
    for (int i = 0; i < 1000; i++) {
        reapCreate(&reap, NULL);
        const struct reap *it = reap_behind(reap);
        for (const struct reap_chunk *was = it->current; it->held < 1024 * 1024; was = it->current) {
            make_some(1, 48);
            if (it->current == was) continue;
            const struct reap_chunk *below = chunk_of((char *)it->current - 1, NULL);
            if (below && reap_chunk_is_live(below) && below->owner == it && below != reap_first_chunk(it))
                return it->current;
        }
    }
    return NULL;
}

TEST(of_two_chunks_side_by_side)
{
    needs(reap_mode != MODE_PARTS, "other parts have chunks in between");
    const struct reap_chunk *above = begin_above_another();
    ck_assert_ptr_nonnull(above);
    try_chunk("two chunks side by side", above);
}

/* Its own objects there are freed, and nothing else. */
static int free_near(void *object, size_t size, void *above)
{
    if (size && object < above && (char *)object > (char *)above - 256) reapFree(&reap, object);
    return 0;
}

TEST(objects_right_below_the_current_chunk)
{
    needs(reap_mode != MODE_PARTS, "other parts have chunks in between");
    const struct reap_chunk *above = begin_above_another();
    ck_assert_ptr_nonnull(above);
    size_t before = stats_of(reap).live_objects;
    reapWalk(&reap, free_near, (void *)(uintptr_t)above);
    ck_assert_uint_lt(stats_of(reap).live_objects, before);
    reapDestroy(&reap);
}

/* Push and pop, through many chunks. */
TEST(objects_come_and_go_last_in_first_out)
{
    enum { STEPS = 1000000 };
    static void *stack[STEPS];
    uint64_t chance = random_seed();
    unsigned steps = steps_of(STEPS), n = 0;
    reapCreate(&reap, NULL);
    for (unsigned i = 0; i < steps; i++) {
        if (n > 0 && random_below(&chance, 2))
            reapFree(&reap, stack[--n]);
        else
            stack[n++] = reapMalloc(&reap, 16 + random_below(&chance, 48));
    }
    ck_assert_uint_eq(stats_of(reap).live_objects, n);
    while (n > 0) reapFree(&reap, stack[--n]);
    reapDestroy(&reap);
}

/* All is freed, and nothing is current. */
TEST(of_no_current_chunk)
{
    void *objects[400];
    reapCreate(&reap, NULL);
    for (int i = 0; i < 400; i++) objects[i] = reapMalloc(&reap, 100);
    for (int i = 0; i < 400; i++) reapFree(&reap, objects[i]);
    reapTrim(&reap, 0);
    if (reap_mode != MODE_PARTS) ck_assert_ptr_null(reap_behind(reap)->current);
    try_all("no current chunk");
    for (uintptr_t down = 1; down <= 528; down += down < 33 ? 1 : 15)
        try_pointer("no address", (char *)-down);
    for (uintptr_t up = 1; up <= 33; up += 8) try_pointer("no address", (char *)up);
}

/* Chunks whose gaps are on no lists. */
TEST(of_quiet_chunks)
{
    enum { COUNT = 60000 };
    static void *objects[COUNT];
    reapCreate(&reap, NULL);
    for (int i = 0; i < COUNT; i++) objects[i] = reapMalloc(&reap, 16 + (size_t)i % 7 * 16);
    for (int i = 0; i < COUNT; i++)
        if (i % 8) reapFree(&reap, objects[i]);
    const struct reap *it = reap_behind(reap);
    for (const struct reap_chunk *chunk = it->chunks; chunk; chunk = chunk->next)
        if (chunk->state == REAP_CHUNK_QUIET) {
            try_chunk("a quiet chunk", chunk);
            break;
        }
}

TEST(of_spares)
{
    reapCreate(&reap, NULL);
    make_some(900, 60);
    reapFreeAll(&reap);
    ck_assert_uint_ne(reap_behind(reap)->spare_bytes, 0);
    try_all("spares");
}

TEST(of_a_marked_reap)
{
    reap_mark mark;
    reapCreate(&reap, NULL);
    make_some(10, 60);
    reapMark(&reap, &mark);
    make_some(200, 60);
    try_all("a marked reap");
    reapRewind(&reap, &mark);
    try_all("a rewound reap");
}

static _Alignas(4096) char memory[16 * 4096];
static size_t taken;

static void *take(size_t size, void *arg)
{
    char *chunk = (char *)arg + taken;
    if (taken + size > sizeof memory - 8192) return NULL;
    taken += size;
    return chunk;
}

static void give(void *chunk, size_t size, void *arg)
{
    if (!chunk || !size || !arg) abort();
}

/* In the middle of memory, so that around it is some, too. */
TEST(of_memory_of_the_users, .times = 3)
{
    struct reap_options options = {.size = sizeof options};
    if (_i != 1) {
        options.buffer = memory + 4096;
        options.buffer_size = 8192;
    }
    if (_i != 0) options.source = (struct reap_source){take, give, memory + 3 * 4096};
    options.flags = flags_of_mode();
    ck_assert_int_eq(reapCreateWith(&reap, NULL, &options), 0);
    make_some(_i == 0 ? 30 : 200, 60);
    try_all(_i == 0 ? "a buffer" : _i == 1 ? "a source" : "both");
}

/* Each object apart: around one, and a large one. */
TEST(of_objects_apart, .times = 2, .modes = NOT_IN_PARTS, .apart = true)
{
    static const char *const how[] = {"harden=1", "bypass=1"};
    setenv("REAP_OPTIONS", how[_i], 1);
    make_other();
    reapCreate(&reap, NULL);
    ck_assert(apart_on);
    char *object = reapMalloc(&reap, 100), *large = reapMalloc(&reap, 100000);
    try_around(how[_i], object);
    try_around(how[_i], object + 112);
    try_around(how[_i], large);
    try_around(how[_i], large + 100000);
}

int main(void) { return run_tests((struct suite){.begin = make_other, .modes = ALL_MODES}); }
