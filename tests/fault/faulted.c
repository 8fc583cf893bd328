/* SPDX-License-Identifier: Apache-2.0 */
/* faulted.c: calls all of malloc's family, under fault_run: what is said no to is NULL with ENOMEM, what is
 * there keeps its contents, and a thread and a forked child do the same. */
#include "support/expect.h"

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BLOCKS = 400 };

struct tour {
    unsigned count;
    struct {
        unsigned char *at;
        size_t size;
    } blocks[BLOCKS];
};

static void keep(struct tour *tour, void *block, size_t size)
{
    if (!block) {
        EXPECT(errno == ENOMEM);
        return;
    }
    EXPECT(malloc_usable_size(block) >= size);
    memset(block, (int)tour->count, size < 20000 ? size : 20000);
    tour->blocks[tour->count].at = block;
    tour->blocks[tour->count++].size = size;
}

static int is_whole(const struct tour *tour, unsigned i, size_t size)
{
    const unsigned char *at = tour->blocks[i].at;
    for (size_t k = 0; k < size && k < 20000; k++)
        if (at[k] != (unsigned char)i) return 0;
    return 1;
}

static void resize(struct tour *tour, unsigned i, size_t size)
{
    size_t before = tour->blocks[i].size;
    errno = 0;
    void *block = i % 2 ? realloc(tour->blocks[i].at, size) : reallocarray(tour->blocks[i].at, 1, size);
    if (!block) {
        EXPECT(errno == ENOMEM);
        EXPECT(is_whole(tour, i, before));
        return;
    }
    tour->blocks[i].at = block;
    tour->blocks[i].size = size;
    EXPECT(is_whole(tour, i, size < before ? size : before));
    memset(block, (int)i, size < 20000 ? size : 20000);
}

static void *by_posix_memalign(size_t alignment, size_t size)
{
    void *block = NULL;
    int error = posix_memalign(&block, alignment, size);
    EXPECT(error == 0 || error == ENOMEM);
    errno = error;
    return block;
}

static void *zeroed(size_t size)
{
    unsigned char *block = calloc(1, size);
    for (size_t k = 0; block && k < size; k += k < 5000 ? 1 : 4096) EXPECT(block[k] == 0);
    return block;
}

static void ask_all(struct tour *tour, size_t size)
{
    errno = 0;
    keep(tour, malloc(size), size);
    keep(tour, zeroed(size), size);
    keep(tour, aligned_alloc(256, size), size);
    keep(tour, by_posix_memalign(8192, size), size);
    keep(tour, memalign(64, size), size);
    if (size > 100000) return;
    keep(tour, valloc(size), size);
    keep(tour, pvalloc(size), size);
    keep(tour, strdup("a few words"), 12);
}

static void check_and_free(struct tour *tour, unsigned step)
{
    for (unsigned i = 0; i < tour->count; i += step) {
        if (!tour->blocks[i].at) continue;
        EXPECT(strcmp((char *)tour->blocks[i].at, "a few words") != 0);
        EXPECT(is_whole(tour, i, tour->blocks[i].size));
        errno = 77;
        free(tour->blocks[i].at);
        EXPECT(errno == 77);
        tour->blocks[i].at = NULL;
    }
}

static void *go(void *tour_)
{
    static const size_t sizes[] = {20, 300, 5000, 33000, 90000, 1000000, 4300000, 9000000};
    struct tour *tour = tour_;
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) ask_all(tour, sizes[i]);
    for (unsigned i = 0; i < tour->count; i += 3) resize(tour, i, tour->blocks[i].size * 2);
    for (unsigned i = 0; i < tour->count; i += 5) resize(tour, i, tour->blocks[i].size / 3 + 1);
    check_and_free(tour, 2);
    malloc_trim(0);
    for (unsigned i = 0; i < 5; i++) ask_all(tour, sizes[i]);
    struct mallinfo2 info = mallinfo2();
    EXPECT(info.uordblks + info.hblkhd > 0 || tour->count == 0);
    check_and_free(tour, 1);
    return NULL;
}

static void go_in_child(void)
{
    static struct tour tour;
    pid_t pid = fork();
    EXPECT(pid >= 0);
    if (pid == 0) {
        alarm(100);
        go(&tour);
        _exit(expect_status());
    }
    int status = -1;
    EXPECT(waitpid(pid, &status, 0) == pid && status == 0);
}

int main(void)
{
    static struct tour mine, others;
    pthread_t thread;
    int error = pthread_create(&thread, NULL, go, &others);
    go(&mine);
    EXPECT(error == 0 || error == EAGAIN);
    if (error == 0) pthread_join(thread, NULL);
    go_in_child();
    return expect_status();
}
