/* SPDX-License-Identifier: Apache-2.0 */
/* check_bounds.c: the bound on memory and the absence of false sharing, for any number of processors. */
#include "support/check_backend.h"

#include "arena/arena.h"
#include "base/options.h"
#include "bound.h"
#include "loads.h"
#include "vcpu.h"

enum { LOADS = 11, BYTES = 2 * MIB, WIDE_SIZES = 5, WIDE_LOADS = 5 };
enum { ALL = LOADS * VCPU_PATHS, WIDE = WIDE_SIZES * WIDE_LOADS, ALL_WIDE = WIDE * VCPU_PATHS };

static void say(const struct load *load, enum vcpu_path path, unsigned processors, double held, double bound)
{
    fprintf(stderr,
            "%s %s %u: held %.2f MiB of %.2f; of the bound: recorded %.2f unrecorded %.2f unposted %.2f "
            "held back %.2f heap %.2f; active %.0f, looks %u; lines shared %lu, %lu, carried %lu; used %lu\n",
            load->name, vcpu_path_names[path], processors, held / MIB, bound / MIB, extremes.recorded,
            extremes.unrecorded, extremes.unposted, extremes.held_back, extremes.heap, extremes.active,
            extremes.looks, (unsigned long)ledger.active, (unsigned long)ledger.passive,
            (unsigned long)ledger.carried, (unsigned long)ledger.in_used);
}

static void run(const struct load *load, unsigned processors, size_t bytes)
{
    vcpu_on_growth = extremes_look;
    if (load->prepare != NULL) load->prepare(processors, bytes);
    load->run(processors, bytes);
}

static void assert_bounds(const struct load *load, enum vcpu_path path, unsigned processors)
{
    double held = (double)arena_held().peak;
    unsigned slots = sizeclasses[sizeclass_of(load_size)].slots;
    double most = bound_of(load->classes, slots, load->share, processors, ledger.live_max);
    say(load, path, processors, held, most);
    ck_assert_double_le(held, most);
    ck_assert_double_le(extremes.recorded, 1);
    ck_assert_double_lt(extremes.unrecorded, 1);
    ck_assert_double_lt(extremes.unposted, 1);
    ck_assert_double_le(extremes.held_back, 1);
    ck_assert_double_le(extremes.heap, 1);
    ck_assert_double_le(extremes.active, load->classes * slots);
    ck_assert_uint_gt(extremes.looks, 0);
    ck_assert_uint_eq(ledger.active, 0);
    ck_assert_uint_eq(ledger.passive, 0);
    if (load == &load_handed && options.slack <= 4)
        ck_assert_uint_gt(ledger.in_used, 0); /* or what is shown? */
    if (load == &load_moving) ck_assert_uint_gt(ledger.carried, 0);
}

/* Where time is short each load is run on one of the paths. */
static int one_path(int i) { return (int)shorter((unsigned)i, (unsigned)(i * VCPU_PATHS + i % VCPU_PATHS)); }

static void keep_the_bounds(int i, unsigned processors, const char *setting)
{
    const struct load *load = loads[i / VCPU_PATHS];
    enum vcpu_path path = i % VCPU_PATHS;
    needs(vcpu_start(path, setting), vcpu_lacks);
    run(load, processors, BYTES);
    assert_bounds(load, path, processors);
    load_finish();
    assert_all_comes_back();
}

TEST(two_processors_keep_the_bounds, .times = ALL) { keep_the_bounds(_i, 2, NULL); }
TEST(sixteen_processors_keep_the_bounds, .times = ALL) { keep_the_bounds(_i, 16, NULL); }
TEST(processors_256_keep_the_bounds, .times = shorter(ALL, LOADS))
{
    keep_the_bounds(one_path(_i), 256, NULL);
}
TEST(without_slack_too, .times = ALL) { keep_the_bounds(_i, 16, "empty_fraction=1,slack=0"); }
TEST(with_much_slack_too, .times = shorter(ALL, LOADS))
{
    keep_the_bounds(one_path(_i), 16, "empty_fraction=4,slack=16");
}

/* Sixteen processors with four caches among them, siblings apart as Linux numbers them. */
TEST(with_caches_between_too, .times = ALL)
{
    keep_the_bounds(_i, 16, "topology=0.0:1.0:2.1:3.1:4.2:5.2:6.3:7.3:0.0:1.0:2.1:3.1:4.2:5.2:6.3:7.3");
}

/* Wide blocks: superblocks of two, four, eight and sixteen slots; of one block a slot, at 64 KiB. */
static void wide_blocks(int i, unsigned processors)
{
    static const unsigned sizes[] = {8 * KIB, 16 * KIB, 32 * KIB, 64 * KIB, 128 * KIB};
    static const struct load *const wide[] = {&load_pairs, &load_round, &load_worst, &load_growing,
                                              &load_shrinking};
    static_assert(sizeof sizes / sizeof *sizes == WIDE_SIZES && sizeof wide / sizeof *wide == WIDE_LOADS, "");
    const struct load *load = wide[i / (WIDE_SIZES * VCPU_PATHS)];
    enum vcpu_path path = i % VCPU_PATHS;
    load_size = sizes[i / VCPU_PATHS % WIDE_SIZES];
    needs(vcpu_start(path, NULL), vcpu_lacks);
    size_t bytes = load_bytes(load, processors, BYTES / LOAD_SIZE * load_size);
    if (load == &load_shrinking && bytes > 512 * MIB) return; /* it wants eight superblocks a heap */
    run(load, processors, bytes);
    assert_bounds(load, path, processors);
    load_finish();
    assert_all_comes_back();
}

TEST(wide_blocks_keep_the_bounds_of_two, .times = shorter(ALL_WIDE, WIDE)) { wide_blocks(one_path(_i), 2); }
TEST(wide_blocks_keep_the_bounds_of_sixteen, .times = ALL_WIDE) { wide_blocks(_i, 16); }
TEST(wide_blocks_keep_the_bounds_of_256, .times = shorter(ALL_WIDE, WIDE)) { wide_blocks(one_path(_i), 256); }

/* The bound is no more than what can happen: the worst load comes close to it. Without slack, and with many
 * superblocks, so that what each heap may have besides weighs little. */
TEST(the_bound_is_reached, .times = 3)
{
    static const char *const fractions[] = {"slack=0,empty_fraction=1", "slack=0,empty_fraction=2",
                                            "slack=0,empty_fraction=3"};
    needs(vcpu_start(VCPU_FAST, fractions[_i]), vcpu_lacks);
    run(&load_worst, 64, 16 * MIB);
    assert_bounds(&load_worst, VCPU_FAST, 64);
    double slope = (double)arena_held().peak / (double)ledger.live_max;
    ck_assert_double_ge(slope, 0.9 * bound_slope(1, 1));
}

/* What doc/design/bound.md says of classes, and of the share of a superblock that is too small for a block.
 */
TEST(blocks_in_the_lines_of_one)
{
    sizeclass_init();
    for (unsigned size = 0, n = 1; n <= CLASS_SIZE_MAX; n = size + 1) {
        unsigned c = sizeclass_of(n);
        size = sizeclasses[c].size;
        unsigned most = size % 64 == 0 ? 0 : size % 32 == 0 ? 1 : size == 16 ? 3 : 2;
        ck_assert_uint_eq(most_held_back(c), most);
        unsigned whole = sizeclasses[c].slots * SUPERBLOCK;
        ck_assert_uint_le(whole - sizeclasses[c].capacity * size, whole / 40);
    }
}

int main(void) { return run_tests((struct suite){0}); }
