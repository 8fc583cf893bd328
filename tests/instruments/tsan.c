/* SPDX-License-Identifier: Apache-2.0 */
/* Run by tsan.sh: threads that free and resize each other's blocks, of all sizes, trim and fork meanwhile.
 * Blocks change hands by an atomic exchange, so that no race is the program's own. */
#include "hoard.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 4, STEPS = 25000, MINE = 128, SHARED = 64 };

static _Atomic(char *) shared[SHARED];

static char *new_block(unsigned random, unsigned step)
{
    size_t size = 16 + (random & (step % 100 ? 2047 : 300000)) + (step % 5000 == 1 ? 5 << 20 : 0);
    char *block = step % 7 ? hoard_malloc(size) : hoard_aligned_alloc(256, size);
    block[0] = 1;
    block[size - 1] = 2;
    return step % 50 ? block : hoard_realloc(block, size * 3);
}

static void fork_once(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        hoard_free(hoard_malloc(1000));
        _exit(0);
    }
    waitpid(pid, NULL, 0);
}

void tsan_shared(void); /* tsan_shared.c */

static void *play(void *number)
{
    unsigned seed = (unsigned)(size_t)number * 7919 + 1;
    char *mine[MINE] = {NULL};
    for (unsigned step = 1; step <= STEPS; step++) {
        seed = seed * 1103515245 + 12345;
        char **slot = &mine[seed >> 8 & (MINE - 1)];
        hoard_free(*slot);
        *slot = step % 3 ? new_block(seed >> 12, step) : NULL;
        if (step % 10 == 0) *slot = atomic_exchange(&shared[seed >> 20 & (SHARED - 1)], *slot);
        if (step % 8000 == 0) hoard_trim(0);
        if (step == STEPS / 2 && number == NULL) fork_once();
    }
    for (unsigned i = 0; i < MINE; i++) hoard_free(mine[i]);
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, play, (void *)i);
    for (size_t i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    for (unsigned i = 0; i < SHARED; i++) hoard_free(atomic_exchange(&shared[i], NULL));
    tsan_shared();
    puts("came to its end");
    return 0;
}
