/* SPDX-License-Identifier: Apache-2.0 */
/* check_bin.c: superblocks of a class by fullness. */
#include "support/check_backend.h"

#include "heap/bin.h"

enum { BINNED = 60 };

TEST(bins_know_their_fullest_and_emptiest)
{
    uint64_t random = random_seed();
    static struct superblock binned[BINNED];
    struct bin bin = {0};
    for (unsigned step = 0; step < 30000; step++) {
        struct superblock *one = &binned[random_below(&random, BINNED)];
        if (list_holds(&one->link)) {
            bin_remove(&bin, one);
        } else {
            unsigned group = random_below(&random, GROUP_EMPTY);
            bin_add(&bin, one, group);
            ck_assert_uint_eq(one->group, group);
        }
        unsigned counts[GROUPS] = {0};
        for (unsigned i = 0; i < BINNED; i++) counts[binned[i].group] += list_holds(&binned[i].link);
        unsigned emptiest = GROUPS, wrong = 0; /* each ck_assert tells Check where it is */
        for (unsigned g = 0; g < GROUP_EMPTY; g++) {
            wrong += (bin.mask >> g & 1) != (counts[g] != 0);
            if (counts[g] != 0) emptiest = g;
        }
        for (unsigned least = 0; least < GROUP_EMPTY; least++) {
            unsigned g = least;
            while (g < GROUP_EMPTY && counts[g] == 0) g++;
            struct superblock *fullest = bin_fullest(&bin, least);
            wrong += (fullest != NULL) != (g < GROUP_EMPTY) || (fullest != NULL && fullest->group != g);
        }
        ck_assert_uint_eq(wrong, 0);
        struct superblock *most = bin_emptiest(&bin);
        ck_assert_int_eq(most != NULL, emptiest < GROUPS);
        if (most != NULL) ck_assert_uint_eq(most->group, emptiest);
    }
}

TEST(the_latest_to_change_is_taken_first)
{
    static struct superblock binned[3];
    struct bin bin = {0};
    for (unsigned i = 0; i < 3; i++) bin_add(&bin, &binned[i], 2);
    ck_assert_ptr_eq(bin_fullest(&bin, 1), &binned[2]);
    bin_remove(&bin, &binned[0]);
    bin_add(&bin, &binned[0], 2);
    ck_assert_ptr_eq(bin_fullest(&bin, 1), &binned[0]);
}

int main(void) { return run_tests((struct suite){0}); }
