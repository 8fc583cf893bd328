/* SPDX-License-Identifier: Apache-2.0 */
/* check_visits.c: how often the global heap is visited, and how many locks and atomic instructions an
 * operation costs, for any number of processors. */
#include "support/check_backend.h"

#include "base/options.h"
#include "loads.h"
#include "vcpu.h"
#include "watch.h"

#include "reap.h"

static const unsigned counts[] = {2, 16, 256};

enum { COUNTS = 3 };

/* What a load's run costs; false: not on this path here. */
struct cost {
    double operations, visits, locks, atomics;
};

static bool measure(const struct load *load, enum vcpu_path path, unsigned processors, struct cost *cost)
{
    if (!vcpu_start(path, load->options)) return false;
    watch_start();
    vcpu_be(0);
    size_t bytes = load_bytes(load, processors, 4 * MIB);
    if (load->prepare != NULL) load->prepare(processors, bytes);
    struct watched before = watched;
    uint64_t operations = ledger.mallocs + ledger.frees;
    load->run(processors, bytes);
    cost->operations = (double)(ledger.mallocs + ledger.frees - operations);
    cost->visits = (double)(watched.global_locks - before.global_locks);
    cost->locks = (double)(watched.locks - before.locks);
    cost->atomics = (double)(watched.atomics - before.atomics);
    fprintf(stderr, "%s %s %u: %.0f operations, %.0f visits, %.4f locks, %.4f atomic instructions each\n",
            load->name, vcpu_path_names[path], processors, cost->operations, cost->visits,
            cost->locks / cost->operations, cost->atomics / cost->operations);
    return true;
}

/* What a visit of the global heap brings a malloc, and what makes one needful for a free: f of the blocks of
 * a superblock, f*S/s in the paper's terms. */
static double f_of_superblock(void) { return options.empty_fraction / 8.0 * SUPERBLOCK / LOAD_SIZE; }

/* Section 4.2, growing phase. The frees count as well: who finds what others freed brings it to the global
 * heap before it takes from there. */
TEST(growth_visits_the_global_heap_seldom, .times = COUNTS * VCPU_PATHS)
{
    struct cost cost;
    unsigned processors = counts[_i / VCPU_PATHS];
    needs(measure(&load_growing, _i % VCPU_PATHS, processors, &cost), vcpu_lacks);
    /* With locks what is freed elsewhere goes to its heap, and a global heap that is empty is not visited. */
    ck_assert((cost.visits > 0) == (_i % VCPU_PATHS == VCPU_FAST));
    ck_assert_double_le(cost.visits, cost.operations / f_of_superblock() + processors);
}

/* Section 4.2, shrinking phase: a visit for each free in the worst case, with locks; without, f*S/s frees. */
TEST(shrinking_visits_it_for_each_free_only_with_locks, .times = COUNTS * VCPU_PATHS)
{
    struct cost cost;
    unsigned processors = counts[_i / VCPU_PATHS];
    needs(measure(&load_shrinking, _i % VCPU_PATHS, processors, &cost), vcpu_lacks);
    if (_i % VCPU_PATHS == VCPU_FAST)
        ck_assert_double_le(cost.visits, cost.operations / f_of_superblock() + processors);
    else
        ck_assert_double_le(cost.visits, cost.operations);
    ck_assert_double_gt(cost.visits, 0);
}

/* Each malloc's visit brings as much as above, and each superblock that goes there was brought from there, or
 * made: so everywhere it is twice that at most, and what each heap does at its first. */
TEST(steady_loads_visit_it_seldom, .times = 3 * COUNTS * VCPU_PATHS)
{
    static const struct load *const steady[] = {&load_pairs, &load_round, &load_worst};
    struct cost cost;
    unsigned processors = counts[_i / VCPU_PATHS / 3];
    needs(measure(steady[_i % 3], _i / 3 % VCPU_PATHS, processors, &cost), vcpu_lacks);
    ck_assert_double_le(cost.visits, 2 * cost.operations / f_of_superblock() + 2 * processors);
}

