/* SPDX-License-Identifier: Apache-2.0 */
/* check_reap_charge.c: the reaps that threads work for. */

#include "support/reap_fixture.h"

#include <sys/resource.h>
#include <sys/wait.h>

#include "hoard.h"

static void charge(void **handle) { ck_assert_int_eq(reapCharge(handle), 0); }

TEST(charges_nest)
{
    void *inner, *none = NULL;
    reapCreate(&inner, &reap);
    reapSetName(&inner, "inner");
    ck_assert_ptr_null(reapCharged());
    charge(&reap);
    ck_assert_str_eq(reapCharged(), "(no name)");
    charge(&inner);
    charge(&inner);
    ck_assert_str_eq(reapCharged(), "inner");
    charge(NULL);
    ck_assert_ptr_null(reapCharged());
    charge(&none);
    ck_assert_ptr_null(reapCharged());
    reapUncharge();
    reapUncharge();
    ck_assert_str_eq(reapCharged(), "inner");
    reapUncharge();
    reapUncharge();
    ck_assert_str_eq(reapCharged(), "(no name)");
    reapUncharge();
    ck_assert_ptr_null(reapCharged());
    ck_assert_uint_eq(stats().live_objects, 0); /* nothing of it lies in a reap */
}

TEST(labels_follow_names)
{
    ck_assert_int_eq(reapChargeAs(&reap, "/url"), 0);
    ck_assert_str_eq(reapCharged(), "/url");
    reapSetName(&reap, "request");
    ck_assert_int_eq(reapChargeAs(&reap, "/url"), 0);
    ck_assert_str_eq(reapCharged(), "request /url");
    ck_assert_int_eq(reapChargeAs(&reap, ""), 0);
    ck_assert_str_eq(reapCharged(), "request");
    ck_assert_int_eq(reapChargeAs(NULL, "/url"), 0);
    ck_assert_ptr_null(reapCharged());
    for (int i = 0; i < 4; i++) reapUncharge();
}

/* Also while the thread has entered it, in a reap of any length of name. */
TEST(a_name_outlives_its_reap)
{
    static char name[4096];
    void *short_lived;
    memset(name, 'n', sizeof name - 1);
    reapCreate(&short_lived, NULL);
    ck_assert_int_eq(reapSetName(&short_lived, name), 0);
    reapEnterQuietly(&reap);
    reapEnterQuietly(NULL);
    charge(&short_lived);
    charge(&reap);
    reapLeave();
    reapLeave();
    reapUncharge();
    reapSetName(&short_lived, "another");
    reapDestroy(&short_lived);
    ck_assert_str_eq(reapCharged(), name);
    reapUncharge();
}

static void *charge_and_end(void *handle)
{
    const char *had = reapCharged();
    for (int i = 0; i < 100; i++)
        if (reapCharge(handle) != 0) return (void *)1;
    return had || !reapCharged() ? (void *)1 : NULL;
}

/* A thread's charges are its own, and go with it: nothing of 100 threads' is left. */
TEST(charges_end_with_their_thread)
{
    struct hoard_stats before, after;
    reapSetName(&reap, "a name that takes some memory, so that it shows where a copy of it is left");
    charge(&reap);
    for (int i = 0; i < 100; i++) {
        pthread_t thread;
        void *wrong;
        if (i == 1) hoard_stats(&before);
        ck_assert_int_eq(pthread_create(&thread, NULL, charge_and_end, &reap), 0);
        ck_assert_int_eq(pthread_join(thread, &wrong), 0);
        ck_assert_ptr_null(wrong);
    }
    hoard_stats(&after);
    ck_assert_uint_lt(after.live_bytes, before.live_bytes + 100 * 100);
    ck_assert_ptr_nonnull(reapCharged());
    reapUncharge();
}

TEST(a_child_works_for_the_same)
{
    reapSetName(&reap, "parent's");
    charge(&reap);
    pid_t child = fork();
    if (child == 0) {
        bool same = reapCharged() && strcmp(reapCharged(), "parent's") == 0;
        reapUncharge();
        _exit(!same || reapCharged());
    }
    int status = -1;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    ck_assert_str_eq(reapCharged(), "parent's");
    reapUncharge();
}

/* Without memory a charge fails, and the one before holds. */
TEST(no_memory_is_an_answer)
{
    needs(!is_slowed(), "memory for a tool that watches");
    pid_t child = fork();
    if (child == 0) {
        struct rlimit none = {0, 0};
        unsigned n = 0;
        setrlimit(RLIMIT_AS, &none);
        reapSetName(&reap, "one");
        while (reapCharge(&reap) == 0 && n < 1000000) n++;
        bool well =
            n > 0 && n < 1000000 && errno == ENOMEM && reapCharged() && strcmp(reapCharged(), "one") == 0;
        while (n-- > 0) reapUncharge();
        _exit(!well || reapCharged());
    }
    int status = -1;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
}

int main(void) { return run_tests((struct suite){.begin = setup, .end = teardown, .modes = ALL_MODES}); }
