/* SPDX-License-Identifier: Apache-2.0 */
/* check_misuse.c: each misuse of hoard.h's calls ends the program with one line that says what it was. */
#include "support/check_backend.h"

#include "arena/arena.h"
#include "base/report.h"
#include "hoard/chunk_provider.h"

/* What is done in the child; the pointer was made before, in the parent. */
static void free_it(void *p) { hoard_free(p); }

static void resize_it(void *p) { hoard_realloc(p, 200); }

/* A size that is never served does not hide the mistake. */
static volatile size_t too_large = SIZE_MAX; /* the compiler knows such a constant */
static void resize_it_too_far(void *p) { hoard_realloc(p, too_large); }

static void measure_it(void *p) { hoard_usable_size(p); }

/* free, realloc and usable_size of one bad pointer */
static void assert_bad(void *p, const char *what)
{
    assert_misuse(free_it, p, "hoard_free", what);
    assert_misuse(resize_it, p, "hoard_realloc", what);
    assert_misuse(measure_it, p, "hoard_usable_size", what);
}

static const size_t sizes[] = {1, 16, 24, 100, 640, 1000, 1025, 5000, 8192, 20000, CLASS_SIZE_MAX};

enum { SIZES = sizeof sizes / sizeof sizes[0] };

TEST(a_block_freed_twice, .times = PATHS)
{
    use_path(_i, NULL);
    for (unsigned i = 0; i < SIZES; i++) {
        char *p = hoard_malloc(sizes[i]), *other = hoard_malloc(sizes[i]);
        hoard_malloc(sizes[i]); /* it lives: a large superblock without one may go back at once */
        hoard_free(p);
        assert_misuse(free_it, p, "hoard_free", "freed twice");
        assert_misuse(resize_it, p, "hoard_realloc", "used after it was freed");
        assert_misuse(resize_it_too_far, p, "hoard_realloc", "used after it was freed");
        assert_misuse(measure_it, p, "hoard_usable_size", "used after it was freed");
        hoard_free(other); /* and with another one freed in between */
        assert_misuse(free_it, p, "hoard_free", "freed twice");
    }
}

/* The first to come back, the last, one in the middle; and a block whose superblock is on the global heap. */
TEST(a_block_freed_twice_among_many, .times = PATHS)
{
    use_path(_i, "slack=0,empty_fraction=1");
    static void *blocks[3000];
    for (unsigned i = 0; i < 3000; i++) blocks[i] = hoard_malloc(200);
    for (unsigned i = 0; i < 3000; i++)
        if (i % 50 != 0) hoard_free(blocks[i]);
    for (unsigned i = 1; i < 3000; i += 333) {
        if (i % 50 == 0) continue;
        struct superblock *sb = superblock_of(blocks[i]);
        if (sb->kind == SLOT_BLOCKS) assert_misuse(free_it, blocks[i], "hoard_free", "freed twice");
    }
}

TEST(an_interior_pointer, .times = PATHS)
{
    use_path(_i, NULL);
    for (unsigned i = 0; i < SIZES; i++) {
        char *p = hoard_malloc(sizes[i]);
        size_t usable = hoard_usable_size(p);
        for (size_t at = 1; at < usable; at = at * 3 + 1) assert_bad(p + at, "not the start of a block");
        if (usable > 16) assert_bad(p + 16, "not the start of a block");
    }
}

TEST(pointers_of_others, .times = PATHS)
{
    use_path(_i, NULL);
    static char in_data[100];
    char on_stack[100];
    hoard_free(hoard_malloc(10));
    assert_bad(in_data, "not a pointer of this allocator");
    assert_bad(on_stack, "not a pointer of this allocator");
    assert_bad((void *)16, "not a pointer of this allocator");
    assert_bad((void *)((uintptr_t)1 << 47), "not a pointer of this allocator");
    assert_bad((void *)0xdeadbeefcafebabe, "not a pointer of this allocator");
    assert_bad((void *)UINTPTR_MAX, "not a pointer of this allocator");
}

TEST(large_objects, .times = PATHS)
{
    use_path(_i, NULL);
    static const size_t large[] = {CLASS_SIZE_MAX + 1, 200000, MIB, 4 * MIB, 4 * MIB + 1, 9 * MIB};
    char *keep = hoard_malloc(100);
    for (unsigned i = 0; i < sizeof large / sizeof large[0]; i++) {
        char *p = hoard_malloc(large[i]);
        assert_bad(p + 16, "not the start of a block");
        assert_bad(p + 4096, "not the start of a block");
        assert_bad(p + large[i] - 1, "not the start of a block");
        hoard_free(p);
        assert_misuse(free_it, p, "hoard_free",
                      pagemap_find(p) != NULL ? "freed before, or never allocated"
                                              : "not a pointer of this allocator");
    }
    hoard_free(keep);
}

TEST(slots_that_hold_nothing, .times = PATHS)
{
    use_path(_i, NULL);
    char *p = hoard_malloc(100);
    struct arena *arena = pagemap_find(p);
    for (unsigned i = 0; i < ARENA_SLOTS; i++)
        if ((arena->used >> i & 1) == 0)
            assert_bad(arena->base + (size_t)i * SUPERBLOCK + 64, "freed before, or never allocated");
}

static void write_and_allocate(void *block)
{
    memset(block, 'x', 8);
    for (unsigned i = 0; i < 10; i++) hoard_malloc(100);
}

/* Where heaps are those of CPUs, malloc comes to the block only on the CPU that freed it. */
TEST(a_write_after_free_is_found_by_malloc, .times = PATHS)
{
    use_path(_i, NULL);
    pin_to(0);
    char *p = hoard_malloc(100);
    hoard_malloc(100);
    hoard_free(p);
    assert_misuse(write_and_allocate, p, "malloc", "memory was written to after it was freed");
}

static void no_object(void *chunk, void *object, const char *call)
{
    report_misuse(call, object, chunk ? "a chunk" : "none");
}

static void no_work(void) {}

/* A reap's chunk is no block, also where blocks nearby have been freed and are found without the map. */
TEST(a_chunk_is_no_block, .times = PATHS)
{
    use_path(_i, NULL);
    static const struct reap_hooks client = {.free_object = no_object,
                                             .fork_prepare = no_work,
                                             .fork_parent = no_work,
                                             .fork_child = no_work,
                                             .take_along = no_work};
    reap_hooks_set(&client);
    for (size_t size = 8 * KIB; size <= 256 * KIB; size *= 2) {
        hoard_free(hoard_malloc(100));
        char *chunk = chunk_alloc(size, NULL, NULL);
        assert_misuse(free_it, chunk, "hoard_free", "a chunk");
        assert_misuse(free_it, chunk + 64, "hoard_free", "a chunk");
        chunk_free(chunk);
    }
}

/* A live block that happens to look free is freed as any other: also the closer look is right. */
static void free_look_alike(void *p)
{
    block_set_link(p, 0);
    if (!block_looks_free(p)) _Exit(1);
    if (hoard_usable_size(p) < 100) _Exit(2);
    hoard_free(p);
    if (hoard_malloc(100) == NULL) _Exit(3);
}

TEST(a_block_that_only_looks_free, .times = PATHS)
{
    use_path(_i, NULL);
    char *p = hoard_malloc(100);
    hoard_free(hoard_malloc(100));
    struct outcome said = run_child(free_look_alike, p);
    ck_assert_int_eq(said.status, 0);
    ck_assert_str_eq(said.text, "");
}

int main(void) { return run_tests((struct suite){0}); }
