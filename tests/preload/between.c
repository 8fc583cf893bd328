/* SPDX-License-Identifier: Apache-2.0 */
/* Takes the slow paths of malloc, and of reaps where they are: under preload-between.sh, beside a library
 * whose functions come before libc's (between_lib.c). */
#include "reap.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#pragma weak reapCreate
#pragma weak reapEnter
#pragma weak reapLeave
#pragma weak reapDestroy
extern atomic_ulong between_calls __attribute__((weak));

enum { THREADS = 4, BLOCKS = 3000, LARGE = 24, MIB = 1 << 20 };
static char *shared[THREADS][BLOCKS];

static char *block_of(size_t size)
{
    char *block = malloc(size);
    if (block == NULL) abort();
    memset(block, (int)(size % 251), size < 64 ? size : 64);
    return block;
}

static void fill(char **blocks)
{
    for (size_t i = 0; i < BLOCKS; i++) blocks[i] = block_of(i % 37 * (i % 11) * 9 + 1);
}

static void empty(char **blocks)
{
    for (size_t i = 0; i < BLOCKS; i++) free(blocks[i]);
}

static void use_large(void)
{
    char *large[LARGE];
    for (size_t i = 0; i < LARGE; i++) large[i] = block_of((i + 1) * 200000);
    for (size_t i = 0; i < LARGE; i++) large[i] = realloc(large[i], (i + 1) * 400000);
    for (size_t i = 0; i < LARGE; i++) free(large[i]);
    char *huge = realloc(block_of(40 * MIB), 200 * (size_t)MIB);
    huge = realloc(huge, 34 * MIB);
    free(huge);
}

static void *use(void *arg)
{
    fill(shared[(size_t)arg]);
    use_large();
    return NULL;
}

static void use_reaps(void)
{
    if (reapCreate == NULL) return;
    for (int round = 0; round < 20; round++) {
        void *reap;
        reapCreate(&reap, NULL);
        reapEnter(&reap);
        for (size_t i = 0; i < 300; i++) block_of(i * 50 + 1);
        block_of(5 * MIB);
        for (size_t i = 0; i < 300; i++) free(block_of(i * 500 + 1));
        reapLeave();
        reapDestroy(&reap);
    }
}

int main(void)
{
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, use, (void *)i);
    for (size_t i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    for (size_t i = 0; i < THREADS; i++) empty(shared[i]);
    use_reaps();
    pid_t child = fork();
    if (child == 0) {
        use((void *)0);
        use_reaps();
        exit(0);
    }
    int status;
    if (waitpid(child, &status, 0) != child || status != 0) {
        printf("the child ends with %d\n", status);
        return 1;
    }
    if (&between_calls != NULL) printf("%s\n", between_calls > 100 ? "many calls" : "few calls");
    return 0;
}
