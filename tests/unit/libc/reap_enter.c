/* SPDX-License-Identifier: Apache-2.0 */
/* reap_enter.c: what reapEnter does to malloc, as a program sees it: prints whose it is and what errno says.
 * Built with each order of the libraries; run by reap_enter.sh. */

#include "reap.h"
#include "support/expect.h"

static void *reap;

static bool is_in_reap(const void *pointer)
{
    void *owner;
    return reapOf(pointer, &owner) == 0 && owner == reap;
}

static void *other_thread(void *arg)
{
    EXPECT(reapEntered() == NULL);
    return arg;
}

/* Tells errno, which 0 stands for when the call has not touched it. */
static void enter(void (*call)(void **), const char *name)
{
    errno = 0;
    call(&reap);
    int said = errno;
    EXPECT(reapEntered() == reap);
    void *block = OPAQUE(malloc(100));
    printf("%s: %s, malloc is %s\n", name,
           said == ENOTSUP ? "ENOTSUP"
           : said          ? "another"
                           : "0",
           is_in_reap(block) ? "the reap's" : "not the reap's");
    free(block);
    reapLeave();
    EXPECT(reapEntered() == NULL);
}

static void nested(unsigned flags)
{
    struct reap_options options = {.size = sizeof options, .flags = flags};
    void *inner;
    pthread_t thread;
    EXPECT(reapCreateWith(&inner, &reap, &options) == 0);
    reapEnterQuietly(&reap);
    reapEnterQuietly(&inner);
    EXPECT(reapEntered() == inner && reapMalloc(reapEntered(), 10) != NULL);
    EXPECT(pthread_create(&thread, NULL, other_thread, NULL) == 0 && pthread_join(thread, NULL) == 0);
    reapEnterQuietly(&inner);
    reapLeave();
    EXPECT(reapEntered() == inner);
    reapLeave();
    EXPECT(reapEntered() == reap);
    reapLeave();
    EXPECT(reapEntered() == NULL);
    reapDestroy(&inner);
}

/* The heap is no reap, and whose malloc is, does not matter: no line, and errno stays. */
static void the_heap(void)
{
    void *none = NULL;
    reapEnterQuietly(&reap);
    errno = 0;
    reapEnter(NULL);
    reapEnter(&none);
    EXPECT(errno == 0 && reapEntered() == NULL);
    reapLeave();
    EXPECT(reapEntered() == NULL);
    reapLeave();
    EXPECT(reapEntered() == reap);
    reapLeave();
}

/* A source's functions are in no reap. */
static void *take(size_t size, void *arg)
{
    EXPECT(reapEntered() == NULL);
    (void)arg;
    return aligned_alloc(4096, size);
}

static void give(void *chunk, size_t size, void *arg)
{
    (void)size, (void)arg;
    free(chunk);
}

static void source(void)
{
    struct reap_options options = {.size = sizeof options, .source = {take, give, NULL}};
    void *sourced;
    EXPECT(reapCreateWith(&sourced, NULL, &options) == 0);
    reapEnterQuietly(&sourced);
    EXPECT(reapMalloc(&sourced, 100000) != NULL);
    EXPECT(reapEntered() == sourced);
    reapLeave();
    reapDestroy(&sourced);
}

int main(int argc, char **argv)
{
    (void)argv;
    reapCreate(&reap, NULL);
    EXPECT(reapEntered() == NULL);
    nested(0);
    nested(REAP_SHARED);
    the_heap();
    source();
    enter(reapEnterQuietly, "reapEnterQuietly");
    enter(reapEnter, "reapEnter");
    enter(reapEnter, "again");
    fflush(stdout);
    if (argc > 1) free(reapMalloc(&reap, 100));
    reapDestroy(&reap);
    return expect_status();
}
