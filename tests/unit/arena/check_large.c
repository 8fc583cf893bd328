/* SPDX-License-Identifier: Apache-2.0 */
/* check_large.c: mappings, and large objects in slots and mappings. */
#include "support/check_backend.h"
#include "support/resident.h"

#include "arena/arena_table.h"
#include "arena/large.h"
#include "base/options.h"
#include "os/pages.h"
#include "os/rseq.h"

#include <sys/mman.h>

static void assert_mapped(struct arena *arena, size_t size, enum superblock_kind kind)
{
    ck_assert_ptr_nonnull(arena);
    ck_assert_uint_eq(arena->mapping, align_up(size, PAGE));
    ck_assert_uint_eq((uintptr_t)arena->base % ARENA, 0);
    ck_assert_uint_eq(arena->slots[0].kind, kind);
    ck_assert_ptr_eq(slot_start(&arena->slots[0]), arena->base);
    for (size_t at = 0; at < size; at += MIB) ck_assert_ptr_eq(pagemap_find(arena->base + at), arena);
    ck_assert_ptr_eq(pagemap_find(arena->base + size - 1), arena);
    ck_assert_ptr_ne(pagemap_find(arena->base + align_up(size, ARENA)), arena); /* another may follow */
}

TEST(mappings_come_and_go)
{
    bool clean;
    for (size_t alignment = 1; alignment <= 64 * MIB; alignment *= 8)
        for (size_t size = 4 * MIB + 1; size < 40 * MIB; size = size * 2 + 12345) {
            size_t before = arena_held().now;
            struct arena *arena = arena_map_large(size, alignment, SLOT_SPAN_CHUNK, &clean);
            assert_mapped(arena, size, SLOT_SPAN_CHUNK);
            ck_assert_uint_eq((uintptr_t)arena->base % alignment, 0);
            ck_assert_uint_eq(arena_held().now, before + align_up(size, PAGE));
            for (size_t at = 0; at < size; at += 64 * KIB) ck_assert_int_eq(arena->base[at], 0);
            char *base = arena->base;
            base[0] = base[size - 1] = 1;
            ck_assert(clean);
            arena_unmap_large(arena);
            arena_purge(0);
            ck_assert_uint_eq(arena_held().now, before);
            ck_assert_uint_eq(arenas.mapped, 0);
            for (size_t at = 0; at < size; at += ARENA) ck_assert_ptr_null(pagemap_find(base + at));
        }
}

