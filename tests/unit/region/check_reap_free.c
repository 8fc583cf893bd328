/* SPDX-License-Identifier: Apache-2.0 */
/* check_reap_free.c: freeing: what is used again, and what goes back; and the equations that hold meanwhile.
 */
#include <sys/mman.h>
#include <sys/resource.h>

#include "os/pages.h"
#include "region/reap_free.h"
#include "support/reap_fixture.h"

/* --- freeing --------------------------------------------------------------------------------- */

TEST(the_last_object_gives_its_memory_back_to_the_bump_pointer, .modes = NOT_IN_PARTS)
{
    needs(!apart_on, "objects lie apart");
    char *first = reapMalloc(&reap, 100);
    reapFree(&reap, first);
    char *second = reapMalloc(&reap, 200);
    ck_assert_ptr_eq(second, first);
    char *third = reapMalloc(&reap, 100);
    reapFree(&reap, third);
    reapFree(&reap, second);
    ck_assert_ptr_eq(reapMalloc(&reap, 300), first);
}

/* Freed memory is used before the reap grows, whatever the order of the frees. */
TEST(freed_memory_is_used_again)
{
    enum { N = 5000 };
    static void *objects[N];
    for (int i = 0; i < N; i++) objects[i] = reapMalloc(&reap, 100);
    size_t held = stats().chunk_bytes;
    for (int round = 0; round < 20; round++) {
        for (int i = round % 3; i < N; i += 3) reapFree(&reap, objects[i]);
        for (int i = round % 3; i < N; i += 3) objects[i] = reapMalloc(&reap, 50 + (size_t)(i + round) % 51);
        assert_valid(reap);
    }
    ck_assert_uint_le(stats().chunk_bytes, held);
    ck_assert_uint_eq(stats().live_objects, N);
}

/* --- dead blocks ----------------------------------------------------------------------------- */

/* The first frees of a reap leave it in region mode: the next objects of their sizes take what was freed,
 * also behind one of another size, and objects bump afterwards. */
TEST(the_next_of_its_size_takes_a_dead_block, .modes = ORDINARY)
{
    needs(!apart_on, "objects lie apart");
    const struct reap *r = reap;
    void *objects[30];
    for (int i = 0; i < 30; i++) objects[i] = reapMalloc(&reap, (size_t)(16 + i % 3 * 16));
    for (int i = 3; i < 6; i++) reapFree(&reap, objects[i]);
    assert_valid(reap);
    ck_assert_uint_eq(stats().live_objects, 27);
    ck_assert_uint_eq(stats().live_bytes, 27 * 32);
    ck_assert(!r->heap && !r->own);
    BREAKS(r->current->dead++, r->current->dead--);
    char *other = reapMalloc(&reap, 100);
    ck_assert(other > (char *)objects[29]);
    for (int i = 3; i < 6; i++) ck_assert_ptr_eq(reapMalloc(&reap, (size_t)(16 + i % 3 * 16)), objects[i]);
    ck_assert_ptr_eq(reapMalloc(&reap, 32), other + 112);
    ck_assert_ptr_eq(r->end, r->bump_max);
    ck_assert_uint_eq(r->current->dead, 0);
    reapFree(&reap, objects[28]);
    *(dead_block *)objects[28] = dead_block_of(0, 4); /* as a program may write to it */
    ck_assert_ptr_ne(reapMalloc(&reap, 64), objects[28]);
    for (int i = 0; i < DEAD_MISSES; i++) reapMalloc(&reap, 200);
    ck_assert_ptr_eq(r->end, r->bump_max);
    assert_valid(reap);
}