/* Every processor frees its own: on the fast path not one lock, and not one atomic instruction. */
TEST(local_operations_are_free_of_them, .times = COUNTS)
{
    enum { ROUNDS = 4, OBJECTS = 40 };
    static void *objects[OBJECTS];
    needs(vcpu_start(VCPU_FAST, "purge_ms=3600000"), vcpu_lacks);
    watch_start();
    unsigned processors = counts[_i];
    for (unsigned round = 0; round <= ROUNDS; round++) {
        if (round == 1) watched = (struct watched){0}; /* each heap has its superblock now */
        for (unsigned id = 0; id < processors; id++) {
            vcpu_be(id);
            for (unsigned i = 0; i < OBJECTS; i++) objects[i] = vcpu_malloc(48);
            for (unsigned i = 0; i < OBJECTS; i++) vcpu_free(objects[i]);
        }
    }
    ck_assert_uint_eq(ledger.mallocs, (ROUNDS + 1u) * OBJECTS * processors);
    ck_assert_uint_eq(watched.locks, 0);
    ck_assert_uint_eq(watched.atomics, 0);
}

/* Every block is freed by another processor than had it: a chain of many costs one atomic instruction. With
 * locks each operation takes one, which is two instructions. */
TEST(what_others_free_costs_little, .times = COUNTS * VCPU_PATHS)
{
    struct cost cost;
    enum vcpu_path path = _i % VCPU_PATHS;
    needs(measure(&load_pairs, path, counts[_i / VCPU_PATHS], &cost), vcpu_lacks);
    double locks = cost.locks / cost.operations, atomics = cost.atomics / cost.operations;
    ck_assert_double_le(locks, path == VCPU_FAST ? 0.02 : 1.02);
    ck_assert_double_le(atomics, path == VCPU_FAST ? 0.1 : 2.05);
}

enum { TAKEN = 40, TURNS = 50 };

static void *new_shared(void)
{
    void *shared = NULL;
    struct reap_options shared_options = {.size = sizeof shared_options, .flags = REAP_SHARED};
    ck_assert_int_eq(reapCreateWith(&shared, NULL, &shared_options), 0);
    return shared;
}

/* Each processor takes objects, and frees those that the one `ahead` of it has taken. */
static void take_and_free(void **shared, unsigned processors, unsigned ahead)
{
    static void *objects[VCPU_MAX][TAKEN];
    for (unsigned id = 0; id < processors; id++) {
        vcpu_be(id);
        for (unsigned i = 0; i < TAKEN; i++) objects[id][i] = reapMalloc(shared, 48);
    }
    for (unsigned id = 0; id < processors; id++) {
        vcpu_be((id + ahead) % processors);
        for (unsigned i = 0; i < TAKEN; i++) reapFree(shared, objects[id][i]);
    }
}

/* In a shared reap one to enter a part, and another one for what others free, whatever the number of
 * processors. */
TEST(shared_reaps_are_flat, .times = 2 * COUNTS * VCPU_PATHS)
{
    unsigned processors = counts[_i % COUNTS], ahead = _i / COUNTS % 2;
    enum vcpu_path path = _i / COUNTS / 2;
    needs(vcpu_start(path, NULL), vcpu_lacks);
    watch_start();
    void *shared = new_shared();
    for (unsigned turn = 0; turn < 4; turn++) take_and_free(&shared, processors, ahead);
    watched = (struct watched){0};
    for (unsigned turn = 0; turn < TURNS; turn++) take_and_free(&shared, processors, ahead);
    double operations = 2.0 * TURNS * TAKEN * processors;
    double locks = (double)watched.locks / operations, atomics = (double)watched.atomics / operations;
    fprintf(stderr, "shared %s %u, %s: %.4f locks, %.4f atomic instructions each\n", vcpu_path_names[path],
            processors, ahead ? "freed by others" : "freed by itself", locks, atomics);
    ck_assert_double_le(locks, 0.01);
    ck_assert_double_le(atomics, 1.05 + (ahead ? 0.5 : 0));
    reapDestroy(&shared);
}

int main(void) { return run_tests((struct suite){0}); }
