/* SPDX-License-Identifier: Apache-2.0 */
/* Forks of a process whose threads allocate: each child allocates, frees what its parent made, starts
 * threads, forks again. A child that stands still is killed by its own alarm. */
#include "preload_early.h"
#include "support/expect.h"

#pragma weak hoard_malloc
#include "hoard.h"

#include <spawn.h>
#include <stdatomic.h>

enum { THREADS = 4, FORKS = 20, SLOTS = 512, BLOCKS = 3000, CHILD_SECONDS = 100 };

static _Atomic(char *) slots[SLOTS]; /* passed from thread to thread, so frees are often remote */
static atomic_int stop;

static void *exchange(void *seed_)
{
    unsigned seed = (unsigned)(size_t)seed_;
    while (!stop) {
        seed = seed * 1103515245 + 12345;
        size_t size = seed >> 16 & 2047;
        char *block = malloc(size + 1);
        block[size] = 1;
        free(atomic_exchange(&slots[seed >> 8 & (SLOTS - 1)], block));
        if ((seed >> 16 & 255) == 0) early_work_under_lock();
    }
    return NULL;
}

static void *allocate_and_free(void *unused)
{
    char **blocks = malloc(BLOCKS * sizeof *blocks);
    for (size_t i = 0; i < BLOCKS; i++) {
        blocks[i] = malloc(i * 5 % 3000 + 8);
        memcpy(blocks[i], &i, sizeof i);
    }
    for (size_t i = 0; i < BLOCKS; i++) {
        EXPECT(memcmp(blocks[i], &i, sizeof i) == 0);
        free(blocks[i]);
    }
    free(blocks);
    return unused;
}

static int status_of(pid_t pid)
{
    int status = -1;
    EXPECT(pid > 0 && waitpid(pid, &status, 0) == pid);
    return status;
}

static void grandchild(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        allocate_and_free(NULL);
        _exit(expect_status());
    }
    EXPECT(status_of(pid) == 0);
}

static void child(int generation)
{
    alarm(CHILD_SECONDS);
    for (int i = 0; i < SLOTS; i++) free(atomic_exchange(&slots[i], NULL));
    allocate_and_free(NULL);
    pthread_t ids[2];
    for (int i = 0; i < 2; i++) EXPECT(pthread_create(&ids[i], NULL, allocate_and_free, NULL) == 0);
    for (int i = 0; i < 2; i++) pthread_join(ids[i], NULL);
    EXPECT(early_in_child == 1);
    if (generation % 8 == 0) grandchild();
    exit(expect_status()); /* with its atexit functions and destructors */
}

CASE(test_fork)
{
    pthread_t ids[THREADS];
    for (size_t i = 0; i < THREADS; i++) pthread_create(&ids[i], NULL, exchange, (void *)(i + 1));
    for (int i = 0; i < FORKS; i++) {
        pid_t pid = fork();
        if (pid == 0) child(i);
        EXPECT(status_of(pid) == 0);
        allocate_and_free(NULL);
    }
    stop = 1;
    for (int i = 0; i < THREADS; i++) pthread_join(ids[i], NULL);
    EXPECT(early_prepared == FORKS && early_in_parent == FORKS);
}

/* A vfork child may only exec or _exit; but many allocate all the same. */
CASE(test_vfork)
{
    for (int i = 0; i < 50; i++) {
        char *kept = strdup("parent's");
        pid_t pid = vfork();
        if (pid == 0) {
            free(malloc(OPAQUE((size_t)100)));
            execl("/bin/true", "true", (char *)NULL);
            _exit(127);
        }
        EXPECT(status_of(pid) == 0);
        EXPECT(strcmp(kept, "parent's") == 0);
        free(kept);
    }
}

/* Under libreap-malloc a vfork child has memory of its own: its parent's heaps are not for who has no
 * restartable sequences. */
CASE(test_memory_of_vfork)
{
    volatile int written = 0;
    int is_reap = hoard_malloc != NULL; /* and no other library that is compared */
    pid_t pid = vfork();
    if (pid == 0) {
        written = 1;
        _exit(0);
    }
    EXPECT(status_of(pid) == 0);
    EXPECT(!is_reap || written == 0);
}

CASE(test_spawn)
{
    extern char **environ;
    char *arguments[] = {(char *)"true", NULL};
    pid_t pid = 0;
    EXPECT(posix_spawn(&pid, "/bin/true", NULL, NULL, arguments, environ) == 0);
    EXPECT(status_of(pid) == 0);
    EXPECT(system("exit 7") == 7 << 8);
    FILE *pipe = popen("echo text", "r");
    char text[10] = "";
    EXPECT(pipe && fgets(text, sizeof text, pipe) && strcmp(text, "text\n") == 0);
    if (pipe) EXPECT(pclose(pipe) == 0);
}

int main(void) { return run_cases(NULL); }