/* Whatever ends region mode while some objects are dead, or forgets all: the others are as they were. */
enum { BY_USE, BY_FREES, BY_MARK, BY_TRIM, BY_LIMIT, BY_ANOTHER_CHUNK, BY_RESIZE, BY_LAST, BY_CLEAR, WAYS };
TEST(dead_blocks_become_gaps, .times = WAYS)
{
    enum { N = 40 };
    char *objects[N];
    size_t left = N - 3;
    reap_mark mark;
    for (int i = 0; i < N; i++) objects[i] = memset(reapMalloc(&reap, (size_t)(20 + i * 3)), i, 20);
    for (int i = 10; i < 13; i++) reapFree(&reap, objects[i]), objects[i] = NULL;
    if (_i == BY_USE) reapMalloc(&reap, 7000), left++;
    if (_i == BY_FREES)
        for (int i = 15; i < 25; i++) reapFree(&reap, objects[i]), objects[i] = NULL, left--;
    if (_i == BY_MARK) reapMark(&reap, &mark), reapUnmark(&reap, &mark);
    if (_i == BY_TRIM) reapTrim(&reap, 0);
    if (_i == BY_LIMIT) ck_assert_int_eq(reapSetLimit(&reap, 1 << 20), 0);
    if (_i == BY_ANOTHER_CHUNK) {
        for (int i = 0; i < 5; i++) reapMalloc(&reap, 30000), left++;
        reapFree(&reap, objects[20]), objects[20] = NULL, left--;
    }
    if (_i == BY_RESIZE)
        objects[5] = reapRealloc(&reap, objects[5], 500), objects[6] = reapRealloc(&reap, objects[6], 20);
    if (_i == BY_LAST)
        for (int i = N - 1; i > 12; i--) reapFree(&reap, objects[i]), objects[i] = NULL, left--;
    if (_i == BY_CLEAR) reapFreeAll(&reap), left = 0;
    assert_valid(reap);
    ck_assert_uint_eq(stats().live_objects, left);
    for (int i = 0; i < 200; i++) memset(reapMalloc(&reap, (size_t)(1 + i)), 99, (size_t)(1 + i));
    assert_valid(reap);
    ck_assert_uint_eq(stats().live_objects, left + 200);
    for (int i = 0; i < N && _i != BY_CLEAR; i++)
        if (objects[i]) ck_assert_int_eq(objects[i][19], i);
}

/* --- small first chunks ---------------------------------------------------------------------- */

enum { SMALL = 6 };

static void *new_small(void *objects[SMALL])
{
    void *child;
    (reapCreate)(&child, NULL); /* a root, so that its children are ordinary ones in each mode */
    void *small;
    (reapCreate)(&small, &child);
    for (int i = 0; i < SMALL; i++) objects[i] = memset(reapMalloc(&small, 50), 'a' + i, 50);
    return small;
}

/* A reap in a chunk of 1 KiB takes a block for its tables in heap mode, and gives it back at its end. */
TEST(a_small_reap_has_tables_when_it_frees, .modes = ORDINARY)
{
    needs(!apart_on, "objects lie apart");
    void *objects[SMALL], *small = new_small(objects), *root = reapParent(&small);
    size_t before = stats_now().live_bytes;
    ck_assert_uint_eq(stats_of(small).chunk_bytes, 1024);
    for (int round = 0; round < 3; round++) {
        for (int i = 1; i < DEAD_FREES; i++) reapFree(&small, objects[i == 2 ? DEAD_FREES : i]);
        ck_assert_uint_eq(stats_of(small).chunk_bytes, 1024);
        reapFree(&small, objects[2]);
        ck_assert_uint_eq(stats_of(small).chunk_bytes, 1024 + sizeof(struct reap_tables));
        assert_valid(small);
        ck_assert_ptr_eq(reapMalloc(&small, 64), objects[2]);
        ck_assert_int_eq(*(char *)objects[5], 'a' + 5);
        reapFreeAll(&small);
        for (int i = 0; i < SMALL; i++) objects[i] = memset(reapMalloc(&small, 50), 'a' + i, 50);
    }
    ck_assert_uint_eq(stats_now().live_bytes, before);
    reapDestroy(&small);
    for (int i = 0; i < 100; i++) {
        (reapCreate)(&small, &root);
        for (int k = 0; k < SMALL; k++) objects[k] = reapMalloc(&small, 50);
        for (int k = 0; k < DEAD_FREES; k++) reapFree(&small, objects[k]);
        reapDestroy(&small);
    }
    ck_assert_uint_le(stats_now().live_bytes, before + 8192); /* the next child begins with 8 KiB */
    reapDestroy(&root);
}

