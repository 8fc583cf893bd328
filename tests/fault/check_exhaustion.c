/* SPDX-License-Identifier: Apache-2.0 */
/* check_exhaustion.c: too little address space. Every call says NULL and ENOMEM, nothing is lost, and what is
 * freed serves again. RLIMIT_AS is set in children. (That each mapping may be the one that fails is
 * check_faults' matter.) */
#include "support/check_backend.h"
#include "support/resident.h"

#include "arena/arena.h"
#include "heap/heap.h"
#include "hoard.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

/* From here on `more` bytes of address space are to be had. */
static void limit_to(size_t more)
{
    size_t limit = held_by_process().addresses + more;
    struct rlimit as = {limit, RLIM_INFINITY};
    expect(setrlimit(RLIMIT_AS, &as) == 0, "setrlimit");
}

enum { ALL = 400000 };

static void *all[ALL];

static size_t allocate_all(size_t size)
{
    size_t n = 0;
    errno = 0;
    while (n < ALL && (all[n] = hoard_malloc(size)) != NULL) memset(all[n++], 1, size < 100 ? size : 100);
    expect(n == ALL || errno == ENOMEM, "errno is not ENOMEM");
    return n;
}

static void free_all(size_t n)
{
    for (size_t i = 0; i < n; i++) hoard_free(all[i]);
}

/* --- until there is nothing left -------------------------------------------------------------- */

static void fill_and_empty(void *arg)
{
    static const size_t sizes[] = {100, 1000, 8000, 30000, 100000, 3000000, 5000000};
    size_t more = (uintptr_t)arg;
    free(malloc(1000)); /* libc has its arena */
    limit_to(more);
    for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        size_t n = allocate_all(sizes[i]);
        expect(n * sizes[i] >= more / 2 - 8 * MIB, "much less than there was to have");
        free_all(n);
        size_t again = allocate_all(sizes[i]);
        expect(again + again / 8 + 70 >= n, "what was freed is lost");
        free_all(again); /* and must serve the next size */
    }
    expect(live_bytes() == 0, "something lives");
    expect(heap_is_valid(), "accounts");
}

START_TEST(full_and_empty_again)
{
    use_path(_i, NULL);
    struct outcome said = run_child(fill_and_empty, (void *)(48 * MIB));
    ck_assert_msg(said.status == 0, "%s", said.text);
}
END_TEST

/* --- by threads -------------------------------------------------------------------------------- */

static void *until_full(void *arg)
{
    (void)arg;
    void *last = NULL;
    for (void *p; (p = hoard_malloc(3000)) != NULL; last = p) *(void **)p = last;
    bool right = errno == ENOMEM;
    while (last != NULL) {
        void *before = *(void **)last;
        hoard_free(last);
        last = before;
    }
    return right ? NULL : (void *)1;
}

static void threads_until_full(void *arg)
{
    (void)arg;
    pthread_t threads[3];
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 64 * KIB);
    limit_to(300 * MIB); /* libc takes 128 MiB for the arena of a thread, if it can */
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i < 3; i++)
            expect(pthread_create(&threads[i], &small, until_full, NULL) == 0, "no thread");
        for (unsigned i = 0; i < 3; i++) {
            void *wrong;
            pthread_join(threads[i], &wrong);
            expect(wrong == NULL, "errno of a thread is not ENOMEM");
        }
    }
    expect(live_bytes() == 0, "something lives");
    expect(heap_is_valid(), "accounts");
    hoard_trim(0);
    expect(held_bytes() == 0, "something is held");
}

START_TEST(threads_come_to_the_end_together)
{
    use_path(_i, NULL);
    struct outcome said = run_child(threads_until_full, NULL);
    ck_assert_msg(said.status == 0, "status %x: %s", (unsigned)said.status, said.text);
}
END_TEST

int main(void)
{
    TCase *tests = new_case("exhaustion", 60);
    tcase_add_loop_test(tests, full_and_empty_again, 0, PATHS);
    tcase_add_loop_test(tests, threads_come_to_the_end_together, 0, PATHS);
    return run_cases("exhaustion", tests, (TCase *)NULL);
}