/* An emulator may take the address for a wish. */
static bool map_at(char *at, size_t size)
{
    void *got = mmap(at, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (got != MAP_FAILED && got != at) munmap(got, size);
    return got == at;
}

/* A mapping with nothing behind it up to the next 4 MiB: by chance there may be another one. */
static struct arena *map_before_nothing(size_t size)
{
    struct arena *arena[50];
    bool clean, found = false;
    unsigned n = 0;
    while (!found && n < 50) {
        ck_assert_ptr_nonnull(arena[n] = arena_map_large(size, 1, SLOT_SPAN, &clean));
        char *end = arena[n++]->base + size;
        size_t rest = align_up(size, ARENA) - size;
        found = map_at(end, rest);
        if (found) munmap(end, rest);
    }
    ck_assert(found);
    for (unsigned i = 0; i + 1 < n; i++) arena_unmap_large(arena[i]);
    arena_purge(0);
    return arena[n - 1];
}

/* The memory of a freed mapping serves spans of each size; where the addresses behind its end are taken, its
 * last part goes. One beyond 32 MiB goes as a whole. */
TEST(freed_mappings_become_slots, .times = 2)
{
    bool clean, is_blocked = _i == 1;
    struct arena *arena = map_before_nothing(10 * MIB + 5 * PAGE);
    char *base = arena->base, *end = base + arena->mapping;
    if (is_blocked) ck_assert(map_at(end, PAGE));
    memset(base, 1, arena->mapping);
    arena_unmap_large(arena);
    size_t unused = is_blocked ? 8 * MIB : 10 * MIB + align_up(5 * PAGE, SUPERBLOCK);
    ck_assert_uint_eq(arena_held().unused, unused);
    ck_assert_uint_eq(arena_held().now, unused);
    ck_assert_uint_eq(arenas.mapped, is_blocked ? 8 * MIB : 12 * MIB);
    struct superblock *three = arena_take_span(3 * MIB / SUPERBLOCK, 1, SLOT_SPAN, ARENA_SPAN, &clean);
    struct superblock *five = arena_take_span(5 * MIB / SUPERBLOCK, 1, SLOT_SPAN, ARENA_SPAN, &clean);
    for (size_t at = 0; at < 5 * MIB; at += PAGE) ck_assert_int_eq(slot_start(five)[at], 1);
    ck_assert(!clean && slot_start(three) >= base && slot_start(three) < end);
    ck_assert_uint_eq(arena_held().now, unused);
    ck_assert_ptr_eq(pagemap_find(end), is_blocked ? NULL : pagemap_find(end - 1));
    arena_give_span(three);
    arena_give_span(five);
    ck_assert_uint_eq(arena_purge(0), unused);
    ck_assert_uint_eq(arenas.mapped, 0);

    arena_unmap_large(arena_map_large(33 * MIB, 1, SLOT_SPAN, &clean));
    ck_assert_uint_eq(arena_held().now, 0);
    ck_assert_uint_eq(arenas.mapped, 0);
    if (is_blocked) munmap(end, PAGE);
}

/* One of less than 4 MiB, as great alignments bring, becomes an arena, or goes if it cannot grow to one. */
TEST(small_mappings_go, .times = 2)
{
    bool clean, is_blocked = _i == 1;
    size_t size = align_up(400 * KIB, PAGE);
    struct arena *arena = map_before_nothing(size);
    char *base = arena->base, *end = base + arena->mapping;
    if (is_blocked) ck_assert(map_at(end, PAGE));
    arena_unmap_large(arena);
    ck_assert_uint_eq(arena_held().now, is_blocked ? 0 : align_up(size, SUPERBLOCK));
    ck_assert_uint_eq(arenas.mapped, is_blocked ? 0 : ARENA);
    ck_assert((pagemap_find(base) == NULL) == is_blocked);
    arena_unmap_large(arena_map_large(PAGE, 2 * ARENA, SLOT_SPAN, &clean));
    arena_purge(0);
    ck_assert_uint_eq(arena_held().now, 0);
    ck_assert_uint_eq(arenas.mapped, 0);
    if (is_blocked) munmap(end, PAGE);
}

static void fill(char *at, size_t size)
{
    for (size_t i = 0; i < size; i += 509) at[i] = (char)(i / 509 % 127 + 1);
}

static bool is_filled(const char *at, size_t size)
{
    for (size_t i = 0; i < size; i += 509)
        if (at[i] != (char)(i / 509 % 127 + 1)) return false;
    return true;
}

TEST(mappings_are_resized_and_keep_their_contents)
{
    static const size_t sizes[] = {5, 6, 8, 7, 30, 31, 12, 64, 5, 100, 9};
    size_t size = 5 * MIB, before = arena_held().now;
    bool clean;
    struct arena *arena = arena_map_large(size, 1, SLOT_SPAN, &clean);
    size_t mapped = arenas.mapped - size;
    fill(arena->base, size);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        size_t next = sizes[i] * MIB - 3000, kept = next < size ? next : size;
        char *old = arena->base;
        bool in_place = align_up(next, ARENA) <= align_up(size, ARENA);
        ck_assert(arena_remap_large(arena, next, true));
        if (in_place && next < size) ck_assert_ptr_eq(arena->base, old);
        if (arena->base != old) ck_assert_ptr_null(pagemap_find(old));
        assert_mapped(arena, next, SLOT_SPAN);
        ck_assert(is_filled(arena->base, kept));
        ck_assert_uint_eq(arena_held().now, before + align_up(next, PAGE));
        ck_assert_uint_eq(arenas.mapped, mapped + align_up(next, PAGE));
        ck_assert_uint_eq(large_totals().bytes, align_up(next, PAGE));
        for (size_t at = align_up(kept, PAGE); at < next; at += PAGE) ck_assert_int_eq(arena->base[at], 0);
        size = next;
        fill(arena->base, size);
    }
    ck_assert(!arena_remap_large(arena, 200 * MIB, false)); /* never beyond its last 4 MiB in place */
    assert_mapped(arena, size, SLOT_SPAN);
    arena_unmap_large(arena);
}

/* It leaves clean slots, and the mapping can move again. The span lies over two arenas, or within one. */
TEST(a_span_that_outgrows_an_arena_takes_its_pages_along, .times = 2)
{
    unsigned n = _i == 0 ? 40 : 80;
    bool clean;
    rseq_init(false, false);
    needs(cpu.ids != 0, "no rseq: an emulator may be below");
    struct superblock *span = arena_take_span(n, 1, SLOT_SPAN_CHUNK, ARENA_SPAN, &clean);
    char *old = slot_start(span), *now;
    size_t bytes = n * (size_t)SUPERBLOCK, size = 9 * MIB + 100;
    fill(old, bytes);
    size_t held = arena_held().now, unused = arena_held().unused, returned = arena_held().returned;
    ck_assert_ptr_nonnull(now = large_move(pagemap_find(old), old, size));
    assert_mapped(pagemap_find(now), size, SLOT_SPAN_CHUNK);
    ck_assert(is_filled(now, bytes) && all_bytes(now + bytes, size - bytes, 0));
    ck_assert(all_bytes(old, bytes, 0)); /* moved, and not copied */
    ck_assert_uint_eq(arena_held().now, held + align_up(size, PAGE) - bytes);
    ck_assert_uint_eq(arena_held().unused, unused);
    ck_assert_uint_eq(arena_held().returned, returned);
    ck_assert(!large_starts_at(pagemap_find(old), old));

    struct superblock *again = arena_take_span(n, 1, SLOT_SPAN, ARENA_SPAN, &clean);
    ck_assert(clean && slot_start(again) == old);
    fill(now, size);
    ck_assert_ptr_nonnull(now = large_move(pagemap_find(now), now, 70 * MIB));
    ck_assert(is_filled(now, size));
    large_free(pagemap_find(now), now);
    arena_give_span(again);
    arena_purge(0);
    ck_assert_uint_eq(arena_held().now, 0);
    ck_assert_uint_eq(arenas.mapped, 0);
}