/* qemu-user takes RLIMIT_AS from its program, and maps without it: all memory would be the machine's. */
static bool addresses_have_a_limit(void)
{
    struct rlimit old;
    getrlimit(RLIMIT_AS, &old);
    struct rlimit none = {0, old.rlim_max};
    ck_assert_int_eq(setrlimit(RLIMIT_AS, &none), 0);
    void *page = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    setrlimit(RLIMIT_AS, &old);
    return page == MAP_FAILED;
}

/* Takes all memory there is; gives it back. */
static void *take_all_memory(struct rlimit *old)
{
    void *hogs = NULL, *hog;
    getrlimit(RLIMIT_AS, old);
    struct rlimit none = {0, old->rlim_max};
    ck_assert_int_eq(setrlimit(RLIMIT_AS, &none), 0);
    for (; (hog = chunk_alloc(1024, NULL, NULL)); hogs = hog) *(void **)hog = hogs;
    return hogs;
}

static void give_all_memory(void *hogs, const struct rlimit *old)
{
    for (void *hog; (hog = hogs); chunk_free(hog)) hogs = *(void **)hog;
    setrlimit(RLIMIT_AS, old);
}

/* A chunk that empties under a mark goes when it is closed, also without memory for tables. */
TEST(a_marked_small_reap_frees_without_memory, .modes = ORDINARY)
{
    needs(addresses_have_a_limit(), "RLIMIT_AS has no effect here");
    enum { MORE = 60 };
    needs(!apart_on, "objects lie apart");
    void *objects[SMALL], *small = new_small(objects), *more[MORE];
    for (int i = 0; i < MORE; i++) more[i] = reapMalloc(&small, 1000);
    ck_assert_uint_ge(stats_of(small).chunks, 4);
    struct rlimit old;
    void *hogs = take_all_memory(&old);
    reap_mark mark;
    reapMark(&small, &mark);
    for (int i = 0; i < MORE - 1; i++) reapFree(&small, more[i]);
    reapUnmark(&small, &mark);
    const char *wrong = NULL;
    bool is_valid = reap_is_valid(small, &wrong), has_tables = ((struct reap *)small)->own;
    struct reap_stats left;
    reapStats(&small, &left);
    give_all_memory(hogs, &old);
    ck_assert(!has_tables);
    ck_assert_msg(is_valid, "does not hold: %s", wrong);
    ck_assert_uint_eq(left.chunks, 2);
    void *root = reapParent(&small);
    reapDestroy(&root);
}

/* Without memory for tables its objects are freed all the same. */
TEST(a_small_reap_frees_without_memory, .modes = ORDINARY)
{
    needs(addresses_have_a_limit(), "RLIMIT_AS has no effect here");
    needs(!apart_on, "objects lie apart");
    void *objects[SMALL], *small = new_small(objects);
    struct rlimit old;
    void *hogs = take_all_memory(&old);
    errno = 7;
    for (int i = 0; i < DEAD_FREES; i++) reapFree(&small, objects[i]);
    int kept = errno;
    const char *wrong;
    bool is_valid = reap_is_valid(small, &wrong);
    size_t live = stats_of(small).live_objects, held = stats_of(small).chunk_bytes;
    give_all_memory(hogs, &old);
    ck_assert(is_valid);
    ck_assert_int_eq(kept, 7);
    ck_assert_uint_eq(live, SMALL - DEAD_FREES);
    ck_assert_uint_eq(held, 1024);
    for (int i = DEAD_FREES; i < SMALL; i++) ck_assert_int_eq(*(char *)objects[i], 'a' + i);
    reapFree(&small, objects[DEAD_FREES]);
    assert_valid(small);
    ck_assert_ptr_null(((struct reap *)small)->own);
    for (int i = 0; i < 100; i++) ck_assert_ptr_nonnull(memset(reapMalloc(&small, 40), 'x', 40));
    ck_assert_ptr_nonnull(((struct reap *)small)->own);
    assert_valid(small);
    ck_assert_int_eq(*(char *)objects[5], 'a' + 5);
    void *root = reapParent(&small);
    reapDestroy(&root);
}

