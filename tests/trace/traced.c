/* SPDX-License-Identifier: Apache-2.0 */
/* A program whose allocations are known: traced MODE.
 *
 *     plain      100 objects of 1000 bytes, of which 50 are freed; one grows to 5000 and one moves
 *     threads    four threads, each 1000 objects of 100 bytes, freed by the next one
 *     fork       the parent has 10 objects of 111 bytes, the child 20 of 222
 *     linked     the same, while a thread holds ld.so's lock
 *     exec       10 objects of 111 bytes, then `plain` in the same process
 *     quick      10 objects of 111 bytes, then _exit
 *     killed     the same, then SIGKILL; crash: a stray pointer
 *     waste      1000 objects of 1000 bytes: 500 from one place are read once, the others until they end
 *     long       objects of 100 bytes, a million; cut: the same, and a status of 3 if one call fails
 *     reaps      a reap with 100 objects of 32 bytes, a child with 10 of 64, one of which is freed
 */
#include <link.h>
#include <pthread.h>
#include <reap.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 4, EACH = 1000 };

static char *objects[1000];
static char *passed[THREADS][EACH];
static pthread_barrier_t meeting;

static void some(int n, size_t size)
{
    for (int i = 0; i < n; i++) {
        objects[i] = malloc(size);
        if (!objects[i]) exit(3);
        memset(objects[i], 1, size);
    }
}

static void plain(void)
{
    some(100, 1000);
    objects[0] = realloc(objects[0], 5000);
    if (!objects[0]) exit(3);
    for (int i = 50; i < 100; i++) free(objects[i]);
}

static void *thread(void *number_)
{
    int number = *(const int *)number_;
    for (int i = 0; i < EACH; i++) passed[number][i] = malloc(100);
    pthread_barrier_wait(&meeting);
    for (int i = 0; i < EACH; i++) free(passed[(number + 1) % THREADS][i]);
    return NULL;
}

static void threads(void)
{
    pthread_t ids[THREADS];
    static int numbers[THREADS];
    pthread_barrier_init(&meeting, NULL, THREADS);
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i;
        if (pthread_create(&ids[i], NULL, thread, &numbers[i]) != 0) exit(3);
    }
    for (int i = 0; i < THREADS; i++) pthread_join(ids[i], NULL);
}

static __attribute__((noinline)) void early(void) { some(500, 1000); }

static __attribute__((noinline)) void late(void)
{
    for (int i = 500; i < 1000; i++) {
        objects[i] = malloc(1000);
        memset(objects[i], 1, 1000);
    }
}

/* Each late object is read after all have begun. */
static void waste(void)
{
    volatile int sum = 0;
    early();
    late();
    for (int i = 500; i < 1000; i++)
        for (int j = 0; j < 1000; j += 8) sum = sum + objects[i][j];
    for (int i = 0; i < 1000; i++) free(objects[i]);
}

static void reaps(void)
{
    void *reap, *child;
    reapCreate(&reap, NULL);
    reapCreate(&child, &reap);
    for (int i = 0; i < 100; i++) memset(reapMalloc(&reap, 32), 1, 32);
    for (int i = 0; i < 9; i++) memset(reapMalloc(&child, 64), 1, 64);
    reapFree(&child, reapMalloc(&child, 64));
    reapDestroy(&reap);
}

static void *make_children(void *reap)
{
    for (int i = 0; i < 10; i++) {
        void *child;
        reapCreate(&child, reap);
        memset(reapMalloc(&child, 64), 1, 64);
    }
    return NULL;
}

static void nested(void)
{
    void *reap;
    pthread_t id;
    reapCreate(&reap, NULL); /* whose number the next one gets */
    reapDestroy(&reap);
    some(1000, 10000);
    reapCreate(&reap, NULL);
    if (pthread_create(&id, NULL, make_children, &reap) != 0) exit(3);
    pthread_join(id, NULL);
    reapDestroy(&reap);
}

/* The program's own files have the numbers that others had. */
static void closes(void)
{
    struct stat is;
    closefrom(3);
    int mine = memfd_create("mine", 0);
    for (int fd = 4; fd < 500; fd++) dup2(mine, fd);
    for (int i = 0; i < 20000; i++) free(memset(malloc(222), 1, 222));
    threads();
    if (fstat(mine, &is) != 0 || is.st_size != 0) exit(3);
}

static int wait_there(struct dl_phdr_info *info, size_t size, void *unused)
{
    (void)info, (void)size, (void)unused;
    pthread_barrier_wait(&meeting);
    return pause();
}

static void *hold_lock(void *unused)
{
    dl_iterate_phdr(wait_there, unused);
    return NULL;
}

/* The child has no thread that would give the lock back. */
static void linked(void)
{
    pthread_t id;
    pthread_barrier_init(&meeting, NULL, 2);
    if (pthread_create(&id, NULL, hold_lock, NULL) != 0) exit(3);
    pthread_barrier_wait(&meeting);
}

int main(int argc, char **argv)
{
    const char *mode = argc == 2 ? argv[1] : "";
    if (strcmp(mode, "plain") == 0) plain();
    if (strcmp(mode, "threads") == 0) threads();
    if (strcmp(mode, "waste") == 0) waste();
    if (strcmp(mode, "reaps") == 0) reaps();
    if (strcmp(mode, "nested") == 0) nested();
    if (strcmp(mode, "long") == 0)
        for (int i = 0; i < 1000000; i++) free(memset(malloc(100), 1, 100));
    if (strchr("feqkcl", mode[0]) && strcmp(mode, "long") != 0) some(10, 111);
    if (strcmp(mode, "exec") == 0) return execl("/proc/self/exe", argv[0], "plain", (char *)NULL);
    if (strcmp(mode, "quick") == 0) _exit(0);
    if (strcmp(mode, "closes") == 0) closes();
    if (strcmp(mode, "killed") == 0) raise(SIGKILL);
    if (strcmp(mode, "crash") == 0) raise(SIGSEGV);
    if (strcmp(mode, "linked") == 0) linked();
    if (strcmp(mode, "fork") != 0 && strcmp(mode, "linked") != 0) return 0;
    pid_t child = fork();
    alarm(20);
    if (child == 0) some(20, 222);
    if (child == 0 && mode[0] == 'l') _exit(0); /* what ends a program may want the lock, too */
    return child > 0 && waitpid(child, NULL, 0) != child;
}
