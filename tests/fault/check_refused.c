/* SPDX-License-Identifier: Apache-2.0 */
/* check_refused.c: system calls that the kernel refuses, one kind at a time, and whether anybody looks at
 * what they return. (That memory ends is check_world's matter, membarrier check_os's.) */
#include "support/check_backend.h"

#include "arena/arena.h"
#include "arena/large.h"
#include "faults.h"
#include "hoard/malloc_fast.h"
#include "os/pages.h"
#include "os/rseq.h"

/* From here on the OS refuses these, as for memory that is locked: no caller knows this error. */
static void refuse(unsigned calls)
{
    faults_plan((struct fault_plan){.calls = calls, .times = -1ul, .error = EAGAIN});
}

enum { MOVES = 1 << FAULT_MREMAP, ADVICE = 1 << FAULT_MADVISE };

static void setup(void) { start_arenas(); }

static void fill(char *at, size_t size)
{
    for (size_t i = 0; i < size; i += 4096 - 16) at[i] = (char)(i / 4096 % 127 + 1);
}

static bool is_filled(const char *at, size_t size)
{
    for (size_t i = 0; i < size; i += 4096 - 16)
        if (at[i] != (char)(i / 4096 % 127 + 1)) return false;
    return true;
}

/* The object is where it was, nobody looks for it elsewhere, and it is counted as before. */
TEST(a_large_object_that_cannot_move_stays)
{
    bool clean;
    struct arena *arena = arena_map_large(10 * MIB, 1, SLOT_SPAN, &clean);
    char *object = arena->base;
    fill(object, 10 * MIB);
    size_t held = arena_held().now;
    refuse(MOVES);
    for (unsigned i = 0; i < 3; i++) {
        ck_assert_ptr_null(large_move(arena, object, (30 + 7 * i) * MIB));
        ck_assert_ptr_eq(arena->base, object);
        ck_assert_uint_eq(large_size(arena, object), 10 * MIB);
        ck_assert_uint_eq(arena_held().now, held);
        for (size_t at = 0; at < 10 * MIB; at += MIB) ck_assert_ptr_eq(pagemap_find(object + at), arena);
    }
    ck_assert_uint_ge(faults_injected(), 3);
    ck_assert(is_filled(object, 10 * MIB));
    refuse(0);
    object = large_move(arena, object, 30 * MIB);
    ck_assert_ptr_nonnull(object);
    ck_assert(is_filled(object, 10 * MIB));
    large_free(arena, object);
    arena_purge(0);
    ck_assert_uint_eq(arena_held().now, 0);
}

/* A span that outgrows an arena is lifted, and then moved. Whichever the OS refuses: its bytes are there,
 * nobody looks for it elsewhere, and what may be another's by now is not unmapped. */
TEST(a_span_that_cannot_be_lifted_is_copied, .times = 3)
{
    bool clean;
    rseq_init(false, false);
    needs(cpu.ids != 0, "no rseq: nothing is lifted");
    struct superblock *span = arena_take_span(40, 1, SLOT_SPAN, ARENA_SPAN, &clean);
    char *object = slot_start(span), *moved;
    fill(object, 40 * SUPERBLOCK);
    size_t held = arena_held().now;
    static const struct fault_plan plans[] = {{.calls = ADVICE, .times = -1ul},
                                              {.calls = MOVES, .times = -1ul},
                                              {.calls = MOVES, .after = 1, .times = -1ul}};
    faults_plan(plans[_i]);
    ck_assert_ptr_null(arena_lift_span(span, 9 * MIB));
    ck_assert_uint_eq(faults_injected(), 1);
    ck_assert(is_filled(object, 40 * SUPERBLOCK));
    ck_assert_uint_eq(arena_held().now, held);
    ck_assert(large_starts_at(pagemap_find(object), object));
    faults_plan(plans[_i]);
    ck_assert_ptr_nonnull(moved = large_move(pagemap_find(object), object, 9 * MIB));
    ck_assert(is_filled(moved, 40 * SUPERBLOCK));
    refuse(0);
    large_free(pagemap_find(moved), moved);
    arena_purge(0);
    ck_assert_uint_eq(arena_held().now, 0);
}

/* What grows is copied then, and what shrinks stays. */
TEST(realloc_does_without_mremap, .apart = true)
{
    use_path(0, NULL);
    refuse(MOVES);
    char *object = hoard_malloc(5 * MIB);
    fill(object, 5 * MIB);
    for (size_t size = 6 * MIB; size < 60 * MIB; size *= 2) {
        object = hoard_realloc(object, size);
        ck_assert_ptr_nonnull(object);
        ck_assert_uint_ge(hoard_usable_size(object), size);
        ck_assert(is_filled(object, 5 * MIB));
        memset(object + 5 * MIB, 1, size - 5 * MIB);
        ck_assert_uint_eq(live_bytes(), hoard_usable_size(object));
    }
    object = hoard_realloc(object, 5 * MIB);
    ck_assert_ptr_nonnull(object);
    ck_assert(is_filled(object, 5 * MIB));
    ck_assert_uint_gt(faults_injected(), 0);
    hoard_free(object);
    assert_all_comes_back();
}

/* Memory that the OS did not take back is held still, and is not zero; once nothing in the arena is used, it
 * is unmapped. */
TEST(what_cannot_be_purged_is_held)
{
    bool clean;
    struct superblock *other = arena_take_span(1, 1, SLOT_SPAN, ARENA_SPAN, &clean);
    struct superblock *span = arena_take_span(8, 1, SLOT_SPAN, ARENA_SPAN, &clean);
    fill(slot_start(span), 8 * SUPERBLOCK);
    arena_give_span(span);
    size_t held = arena_held().now;
    refuse(ADVICE);
    arena_purge(0);
    ck_assert_uint_gt(faults_injected(), 0);
    ck_assert_uint_eq(arena_held().now, held);
    struct superblock *again = arena_take_span(8, 1, SLOT_SPAN, ARENA_SPAN, &clean);
    ck_assert(!clean || all_bytes(slot_start(again), 8 * SUPERBLOCK, 0));
    arena_give_span(again);
    arena_give_span(other);
    arena_purge(0);
    ck_assert_uint_eq(arena_held().now, 0);
}

int main(void) { return run_tests((struct suite){.begin = setup}); }