/* --- chunks ---------------------------------------------------------------------------------- */

/* A long-lived reap shrinks: each chunk goes when nothing in it lives. */
TEST(empty_chunks_go_back)
{
    enum { N = 100000 };
    static void *objects[N];
    for (int i = 0; i < 16; i++) reapFree(&reap, reapMalloc(&reap, 48)); /* what is for parts stays */
    size_t before = stats().chunk_bytes;
    for (int order = 0; order < 3; order++) {
        for (int i = 0; i < N; i++) objects[i] = reapMalloc(&reap, 48);
        ck_assert_uint_gt(stats().chunk_bytes, N * 48);
        for (int i = 0; i < N; i++) {
            int at = order == 0 ? i : order == 1 ? N - 1 - i : (int)((long)i * 7919 % N);
            reapFree(&reap, objects[at]);
            size_t most = reap_mode == MODE_PARTS ? N * 48 : N * 48 / 2; /* four have a current chunk */
            if (i == N * 9 / 10 && order < 2) ck_assert_uint_lt(stats().chunk_bytes, most);
        }
        assert_valid(reap);
        ck_assert_uint_eq(stats().chunk_bytes, before);
        ck_assert_uint_eq(stats().live_bytes, 0);
    }
}

static uint32_t next_random(uint32_t *state) { return *state = *state * 1664525 + 1013904223; }

/* A chunk's header, and the end of one that is too short for the next object, are little beside the objects.
 * Looked at when the reap is about to grow, because what the newest chunk has left is no overhead. */
TEST(small_objects_cost_two_percent_beside_themselves, .modes = NOT_IN_PARTS)
{
    needs(!apart_on, "objects lie apart");
    uint32_t state = 7;
    size_t bytes = 0, held = 0, before = 0;
    for (size_t chunks = 0; chunks < 73; before = bytes) {
        size_t size = 16 + next_random(&state) / 256 % 113;
        reapMalloc(&reap, size);
        bytes += (size + 15) / 16 * 16;
        if (stats().chunks == chunks) continue;
        chunks = stats().chunks;
        held = stats().chunk_bytes;
    }
    ck_assert_uint_gt(held, 4000 * 1000);
    ck_assert_uint_le((held - REAP_MAX_SIZE) * 100, before * 102);
}

/* Objects die here and there, and others are made. What a tenth lives in is a tenth of the chunks in the end,
 * and nothing is lost. */
TEST(a_reap_that_fell_to_a_tenth_gives_its_chunks_back)
{
    enum { N = 100000, LEFT = N / 10 };
    static void *objects[N];
    uint32_t state = 7;
    for (int i = 0; i < N; i++) objects[i] = reapMalloc(&reap, 16 + next_random(&state) / 256 % 113);
    struct reap_stats full = stats();
    for (int left = N; left > LEFT; left--) {
        uint32_t i = next_random(&state) / 256 % (uint32_t)left;
        reapFree(&reap, objects[i]);
        objects[i] = objects[left - 1];
    }
    assert_valid(reap);
    for (int i = 0; i < 12 * LEFT; i++) {
        void **object = &objects[next_random(&state) / 256 % LEFT];
        reapFree(&reap, *object);
        *object = reapMalloc(&reap, 16 + next_random(&state) / 256 % 113);
    }
    assert_valid(reap);
    ck_assert_uint_eq(stats().live_objects, LEFT);
    /* parts begin with small chunks each, and have a hole each */
    if (reap_mode != MODE_PARTS) ck_assert_uint_le(stats().chunks * 5, full.chunks);
    ck_assert_uint_le(stats().chunk_bytes * 5, full.chunk_bytes * (reap_mode == MODE_PARTS ? 3 : 2));
    for (int i = LEFT; i < N; i++) objects[i] = reapMalloc(&reap, 16 + next_random(&state) / 256 % 113);
    assert_valid(reap);
    ck_assert_uint_le(stats().chunk_bytes, full.chunk_bytes * 5 / 4);
    for (int i = 0; i < N; i++) reapFree(&reap, objects[i]);
    ck_assert_uint_le(stats().chunks, reap_mode == MODE_PARTS ? 4 : 1);
}

