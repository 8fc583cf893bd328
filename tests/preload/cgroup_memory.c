/* SPDX-License-Identifier: Apache-2.0 */
/* Run by preload-cgroup.sh in a control group that may have the memory that the first argument says, in MiB;
 * the second is what to do there. (`fill` is what preload-faults.sh runs, too.)
 *
 *     refuse   allocates and touches all that it gets: NULL and ENOMEM, no death; what is freed can be had
 *              again
 *     reuse    uses half of the memory in one way, frees it, and then half in another: what is unused must
 *              have gone back by then, though purge_ms would keep it
 *     fill     four threads touch all that they get, four times the memory at most, and free it, twice:
 *              the kernel may kill this process, and nothing else may end it
 */
#include "support/expect.h"

static size_t room;

/* Until there is no more; the number of blocks, linked by their first words. */
static size_t use_all(size_t size, void **last, size_t most)
{
    size_t n = 0;
    *last = NULL;
    errno = 0;
    for (void *block; n < most && (block = malloc(OPAQUE(size))) != NULL; n++) {
        memset(block, 1, size);
        *(void **)block = *last;
        *last = block;
    }
    return n;
}

static void free_all(void *last)
{
    while (last) {
        void *before = *(void **)last;
        free(last);
        last = before;
    }
}

static void refuse(void)
{
    static const size_t sizes[] = {1000, 100000, 5 << 20, 64, 20000};
    void *last;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        size_t n = use_all(sizes[i], &last, (size_t)-1);
        EXPECT(errno == ENOMEM);
        EXPECT(n * sizes[i] > room / 2);
        free_all(last);
    }
}

static void reuse(void)
{
    static const size_t sizes[] = {3 << 20, 36 << 20, 500, 200000}; /* 36 MiB: a mapping of its own */
    void *last;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        size_t n = room * 5 / 8 / sizes[i];
        EXPECT(use_all(sizes[i], &last, n) == n);
        free_all(last);
    }
}

enum { FILLERS = 4, KINDS = 5 };

static void *fill(void *number)
{
    static const size_t sizes[KINDS] = {100, 3000, 40000, 700000, 6 << 20};
    for (unsigned round = 0; round < 2; round++) {
        void *last[KINDS] = {NULL};
        for (size_t i = 0; i < KINDS; i++) {
            size_t size = sizes[(i + (uintptr_t)number) % KINDS],
                   most = room * 4 / FILLERS / KINDS / size + 1;
            size_t n = use_all(size, &last[i], most);
            EXPECT(n == most || errno == ENOMEM);
        }
        for (size_t i = 0; i < KINDS; i++) free_all(last[i]);
    }
    return NULL;
}

static void fill_all(void)
{
    pthread_t threads[FILLERS];
    unsigned n = 1; /* this one; the others as far as there is memory for them */
    for (int error = 0; n < FILLERS && error == 0; n += error == 0) {
        error = pthread_create(&threads[n], NULL, fill, (void *)(uintptr_t)n);
        EXPECT(error == 0 || error == EAGAIN);
    }
    fill((void *)0);
    while (n-- > 1) pthread_join(threads[n], NULL);
}

int main(int argc, char **argv)
{
    if (argc < 3) return 99;
    room = (size_t)atoi(argv[1]) << 20;
    if (strcmp(argv[2], "refuse") == 0) refuse();
    if (strcmp(argv[2], "reuse") == 0) reuse();
    if (strcmp(argv[2], "fill") == 0) fill_all();
    puts("came to its end");
    return expect_status();
}
