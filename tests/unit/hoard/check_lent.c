/* SPDX-License-Identifier: Apache-2.0 */
/* check_lent.c: the table of users' memory against a model; and reaps in buffers in reaps. */
#include "support/check_reap.h"

#include "hoard/user_memory.h"

enum { CELLS = 300, PIECES = 60, STEPS = 4000 };

static char cells[CELLS][USER_MEMORY_ALIGN] __attribute__((aligned(USER_MEMORY_ALIGN)));

struct piece {
    unsigned start, end; /* cells; none when these are equal */
};
static struct piece pieces[PIECES];

static bool holds(const struct piece *piece, unsigned cell)
{
    return piece->start <= cell && cell < piece->end;
}

/* The piece that holds a cell, or NULL. */
static const struct piece *piece_at(unsigned cell)
{
    for (const struct piece *piece = pieces; piece < pieces + PIECES; piece++)
        if (holds(piece, cell)) return piece;
    return NULL;
}

static bool is_within(const struct piece *inner, const struct piece *outer)
{
    return outer->start < inner->start && inner->end <= outer->end;
}

/* What adding it returns: one may not lie in another one, and not across one's ends. */
static int expected_of(const struct piece *new)
{
    int expected = 0;
    for (const struct piece *piece = pieces; piece < pieces + PIECES; piece++) {
        if (piece->start == piece->end || new->end <= piece->start || piece->end <= new->start) continue;
        if (!is_within(new, piece)) return EEXIST;
        expected = EINVAL;
    }
    return expected;
}

static int note(void *start, size_t size, void *arg)
{
    unsigned *seen = arg, cell = (unsigned)((char *)start - cells[0]) / USER_MEMORY_ALIGN;
    const struct piece *piece = pieces;
    while (piece < pieces + PIECES && (piece->start != cell || piece->end == cell)) piece++;
    ck_assert(piece < pieces + PIECES);
    ck_assert_uint_eq(size, (piece->end - piece->start) * (size_t)USER_MEMORY_ALIGN);
    ++*seen;
    return 0;
}

static void compare(void)
{
    unsigned there = 0, seen = 0, wrong = 0;
    for (unsigned i = 0; i < PIECES; i++) there += pieces[i].start != pieces[i].end;
    for (unsigned cell = 0; cell < CELLS; cell++) {
        const struct piece *piece = piece_at(cell);
        size_t size = 0, expected = piece ? (piece->end - piece->start) * (size_t)USER_MEMORY_ALIGN : 0;
        void *found = user_memory_find(&cells[cell][cell % USER_MEMORY_ALIGN], &size);
        wrong += found != (piece ? cells[piece->start] : NULL) || size != expected;
    }
    ck_assert_uint_eq(wrong, 0);
    user_memory_freeze();
    user_memory_walk(note, &seen);
    user_memory_thaw();
    ck_assert_uint_eq(seen, there);
}

static void add(struct piece *piece, uint64_t *random)
{
    unsigned length = 1 + random_below(random, random_below(random, 4) ? 12 : 200);
    struct piece new = {.start = random_below(random, CELLS - length + 1)};
    new.end = new.start + length;
    int expected = expected_of(&new);
    ck_assert_int_eq(user_memory_add(cells[new.start], length * (size_t)USER_MEMORY_ALIGN), expected);
    if (expected == 0) *piece = new;
}

TEST(pieces_against_a_model)
{
    uint64_t random = random_seed();
    for (unsigned step = 0, steps = steps_of(STEPS); step < steps; step++) {
        struct piece *piece = &pieces[random_below(&random, PIECES)];
        if (piece->start == piece->end) {
            add(piece, &random);
        } else {
            user_memory_remove(cells[piece->start]);
            *piece = (struct piece){0, 0};
        }
        compare();
    }
    for (unsigned i = 0; i < PIECES; i++)
        if (pieces[i].start != pieces[i].end) user_memory_remove(cells[pieces[i].start]);
    ck_assert_uint_eq(user_memory_any, 0);
    memset(pieces, 0, sizeof pieces);
    compare();
}

static void *in_buffer(void *buffer, size_t size)
{
    void *reap;
    struct reap_options options = {.size = sizeof options, .buffer = buffer, .buffer_size = size};
    ck_assert_int_eq(reapCreateWith(&reap, NULL, &options), 0);
    return reap;
}

static void assert_owner(const void *object, void *reap)
{
    void *owner;
    ck_assert_int_eq(reapOf(object, &owner), 0);
    ck_assert_ptr_eq(owner, reap);
}

TEST(a_buffer_in_an_object_of_a_reap)
{
    void *outer;
    reapCreate(&outer, NULL);
    void *before = reapMalloc(&outer, 100), *room = reapMalloc(&outer, 65536),
         *behind = reapMalloc(&outer, 100);
    void *inner = in_buffer(room, 65536), *object = reapMalloc(&inner, 100);
    assert_owner(object, inner);
    assert_owner(before, outer);
    assert_owner(behind, outer);
    assert_valid(outer);
    assert_valid(inner);
    struct reap_options deep = {
        .size = sizeof deep, .buffer = reapMalloc(&inner, 16384), .buffer_size = 16384};
    void *third = &deep;
    errno = 0;
    if (!apart_on) { /* there objects lie in no buffer */
        ck_assert_int_eq(reapCreateWith(&third, NULL, &deep), -1);
        ck_assert_int_eq(errno, EINVAL);
        ck_assert_ptr_null(third);
    }
    assert_owner(deep.buffer, inner);
    reapFree(&outer, before);
    reapFree(&outer, behind);
    reapDestroy(&inner);
    reapFree(&outer, room);
    ck_assert_uint_eq(stats_of(outer).live_bytes, 0);
    reapDestroy(&outer);
}

