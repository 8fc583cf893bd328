/* SPDX-License-Identifier: Apache-2.0 */
/* A program that is strict about its descriptors, in an empty directory: descriptors WORK. Its status is 0 if
 * all is as it would be alone, else the last eight bits of the line here that found something. It prints
 * nothing.
 *
 *     closed     started without 0, 1 and 2: its first files get these numbers
 *     taken      closes all above 2, and has its own file under each number; so does a forked child
 *     misuse     as `closed`, and then frees an object twice
 *     data       closes 2, and its file of data gets that number
 *     log HOW    its standard error becomes a file `log`: by freopen, or (append) by dup2
 *
 * Each file of its own has the text "mine" at the end, and nothing else.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define REAP_OPTIONAL
#include "reap.h"

enum { THREADS = 2, OWN_MOST = 600 };

#define MUST(condition)                                                                                      \
    do                                                                                                       \
        if (!(condition)) _exit(__LINE__ & 0xff ? __LINE__ & 0xff : 1);                                      \
    while (0)

static void *allocate(void *unused)
{
    for (int i = 0; i < 20000; i++) {
        void *volatile small = malloc((size_t)(i % 3000) + 1);
        free(small);
    }
    for (int i = 0; i < 200; i++) {
        void *volatile large = malloc((size_t)i * 7 + 100000);
        free(large);
    }
    return unused;
}

static void use_reaps(void)
{
    void *reap;
    if (!reapCreate) return;
    reapCreate(&reap, NULL);
    for (int i = 0; i < 300; i++) MUST(reapMalloc(&reap, (size_t)i * 10 + 1));
    reapDestroy(&reap);
}

static void work(void)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) MUST(pthread_create(&threads[i], NULL, allocate, NULL) == 0);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    allocate(NULL);
    use_reaps();
}

/* Threads of the libraries look once a second. */
static void wait_for_others(void)
{
    if (!getenv("DESCRIPTORS_WAIT")) return;
    const struct timespec time = {.tv_sec = 1, .tv_nsec = 300000000};
    nanosleep(&time, NULL);
}

static void open_mine(const char *name, int number)
{
    MUST(open(name, O_CREAT | O_EXCL | O_RDWR, 0600) == number);
    MUST(write(number, "mine\n", 5) == 5);
}

static void closed(void)
{
    open_mine("own-0", 0);
    open_mine("own-1", 1);
    open_mine("own-2", 2);
    work();
    wait_for_others();
    work();
    /* The numbers are free again, and nobody has taken them meanwhile. */
    for (int i = 0; i < 3; i++) close(i);
    work();
    wait_for_others();
    MUST(open("own-0", O_RDWR) == 0 && open("own-1", O_RDWR) == 1 && open("own-2", O_RDWR) == 2);
}

static void check_mine(const struct stat *mine, int most)
{
    struct stat is;
    for (int fd = 3; fd < most; fd++)
        MUST(fstat(fd, &is) == 0 && is.st_dev == mine->st_dev && is.st_ino == mine->st_ino);
    MUST(is.st_size == 5);
}

static void taken(void)
{
    struct rlimit limit;
    struct stat mine;
    getrlimit(RLIMIT_NOFILE, &limit);
    int most = limit.rlim_cur < OWN_MOST ? (int)limit.rlim_cur : OWN_MOST, status;
    work();
    closefrom(3);
    open_mine("own", 3);
    MUST(fstat(3, &mine) == 0);
    for (int fd = 4; fd < most; fd++) MUST(dup2(3, fd) == fd);
    work();
    check_mine(&mine, most);
    pid_t child = fork();
    if (child == 0) {
        work();
        check_mine(&mine, most);
        _exit(0);
    }
    MUST(waitpid(child, &status, 0) == child && status == 0);
    wait_for_others();
    work();
    check_mine(&mine, most);
}

static void misuse(void)
{
    void *volatile object = malloc(100);
    closed();
    free(object);
    free(object);
}

static void data(void)
{
    close(2);
    open_mine("own", 2);
    work();
}

static void to_log(const char *how)
{
    if (strcmp(how, "append") != 0) {
        MUST(freopen("log", "w", stderr));
    } else {
        int fd = open("log", O_CREAT | O_WRONLY | O_APPEND, 0600);
        MUST(fd > 2 && dup2(fd, 2) == 2);
        close(fd);
    }
    work();
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    if (strcmp(what, "closed") == 0)
        closed();
    else if (strcmp(what, "taken") == 0)
        taken();
    else if (strcmp(what, "misuse") == 0)
        misuse();
    else if (strcmp(what, "data") == 0)
        data();
    else if (strcmp(what, "log") == 0)
        to_log(argc > 2 ? argv[2] : "");
    else
        return 1;
    return 0;
}
