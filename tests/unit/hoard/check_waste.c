/* SPDX-License-Identifier: Apache-2.0 */
/* check_waste.c: how much more is reserved than was asked for, and which reallocs stay where they are or move
 * without a copy. */
#include "support/check_backend.h"

#include "arena/arena.h"

#include <math.h>
#include <sys/resource.h>

/* n sizes from 16 bytes to `most`, each as far from the next in proportion; so any range counts by the
 * doublings it has. */
static size_t size_of(unsigned i, unsigned n, size_t most)
{
    return (size_t)(16 * pow((double)most / 16, (i + 0.5) / n));
}

static const struct mix {
    size_t most;
    unsigned n;
} mixes[] = {{2 * KIB, 40000}, {32 * KIB, 10000}, {4 * MIB, 1000}, {64 * MIB, 150}};

enum { MIXES = sizeof mixes / sizeof mixes[0], MOST = 40000 };

/* By usable sizes: the mean of what each has in proportion, and all to all. */
TEST(blocks_are_at_most_a_quarter_too_large_on_average, .times = MIXES * PATHS)
{
    use_path(_i % PATHS, NULL);
    const struct mix *mix = &mixes[_i / PATHS];
    double ratios = 0, reserved = 0, asked = 0;
    for (unsigned i = 0; i < mix->n; i++) {
        size_t size = size_of(i, mix->n, mix->most);
        void *block = hoard_malloc(size);
        size_t usable = hoard_usable_size(block);
        ck_assert_uint_ge(usable, size);
        if (size > 128 && size <= 8 * KIB) ck_assert_uint_le(usable * 4, size * 5);
        hoard_free(block);
        ratios += (double)usable / (double)size;
        reserved += (double)usable;
        asked += (double)size;
    }
    fprintf(stderr, "16 to %zu: mean %.3f, all to all %.3f\n", mix->most, ratios / mix->n, reserved / asked);
    ck_assert_double_le(ratios / mix->n, 1.25);
    ck_assert_double_le(reserved / asked, 1.25);
}

/* By what is held of the OS while all of them live, parts of superblocks that nobody uses included. In an
 * order that mixes them: each next size is a prime number of steps on. By one processor: each other one may
 * have superblocks of its own besides (check_bounds). */
TEST(what_is_held_is_at_most_a_quarter_too_much, .times = MIXES * PATHS)
{
    static void *blocks[MOST];
    use_path(_i % PATHS, NULL);
    pin_to(0);
    const struct mix *mix = &mixes[_i / PATHS];
    double asked = 0;
    for (unsigned i = 0, at = 0; i < mix->n; i++, at = (at + 7919) % mix->n) {
        size_t size = size_of(at, mix->n, mix->most);
        ck_assert_ptr_nonnull(blocks[i] = hoard_malloc(size));
        asked += (double)size;
    }
    double held = (double)held_bytes();
    for (unsigned i = 0; i < mix->n; i++) hoard_free(blocks[i]);
    fprintf(stderr, "16 to %zu: held %.3f of %.0f asked\n", mix->most, held / asked, asked);
    ck_assert_double_le(held / asked, 1.25);
    ck_assert_double_ge(held / asked, 1); /* else the figure is wrong */
}

static long faults(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt;
}

TEST(a_block_stays_within_its_class_and_down_to_half_of_it, .times = PATHS)
{
    use_path(_i, NULL);
    for (size_t size = 16; size <= 32 * KIB; size += size / 3) {
        char *block = hoard_malloc(size);
        size_t usable = hoard_usable_size(block);
        ck_assert_ptr_eq(hoard_realloc(block, usable), block);
        ck_assert_ptr_eq(hoard_realloc(block, usable / 2), block);
        ck_assert_ptr_eq(hoard_realloc(block, usable), block);
        hoard_free(block);
    }
}