/* Objects come and go at random, one in so many of them large; then all go, in order, backwards or at random.
 * What is left is the first chunk, whatever sweeps have put onto lists before. */
TEST(nothing_live_is_a_first_chunk, .times = 4 * FROMS, .times_shared = 4 * FROM_SOURCE)
{
    enum { N = 3000 };
    static void *objects[N];
    static const unsigned rare[] = {50, 10, 500, 3000};
    const unsigned large = rare[_i % 4];
    uint64_t chance = (uint64_t)_i * 77 + 1;
    needs(!is_slowed(), "a tool watches");
    for (unsigned order = 0; order < 3; order++) {
        void *r = reap_from(_i / 4);
        for (unsigned i = 0, steps = shorter(600000, 150000); i < steps; i++) {
            unsigned k = random_below(&chance, N);
            unsigned size = random_below(&chance, random_below(&chance, large) ? 1000 : 100000);
            reapFree(&r, objects[k]);
            objects[k] = objects[k] ? NULL : reapMalloc(&r, size);
        }
        assert_valid(r);
        for (unsigned left = N; left > 0; left--) {
            unsigned k = order == 0 ? N - left : order == 1 ? left - 1 : random_below(&chance, left);
            reapFree(&r, objects[k]);
            objects[k] = order == 2 ? objects[left - 1] : NULL;
            if (order == 2) objects[left - 1] = NULL;
        }
        ck_assert_uint_eq(stats_of(r).live_bytes, 0);
        ck_assert_uint_le(stats_of(r).chunks,
                          reap_mode == MODE_PARTS ? 8 : 1); /* parts may have a hole each */
        if (_i / 4 == FROM_BUFFER) ck_assert_ptr_nonnull(reapMalloc(&r, sizeof reap_buffer / 10 * 9));
        reapDestroy(&r);
    }
}

/* A large object that comes and goes at the hole leaves as much free as before: no look at all listed chunks
 * comes of it. */
TEST(what_goes_into_the_hole_again_brings_no_look, .modes = NOT_IN_PARTS)
{
    needs(!apart_on, "objects lie apart");
    reapFree(&reap, reapMalloc(&reap, 100)), reapMalloc(&reap, 100);
    void *older[] = {reapMalloc(&reap, 1100), reapMalloc(&reap, 1100), reapMalloc(&reap, 1500)};
    reap_free_begin_heap((void *)(uintptr_t)reap_behind(reap));
    reapFree(&reap, older[0]);
    const struct reap *r = reap_behind(reap);
    const size_t allowed = r->own->budget.allowed;
    for (int i = 0; i < 5; i++) reapFree(&reap, reapMalloc(&reap, 1200 + (size_t)i * 16));
    ck_assert_uint_eq(r->own->budget.allowed, allowed);
    reapFree(&reap, older[2]); /* older than the hole */
    ck_assert_uint_lt(r->own->budget.allowed, allowed);
    assert_valid(reap);
}

/* Eight bytes of start bits tell an object's length from its own byte on: 56 units, and more where it begins
 * early in the byte. Longer ones take the slow path, and all come back as long as they were. */
