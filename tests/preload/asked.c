/* SPDX-License-Identifier: Apache-2.0 */
/* asked: a program that reap-ask.sh asks. It has some memory, forks as many children as its argument says,
 * prints the numbers of all these processes, and waits for the end of its input. With -DREAPS it has reaps,
 * and a question of its own.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef REAPS
#include "reap.h"
#include "reap_ask.h"

static void count(FILE *out, const char *args, void *arg) { fprintf(out, "%s %d\n", args, ++*(int *)arg); }

static void take_memory(void)
{
    static const char *const names[] = {"request", "connection", "\"odd\\ name\"", ""};
    static int counter;
    void *top, *child, *above;
    reapCreate(&top, NULL);
    reapSetName(&top, "server");
    for (int i = 0; i < 200; i++) {
        reapCreate(&child, &top);
        reapSetName(&child, names[i % 4]);
        for (int k = 0; k < i; k++) reapMalloc(&child, (size_t)k);
    }
    for (int i = 0; i < 70; i++) {
        above = child;
        reapCreate(&child, &above);
    }
    reapAnswer("count", count, &counter);
}
#else
static void *volatile kept;

static void take_memory(void)
{
    for (int i = 0; i < 2000; i++) {
        void *block = malloc((size_t)i * 10);
        if (i % 2) free(block);
        kept = block;
    }
}
#endif

static void wait_for_the_end(void)
{
    char byte;
    while (read(STDIN_FILENO, &byte, 1) > 0) continue;
}

int main(int argc, char **argv)
{
    int children = argc > 1 ? atoi(argv[1]) : 0;
    take_memory();
    printf("%d\n", (int)getpid());
    fflush(stdout);
    for (int i = 0; i < children; i++) {
        if (fork() != 0) continue;
        if (i % 2 == 0) take_memory(); /* and the others need none */
        printf("%d\n", (int)getpid());
        fflush(stdout);
        wait_for_the_end();
        return 0;
    }
    wait_for_the_end();
    while (wait(NULL) > 0) continue;
    return 0;
}
