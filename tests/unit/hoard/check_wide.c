/* SPDX-License-Identifier: Apache-2.0 */
/* check_wide.c: blocks of 4.4 to 128 KiB, whose superblocks have several slots, and their stubs. */
#include "support/check_backend.h"

#include "arena/arena.h"
#include "arena/large.h"

enum { WIDE = CLASS_CHUNK - CLASS_WIDE };

/* Starts the allocator too: the tables of classes are made by its first call. */
static void start_on(int path)
{
    use_path(path, NULL);
    pin_to(0);
    hoard_free(hoard_malloc(1));
    hoard_trim(0);
}

static size_t size_of(unsigned class) { return sizeclasses[class].size; }

static unsigned slots_held(void)
{
    struct hoard_stats stats;
    hoard_stats(&stats);
    return (unsigned)(stats.superblocks + stats.global_superblocks);
}

/* Two superblocks of each class: whole blocks are written, and none is written to by another. */
TEST(blocks_are_apart, .times = PATHS)
{
    start_on(_i);
    static char *blocks[2 * UINT8_MAX];
    for (unsigned class = CLASS_WIDE; class < CLASS_CHUNK; ++class) {
        unsigned n = 2 * sizeclasses[class].capacity;
        size_t size = size_of(class), least = size_of(class - 1) + 1;
        for (unsigned i = 0; i < n; i++) {
            ck_assert_ptr_nonnull(blocks[i] = hoard_malloc(i % 2 ? size : least));
            ck_assert_uint_eq(hoard_usable_size(blocks[i]), size);
            ck_assert_uint_eq((uintptr_t)blocks[i] % LINE, 0);
            memset(blocks[i], (int)i, size);
        }
        for (unsigned i = 0; i < n; i++) ck_assert(all_bytes(blocks[i], size, (uint8_t)i));
        for (unsigned i = 0; i < n; i += 2) hoard_free(blocks[i]);
        for (unsigned i = 0; i < n; i += 2) memset(blocks[i] = hoard_malloc(size), (int)i, size);
        for (unsigned i = 0; i < n; i++) ck_assert(all_bytes(blocks[i], size, (uint8_t)i));
        ck_assert_uint_ge(slots_held(), 2 * sizeclasses[class].slots);
        for (unsigned i = 0; i < n; i++) hoard_free(blocks[i]);
        hoard_trim(0);
        ck_assert_uint_eq(slots_held(), 0);
    }
    assert_all_comes_back();
}

/* A superblock of each class, seen by all its addresses that could start a block. */
TEST(stubs_are_of_starts, .times = PATHS)
{
    start_on(_i);
    for (unsigned class = CLASS_WIDE; class < CLASS_CHUNK; ++class) {
        const struct sizeclass *k = &sizeclasses[class];
        char *start = slot_start(superblock_of(hoard_malloc(k->size)));
        struct arena *arena = pagemap_find(start);
        unsigned wrong = 0;
        for (size_t at = 0; at < k->slots * (size_t)SUPERBLOCK; at += BLOCK_UNIT) {
            ck_assert_ptr_eq(arena_wide(arena, start + at), superblock_of(start));
            const struct stub *stub = arena_stub(arena, superblock_of(start), start + at);
            bool is_start = at % k->size == 0 && at / k->size < k->capacity;
            wrong += (stub != NULL) != is_start || (is_start && stub->block != start + at);
        }
        ck_assert_uint_eq(wrong, 0);
        for (unsigned at = 1; at < BLOCK_UNIT; at++)
            ck_assert_ptr_null(arena_stub(arena, superblock_of(start), start + at));
    }
}

static void free_it(void *block) { hoard_free(block); }

TEST(what_was_never_handed_out_is_told, .times = PATHS)
{
    start_on(_i);
    for (unsigned class = CLASS_WIDE; class < CLASS_CHUNK; class += 4) {
        char *first = hoard_malloc(size_of(class));
        struct superblock *sb = superblock_of(first);
        char *last = slot_start(sb) + (sizeclasses[class].capacity - 1) * size_of(class);
        assert_misuse(free_it, last, "hoard_free", "freed twice");
        size_t rest = sizeclasses[class].slots * (size_t)SUPERBLOCK % size_of(class);
        if (rest == 0) continue;
        assert_misuse(free_it, last + size_of(class), "hoard_free", "not the start of a block");
    }
}

static enum superblock_kind kind_of(const void *object) { return superblock_of(object)->kind; }

TEST(what_grows_has_a_span, .times = PATHS)
{
    start_on(_i);
    char *object = hoard_malloc(20000);
    memset(object, 3, 20000);
    ck_assert_int_eq(kind_of(object), SLOT_WIDE);
    object = hoard_realloc(object, 60000);
    ck_assert_int_eq(kind_of(object), SLOT_SPAN);
    char *same = hoard_realloc(object, 60 * KIB);
    ck_assert_ptr_eq(same, object);
    ck_assert(all_bytes(object, 20000, 3));
    object = hoard_realloc(object, 10000);
    ck_assert_int_eq(kind_of(object), SLOT_WIDE);
    ck_assert(all_bytes(object, 10000, 3));
    hoard_free(object);
    assert_all_comes_back();
}

int main(void) { return run_tests((struct suite){0}); }