TEST(each_length_is_told_from_each_place_in_a_byte, .modes = NOT_IN_PARTS)
{
    enum { LEAST = 30, MOST = 66, PLACES = 8 };
    needs(!apart_on, "objects lie apart");
    for (size_t units = LEAST; units <= MOST; units++) {
        for (size_t place = 0; place < PLACES; place++) {
            void *first = reapMalloc(&reap, 16);
            reapMalloc(&reap, (3 + place) * REAP_UNIT);
            reapFree(&reap, first);
            char *object = reapMalloc(&reap, units * REAP_UNIT);
            ck_assert_ptr_eq(reapMalloc(&reap, 32), object + units * REAP_UNIT);
            size_t most = 63 - reap_unit(object) % 8;
            ck_assert_uint_eq(reap_free_units_at(object), units <= most ? units : 0);
            reapFree(&reap, object);
            assert_valid(reap);
            ck_assert_ptr_ne(reapMalloc(&reap, (units + 1) * REAP_UNIT), object);
            ck_assert_ptr_eq(reapMalloc(&reap, units * REAP_UNIT), object);
            reapFreeAll(&reap);
        }
    }
}

/* A cache in a full buffer drops an object for each that finds no room. All gaps are joined only now and
 * then: each time takes as long as the buffer is big. */
TEST(a_full_buffer_seldom_joins, .modes = ORDINARY)
{
    enum { OBJECTS = sizeof reap_buffer / 112, DROPPED = 2000 };
    static void *objects[OBJECTS];
    needs(!apart_on, "objects lie apart");
    void *r = reap_from(FROM_BUFFER);
    uint64_t chance = 1;
    unsigned n = 0, joins = 0;
    while (n < OBJECTS && (objects[n] = reapMalloc(&r, 100))) n++;
    while (reapMalloc(&r, 1)) {
    }
    reapFree(&r, objects[--n]);
    for (unsigned i = 0; i < DROPPED; i++) {
        unsigned k = random_below(&chance, n);
        struct flush_budget *budget = &((struct reap *)(uintptr_t)reap_behind(r))->own->budget;
        budget->gained = 1; /* a flush clears it */
        ck_assert_ptr_null(reapMalloc(&r, 5000));
        joins += budget->gained == 0;
        reapFree(&r, objects[k]);
        objects[k] = objects[--n];
    }
    ck_assert_uint_ge(joins, 5);
    ck_assert_uint_le(joins, 40);
    while (n > 0) reapFree(&r, objects[--n]);
    ck_assert_ptr_nonnull(reapMalloc(&r, sizeof reap_buffer / 2));
    assert_valid(r);
    reapDestroy(&r);
}

/* One object that comes and goes where a chunk begins must not cost a chunk each time. */
TEST(a_border_between_chunks_does_not_thrash, .modes = NOT_IN_PARTS)
{
    needs(!apart_on, "objects lie apart");
    while (stats().chunks == 1) reapMalloc(&reap, 64);
    for (int i = 0; i < 100; i++) reapMalloc(&reap, 64);
    struct reap_stats full = stats();
    void *object = NULL;
    while (stats().chunks == full.chunks) object = reapMalloc(&reap, 64);
    size_t held = stats().chunk_bytes;
    for (int i = 0; i < 100; i++) {
        reapFree(&reap, object);
        ck_assert_uint_eq(stats().chunk_bytes, held);
        object = reapMalloc(&reap, 1000);
        ck_assert_uint_eq(stats().chunk_bytes, held);
    }
}

/* --- the equations --------------------------------------------------------------------------- */