/* Spans grow into free slots behind them, and give back what they lose. */
TEST(a_span_grows_and_shrinks_in_place, .times = PATHS)
{
    use_path(_i, "purge_ms=3600000");
    char *span = hoard_malloc(200 * KIB);
    memset(span, 7, 200 * KIB);
    for (size_t size = 300 * KIB; size <= 3 * MIB; size += size / 2) {
        ck_assert_ptr_eq(hoard_realloc(span, size), span);
        ck_assert_uint_ge(hoard_usable_size(span), size);
        ck_assert_uint_lt(hoard_usable_size(span), size + SUPERBLOCK);
    }
    ck_assert(span[0] == 7 && span[200 * KIB - 1] == 7);
    ck_assert_ptr_eq(hoard_realloc(span, 100 * KIB), span);
    ck_assert_uint_eq(hoard_usable_size(span), 2 * SUPERBLOCK);
    char *wall = hoard_malloc(64 * KIB); /* the first free slot: right behind it */
    ck_assert_ptr_eq(wall, span + 2 * SUPERBLOCK);
    char *moved = hoard_realloc(span, 300 * KIB);
    ck_assert_ptr_ne(moved, span);
    ck_assert(moved[0] == 7 && moved[100 * KIB - 1] == 7);
    hoard_free(moved);
    hoard_free(wall);
}

/* What SQLite asks for, for a page of 4096 bytes. */
TEST(pages_of_sqlite_fill_a_superblock, .times = PATHS)
{
    enum { ASKED = 4368, PAGES = SUPERBLOCK / ASKED };
    use_path(_i, NULL);
    pin_to(0);
    const struct superblock *first = superblock_of(hoard_malloc(ASKED));
    for (unsigned i = 1; i < PAGES; i++) ck_assert_ptr_eq(superblock_of(hoard_malloc(ASKED)), first);
}

/* Its strings grow to 1 KiB and a header. */
TEST(a_kib_with_a_header_takes_no_more_than_that, .times = PATHS)
{
    enum { ASKED = 1032, USABLE = 1040, BLOCKS = SUPERBLOCK / USABLE };
    use_path(_i, NULL);
    pin_to(0);
    const struct superblock *first = superblock_of(hoard_malloc(ASKED));
    for (unsigned i = 1; i < BLOCKS; i++) {
        void *block = hoard_malloc(ASKED);
        ck_assert_ptr_eq(superblock_of(block), first);
        ck_assert_uint_eq(hoard_usable_size(block), USABLE);
    }
    ck_assert_uint_eq(hoard_usable_size(hoard_malloc(KIB)), KIB);
}

/* Beyond 32 MiB the kernel moves pages: nothing is copied, so nothing is touched for the first time. */
TEST(a_mapping_moves_without_a_copy, .times = PATHS)
{
    enum { FILLED = 36 * 1024 * 1024, STEP = 4096 };
    use_path(_i, NULL);
    char *mapping = hoard_malloc(FILLED);
    memset(mapping, 7, FILLED);
    void *others[6]; /* in the way */
    long before = faults();
    for (unsigned i = 0; i < 6; i++) {
        others[i] = hoard_malloc(33 * MIB);
        ck_assert_ptr_nonnull(mapping = hoard_realloc(mapping, (size_t)FILLED << (i + 1)));
    }
    long meanwhile = faults() - before;
    ck_assert_int_lt(meanwhile, 300); /* a copy of 36 MiB has thousands, of 4 KiB each */
    for (size_t i = 0; i < FILLED; i += STEP) ck_assert_int_eq(mapping[i], 7);
    ck_assert_int_eq(mapping[FILLED + 1], 0);

    size_t held = held_bytes();
    ck_assert_ptr_eq(hoard_realloc(mapping, FILLED), mapping); /* smaller: in place, and the rest goes back */
    ck_assert_uint_eq(held - held_bytes(), (size_t)FILLED * 63);
    ck_assert_int_eq(mapping[FILLED - 1], 7);
    for (unsigned i = 0; i < 6; i++) hoard_free(others[i]);
    hoard_free(mapping);
}

int main(void) { return run_tests((struct suite){0}); }
