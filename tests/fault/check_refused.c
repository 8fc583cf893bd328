/* SPDX-License-Identifier: Apache-2.0 */
/* check_refused.c: system calls that the kernel refuses, one kind at a time, and whether anybody looks at
 * what they return. (That memory ends is check_exhaustion's matter, membarrier check_os's.) */
#include "support/check_backend.h"

#include "arena/arena.h"
#include "arena/large.h"
#include "hoard/malloc_fast.h"
#include "os/pages.h"

#include <stdarg.h>

static bool refuse_moves, refuse_resizes, refuse_advice;
static unsigned refused;

void *__real_mremap(void *old, size_t old_size, size_t size, int flags, ...);
int __real_madvise(void *start, size_t size, int advice);
void *__wrap_mremap(void *old, size_t old_size, size_t size, int flags, ...);
int __wrap_madvise(void *start, size_t size, int advice);

static bool is_refused(bool refuse)
{
    if (!refuse) return false;
    refused++;
    errno = EAGAIN; /* as for memory that is locked; no caller knows this one */
    return true;
}

/* A move that is refused has unmapped what it was to replace, as the kernel's may. */
void *__wrap_mremap(void *old, size_t old_size, size_t size, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    void *place = (flags & MREMAP_FIXED) != 0 ? va_arg(args, void *) : NULL;
    va_end(args);
    if (is_refused(place != NULL ? refuse_moves : refuse_resizes)) {
        if (place != NULL) munmap(place, size);
        return MAP_FAILED;
    }
    return __real_mremap(old, old_size, size, flags, place);
}

int __wrap_madvise(void *start, size_t size, int advice)
{
    if (advice == MADV_DONTNEED && is_refused(refuse_advice)) return -1;
    return __real_madvise(start, size, advice);
}

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
    refuse_resizes = true;
    struct arena *arena = arena_map_large(10 * MIB, 1, SLOT_SPAN, &clean);
    char *object = arena->base;
    fill(object, 10 * MIB);
    size_t held = arena_held().now;
    refuse_moves = true;
    for (unsigned i = 0; i < 3; i++) {
        ck_assert_ptr_null(large_move(arena, object, (30 + 7 * i) * MIB));
        ck_assert_ptr_eq(arena->base, object);
        ck_assert_uint_eq(large_size(arena, object), 10 * MIB);
        ck_assert_uint_eq(arena_held().now, held);
        for (size_t at = 0; at < 10 * MIB; at += MIB) ck_assert_ptr_eq(pagemap_find(object + at), arena);
    }
    ck_assert_uint_ge(refused, 3);
    ck_assert(is_filled(object, 10 * MIB));
    refuse_moves = false;
    object = large_move(arena, object, 30 * MIB);
    ck_assert_ptr_nonnull(object);
    ck_assert(is_filled(object, 10 * MIB));
    large_free(arena, object);
    arena_purge(0);
    ck_assert_uint_eq(arena_held().now, 0);
}

/* What grows is copied then, and what shrinks stays. */
TEST(realloc_does_without_mremap, .apart = true)
{
    use_path(0, NULL);
    refuse_moves = refuse_resizes = true;
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
    ck_assert_uint_gt(refused, 0);
    hoard_free(object);
    assert_all_comes_back();
}

/* Memory that the OS did not take back is held still, and is not zero; once nothing in the arena is used, it
 * is unmapped. */
TEST(what_cannot_be_purged_is_held)
{
    bool clean;
    struct superblock *other = arena_take(1, 1, SLOT_SPAN, ARENA_SPAN, &clean);
    struct superblock *span = arena_take(8, 1, SLOT_SPAN, ARENA_SPAN, &clean);
    fill(slot_start(span), 8 * SUPERBLOCK);
    arena_give(span, 8);
    size_t held = arena_held().now;
    refuse_advice = true;
    arena_purge(0);
    ck_assert_uint_gt(refused, 0);
    ck_assert_uint_eq(arena_held().now, held);
    struct superblock *again = arena_take(8, 1, SLOT_SPAN, ARENA_SPAN, &clean);
    ck_assert(!clean || all_bytes(slot_start(again), 8 * SUPERBLOCK, 0));
    arena_give(again, 8);
    arena_give(other, 1);
    arena_purge(0);
    ck_assert_uint_eq(arena_held().now, 0);
}

int main(void) { return run_tests((struct suite){.begin = setup}); }