TEST(validity_notices_each_broken_equation, .modes = ORDINARY)
{
    struct reap *r = reap;
    struct reap_chunk *first = reap_first_chunk(r);
    void *objects[40], *child;
    reapCreate(&child, &reap);
    for (int i = 0; i < 40; i++) objects[i] = reapMalloc(&reap, 40);
    for (int i = 0; i < 12; i += 3) reapFree(&reap, objects[i]);
    reapMalloc(&reap, 100000);
    assert_valid(reap);
    BREAKS(r->tag++, r->tag--);
    BREAKS(r->held++, r->held--);
    BREAKS(r->carved++, r->carved--);
    BREAKS(r->spare_bytes++, r->spare_bytes--);
    BREAKS(first->owner = child, first->owner = r);
    BREAKS(r->chunks->prev = first, r->chunks->prev = NULL);
    BREAKS(r->below.first->parent = NULL, r->below.first->parent = r);
    BREAKS(r->peak = 0, r->peak = r->held);
    needs(!apart_on, "no object is in a chunk, which has no gaps, therefore");
    size_t gap = reap_unit(objects[3]), live = reap_unit(objects[4]);
    struct reap_block *block = objects[9];
    BREAKS(r->end -= 16, r->end += 16);
    BREAKS(r->bump += 16, r->bump -= 16);
    BREAKS(r->bump_max -= 16, r->bump_max += 16);
    BREAKS(r->own->budget.room++, r->own->budget.room--);
    BREAKS(r->tables = &reap_no_tables, r->tables = r->own);
    BREAKS(block->next = NULL, block->next = objects[6]);
    BREAKS(bitmap_set(first->lives, gap), bitmap_clear(first->lives, gap));
    BREAKS(bitmap_set(first->lives, live + 1), bitmap_clear(first->lives, live + 1));
    BREAKS(bitmap_clear(first->starts, first->first), bitmap_set(first->starts, first->first));
    BREAKS(bitmap_clear(first->starts, first->end_unit), bitmap_set(first->starts, first->end_unit));
    BREAKS(bitmap_set(first->starts, first->end_unit - 1), bitmap_clear(first->starts, first->end_unit - 1));
    BREAKS(first->state = REAP_CHUNK_SWEPT, first->state = REAP_CHUNK_LISTED);
    BREAKS(*chunk_map_entry(first) += 2, *chunk_map_entry(first) -= 2);
}

/* --- chunks against live bytes --------------------------------------------------------------- */

/* Objects are replaced at random; the chunks, in hundredths of what lives, on average and at most. */
/* 16 to 15 + below bytes, each size as often; or 16 to 2000, of which half are below 32 and few big. */
static size_t size_at_random(uint64_t *chance, unsigned below)
{
    if (below > 0) return 16 + random_below(chance, below);
    unsigned size = 16 * 4096 / (random_below(chance, 4096) + 1);
    return size < 2000 ? size : 2000;
}

static void churn_at_random(unsigned slots, unsigned size, unsigned *average, unsigned *most)
{
    static void *objects[20000];
    uint64_t chance = 88172645463325252;
    unsigned steps = 600000, looks = 0;
    *average = *most = 0;
    for (unsigned i = 0; i < steps; i++) {
        unsigned k = random_below(&chance, slots);
        reapFree(&reap, objects[k]);
        objects[k] = reapMalloc(&reap, size_at_random(&chance, size));
        if (i < 10 * slots || i % 1000 != 0) continue;
        struct reap_stats now = stats();
        unsigned part = (unsigned)(now.chunk_bytes * 100 / now.live_bytes);
        *average += part;
        if (part > *most) *most = part;
        looks++;
    }
    *average /= looks;
}

/* A third of the objects dies, and the others are replaced. After a trim each chunk only loses objects until
 * the reap needs it. */
TEST(a_trimmed_reap_gives_chunks_back)
{
    enum { N = 10000, LEFT = 7000 };
    static void *objects[N];
    uint64_t chance = 1;
    needs(!is_slowed(), "a tool watches");
    for (int i = 0; i < N; i++) objects[i] = reapMalloc(&reap, 16 + random_below(&chance, 113));
    for (int left = N; left > LEFT; left--) {
        unsigned i = random_below(&chance, (unsigned)left);
        reapFree(&reap, objects[i]);
        objects[i] = objects[left - 1];
    }
    reapTrim(&reap, 0);
    assert_valid(reap);
    for (int i = 0; i < 20 * LEFT; i++) {
        void **object = &objects[random_below(&chance, LEFT)];
        reapFree(&reap, *object);
        *object = reapMalloc(&reap, 16 + random_below(&chance, 113));
    }
    ck_assert_uint_le(stats().chunk_bytes, stats().live_bytes * 8 / 5);
}