static void *take(size_t size, void *reap) { return reapAlignedAlloc(reap, 4096, size); }

static void give(void *chunk, size_t size, void *reap)
{
    (void)size;
    reapFree(reap, chunk);
}

/* Layers: each reap has its chunks from the one above it. A layer more would be too deep. */
TEST(a_source_of_sources)
{
    enum { LAYERS = 2, OBJECTS = 500 };
    void *layers[LAYERS + 1] = {NULL}, *objects[LAYERS][OBJECTS];
    reapCreate(&layers[0], NULL);
    for (unsigned i = 1; i < LAYERS + (apart_on ? 0u : 1u); i++) { /* apart, no chunk lies in another */
        struct reap_options options = {.size = sizeof options, .source = {take, give, &layers[i - 1]}};
        errno = 0;
        ck_assert_int_eq(reapCreateWith(&layers[i], NULL, &options), i < LAYERS ? 0 : -1);
        if (i == LAYERS) ck_assert_int_eq(errno, EINVAL);
    }
    ck_assert_ptr_null(layers[LAYERS]);
    ck_assert_uint_eq(stats_of(layers[LAYERS - 1]).live_bytes, 0);
    for (unsigned k = 0; k < OBJECTS; k++)
        for (unsigned i = 0; i < LAYERS; i++)
            objects[i][k] = reapMalloc(&layers[i], k % 50 ? 10 + k % 300 : 50000);
    for (unsigned k = 0; k < OBJECTS; k++)
        for (unsigned i = 0; i < LAYERS; i++) {
            assert_owner(objects[i][k], layers[i]);
            reapFree(&layers[i], objects[i][k]);
        }
    for (unsigned i = LAYERS; i-- > 0;) {
        ck_assert_uint_eq(stats_of(layers[i]).live_bytes, 0);
        reapDestroy(&layers[i]);
    }
}

static void give_to_owner(void *chunk, size_t size, void *unused)
{
    void *owner;
    (void)size, (void)unused;
    ck_assert_int_eq(reapOf(chunk, &owner), 0);
    reapFree(&owner, chunk);
}

/* A source whose first chunk lies at a depth that may be, and its next one deeper. */
TEST(a_source_that_goes_too_deep)
{
    static _Alignas(1024) char buffer[1 << 20];
    void *root, *inner = in_buffer(buffer, sizeof buffer), *reap;
    needs(!apart_on, "objects lie in no chunk of a source");
    reapCreate(&root, NULL);
    void *from = root;
    struct reap_options options = {.size = sizeof options, .source = {take, give_to_owner, &from}};
    ck_assert_int_eq(reapCreateWith(&reap, NULL, &options), 0);
    from = inner;
    size_t live = stats_of(inner).live_bytes;
    errno = 0;
    ck_assert_ptr_null(reapMalloc(&reap, 50000));
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_uint_eq(stats_of(inner).live_bytes, live);
    from = root;
    ck_assert_ptr_nonnull(reapMalloc(&reap, 50000));
    assert_valid(reap);
    reapDestroy(&reap);
    reapDestroy(&inner);
    reapDestroy(&root);
}

TEST(memory_that_is_a_reaps_already)
{
    static _Alignas(1024) char buffer[65536];
    void *reap = in_buffer(buffer, 32768), *other = &other;
    char *const overlapping[] = {buffer, buffer + 16384};
    char *object = reapMalloc(&reap, 100);
    memset(object, 1, 100);
    for (unsigned i = 0; i < 2; i++) {
        struct reap_options options = {
            .size = sizeof options, .buffer = overlapping[i], .buffer_size = 32768};
        errno = 0;
        ck_assert_int_eq(reapCreateWith(&other, NULL, &options), -1);
        ck_assert_int_eq(errno, EINVAL);
        ck_assert_ptr_null(other);
    }
    assert_valid(reap);
    ck_assert(all_bytes(object, 100, 1));
    reapDestroy(&reap);
    reap = in_buffer(buffer, sizeof buffer);
    reapDestroy(&reap);
}

/* The map of addresses has an entry for each 4 MiB, of which a large object may take the first part. */
TEST(a_buffer_behind_a_large_object)
{
    enum { SIZE = 65536, TRIES = 50 };
    void *large[TRIES], *buffer = MAP_FAILED;
    unsigned n = 0;
    while (n < TRIES && buffer == MAP_FAILED) {
        large[n] = hoard_malloc(33 * MIB);
        ck_assert_ptr_nonnull(large[n]);
        buffer = mmap((char *)large[n++] + 34 * MIB, SIZE, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    }
    ck_assert_ptr_ne(buffer, MAP_FAILED);
    void *reap = in_buffer(buffer, SIZE), *object = reapMalloc(&reap, 100);
    assert_owner(object, reap);
    reapFree(&reap, object);
    assert_valid(reap);
    reapDestroy(&reap);
    munmap(buffer, SIZE);
    while (n > 0) hoard_free(large[--n]);
}

int main(void) { return run_tests((struct suite){0}); }
