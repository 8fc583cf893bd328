/* check_reap.h: what the Check programs for reaps share. */
#ifndef CHECK_REAP_H
#define CHECK_REAP_H

#include <check.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include "reap.h"
#include "reap_valid.h"

#define assert_valid(handle)                                                                                 \
    do {                                                                                                     \
        const char *why_;                                                                                    \
        ck_assert_msg(reap_is_valid(handle, &why_), "does not hold: %s", why_);                              \
    } while (0)

/* Another one in each run; never 0. */
static inline uint64_t fresh_seed(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return ((uint64_t)now.tv_sec * 1000000007 + (uint64_t)now.tv_nsec) | 1;
}

/* Runs the tests of a program that has one case; the exit status. */
static inline int run(const char *name, TCase *tests)
{
    Suite *suite = suite_create(name);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

#endif