/* Where neighbours that were freed are joined, before the reap grows, what lives fills half of the chunks, or
 * more; large objects have their own, which go at once. */
TEST(chunks_are_no_multiple_of_what_lives, .times = 4)
{
    static const struct {
        unsigned slots, size, average, most;
    } loads[] = {
        {2000, 5000, 185, 230}, {20000, 2000, 165, 180}, {100, 300000, 140, 160}, {10000, 0, 210, 270}};
    bool in_parts = reap_mode == MODE_PARTS; /* see check_parts */
    unsigned average, most;
    needs(!is_slowed(), "a tool watches");
    churn_at_random(loads[_i].slots, loads[_i].size, &average, &most);
    ck_assert_uint_le(average, in_parts ? 230 : loads[_i].average);
    ck_assert_uint_le(most, in_parts ? 300 : loads[_i].most);
}

/* Large objects do not make the small ones' chunks bigger. */
TEST(chunks_beside_large_objects)
{
    for (int i = 0; i < 40; i++) reapMalloc(&reap, 100000);
    size_t before = stats().chunk_bytes;
    while (stats().chunk_bytes == before) reapMalloc(&reap, 1000);
    ck_assert_uint_le(stats().chunk_bytes - before, 16384);
}

/* Notes the state of each chunk, newest first. */
enum { STATES = 64 };
static int note_states(struct reap *r, unsigned char *states)
{
    int n = 0;
    for (struct reap_chunk *c = reap_chunk_begin(r); c && n < STATES; c = reap_chunk_after(r, c))
        states[n++] = c->state;
    return n;
}

/* How many chunks have another state after an allocation? */
static unsigned changed(struct reap *r, const unsigned char *before, int chunks)
{
    unsigned char after[STATES];
    unsigned count = 0;
    if (note_states(r, after) != chunks) return 0; /* it has grown */
    for (int i = 0; i < chunks; i++) count += before[i] != after[i];
    return count;
}

/* In a full small reap, few allocations join blocks or fill free lists anew, and yet it does not grow. */
static const struct {
    int live;
    bool is_kept; /* what is held: fuller reaps grow now and then */
} small_reaps[] = {{100, true},  {150, false}, {200, true}, {300, true},
                   {400, false}, {600, true},  {800, false}};

TEST(a_small_reap_seldom_joins, .times = sizeof small_reaps / sizeof small_reaps[0], .modes = ORDINARY)
{
    enum { MOST = 800, PAIRS = 40000 };
    void *objects[MOST];
    unsigned char states[STATES];
    unsigned work = 0;
    uint64_t chance = 1;
    int live = small_reaps[_i].live;
    needs(!apart_on, "all objects are watched");
    for (int i = 0; i < live; i++) objects[i] = reapMalloc(&reap, 16 + random_below(&chance, 113));
    size_t held = stats().chunk_bytes;
    for (int i = 0; i < PAIRS; i++) {
        void **object = &objects[random_below(&chance, (unsigned)live)];
        size_t size = 16 + random_below(&chance, 113);
        reapFree(&reap, *object);
        int chunks = note_states(reap, states);
        *object = reapMalloc(&reap, size);
        work += changed(reap, states, chunks);
    }
    ck_assert_uint_le(work, PAIRS / 6);
    if (small_reaps[_i].is_kept) ck_assert_uint_le(stats().chunk_bytes, held);
}

int main(void) { return run_tests((struct suite){.begin = setup, .end = teardown, .modes = ALL_MODES}); }