/* The kernel would unlock what is around it. */
TEST(a_locked_span_is_copied)
{
    bool clean;
    rseq_init(false, false);
    struct superblock *span = arena_take_span(40, 1, SLOT_SPAN, ARENA_SPAN, &clean);
    char *old = slot_start(span), *now;
    fill(old, 40 * SUPERBLOCK);
    char *around = pagemap_find(old)->base;
    needs(mlock(around, ARENA) == 0, "4 MiB of memory may not be locked");
    ck_assert_ptr_nonnull(now = large_move(pagemap_find(old), old, 9 * MIB));
    ck_assert(is_filled(now, 40 * SUPERBLOCK) && is_filled(old, 40 * SUPERBLOCK));
    ck_assert(!pages_purge(old, SUPERBLOCK)); /* it is locked still */
    munlock(around, ARENA);
    large_free(pagemap_find(now), now);
}

/* Unused memory is given back at once, down to a number of bytes, or as much as is told. */
TEST(unused_memory_goes_down_to_a_bound)
{
    bool clean;
    struct superblock *used = arena_take_span(1, 1, SLOT_SPAN, ARENA_SPAN, &clean);
    struct superblock *span = arena_take_span(48, 1, SLOT_SPAN, ARENA_SPAN, &clean);
    arena_give_span(span);
    size_t unused = arena_held().unused;
    ck_assert_uint_eq(unused, 48 * SUPERBLOCK);
    arena_purge_unused(unused, SIZE_MAX);
    ck_assert_uint_eq(arena_held().unused, unused);
    arena_purge_unused(MIB, MIB);
    ck_assert_uint_eq(arena_held().unused, unused - MIB);
    arena_purge_unused(MIB, SIZE_MAX);
    ck_assert_uint_eq(arena_held().unused, MIB);
    arena_give_span(used);
}

/* A program may shrink what it has, and then do nothing more. */
TEST(what_is_shrunk_in_one_burst_goes_back)
{
    enum { MANY = 5 };
    char *at[MANY];
    unsigned purge_ms = options.purge_ms;
    options.purge_ms = 1000;
    size_t before = arena_held().now;
    for (unsigned i = 0; i < MANY; i++)
        ck_assert_ptr_nonnull(at[i] = memset(large_alloc(20 * MIB, BLOCK_UNIT, false, NULL), 1, 20 * MIB));
    for (unsigned i = 0; i < MANY; i++) ck_assert(large_resize(pagemap_find(at[i]), at[i], MIB));
    ck_assert_uint_le(arena_held().now, before + 4 * MANY * MIB + 4 * MIB);
    for (unsigned i = 0; i < MANY; i++) large_free(pagemap_find(at[i]), at[i]);
    options.purge_ms = purge_ms;
}

/* What is behind an object in its last slot, and in gaps that the next large object does not fit into, is not
 * held. */
TEST(what_is_shrunk_one_by_one_holds_little)
{
    enum { MANY = 200, BIG = 9000000, SMALL = 70000 };
    char *at[MANY];
    unsigned purge_ms = options.purge_ms;
    options.purge_ms = 1000000; /* no purge by time */
    size_t before = resident();
    needs(before != 0, "no /proc/self/statm");
    for (unsigned i = 0; i < MANY; i++) {
        ck_assert_ptr_nonnull(at[i] = memset(large_alloc(BIG, BLOCK_UNIT, false, NULL), 1, BIG));
        ck_assert(large_resize(pagemap_find(at[i]), at[i], SMALL));
    }
    size_t after = resident();
    ck_assert_uint_le(after, before + MANY * SMALL / 4 * 5 + BIG);
    for (unsigned i = 0; i < MANY; i++) large_free(pagemap_find(at[i]), at[i]);
    options.purge_ms = purge_ms;
}

TEST(impossible_large_objects_are_enomem)
{
    static const struct {
        size_t size, alignment;
    } much[] = {{SIZE_LIMIT, 16},
                {SIZE_LIMIT - ARENA, 16},
                {SIZE_MAX, 16},
                {(size_t)1 << PAGEMAP_ADDRESS_BITS, 16},
                {100, (size_t)1 << 63},
                {100, (size_t)1 << 62},
                {(size_t)1 << (PAGEMAP_ADDRESS_BITS - 1), (size_t)1 << (PAGEMAP_ADDRESS_BITS - 1)}};
    size_t before = arena_held().now;
    for (size_t i = 0; i < sizeof much / sizeof much[0]; i++) {
        errno = 0;
        ck_assert_ptr_null(large_alloc(much[i].size, much[i].alignment, false, NULL));
        ck_assert_int_eq(errno, ENOMEM);
    }
    ck_assert_uint_eq(arena_held().now, before);
}

int main(void) { return run_tests((struct suite){.begin = start_arenas}); }
