/* SPDX-License-Identifier: Apache-2.0 */
/* reap_watched.c: what Memcheck and AddressSanitizer are to see in reaps; run by reap_watched.sh and
 * reap_asan.sh, one mistake at a time. */
#include <time.h>

#include "reap.h"
#include "support/expect.h"

static void *reap;
static volatile char sink;

static int fill(void *object, size_t size, void *arg)
{
    (void)arg;
    memset(object, 1, size);
    return 0;
}

/* Who asks for the usable size may use it; who walks is told it. */
static void all_that_is_usable(void)
{
    char *object = reapMalloc(&reap, 5);
    memset(object, 1, reapUsableSize(object));
    reapFree(&reap, object);
    object = reapMalloc(&reap, 50000);
    memset(object, 1, reapUsableSize(object));
    reapMalloc(&reap, 0);
    reapWalk(&reap, fill, NULL);
    void *child;
    reapCreate(&child, &reap);
    memset(reapMove(object, &reap, &child), 1, 50000);
    reap_mark mark;
    reapMark(&child, &mark);
    memset(reapMalloc(&child, 1001), 1, 1001);
    reapRewind(&child, &mark);
    memset(reapMalloc(&child, 1001), 1, 1001);
    reapUnmark(&child, &mark);
    reapDestroy(&child);
}

/* For a fifth of a second. */
static void *ask_often(void *object)
{
    for (clock_t end = clock() + CLOCKS_PER_SEC / 5; clock() < end;)
        for (int i = 0; i < 100; i++)
            if (reapUsableSize(object) < 5) abort();
    return NULL;
}

/* Any thread may ask for the usable size; each answer tells the tool that it may be used. */
static void asked_by_two_threads(void)
{
    pthread_t thread;
    char *object = reapMalloc(&reap, 5);
    if (pthread_create(&thread, NULL, ask_often, object)) abort();
    ask_often(object);
    pthread_join(thread, NULL);
    reapFree(&reap, object);
}

/* What it gives back is chunks of other reaps then. */
static void a_large_one_that_becomes_small(void)
{
    enum { LARGE = 900000 };
    char *object = memset(reapMalloc(&reap, LARGE), 1, LARGE);
    object = reapRealloc(&reap, object, 32700); /* cut to 64 KiB first, then moved */
    object[32699] = 1;
    for (int i = 0; i < 10; i++) {
        void *child;
        reapCreate(&child, &reap);
        for (int k = 0; k < 100; k++) memset(reapMalloc(&child, 2000), 1, 2000);
    }
}

/* The words of a new object are undefined, and no call may ask them whether it is pending. */
static void a_shared_one(void)
{
    struct reap_options options = {.size = sizeof options, .flags = REAP_SHARED};
    void *shared, *owner;
    if (reapCreateWith(&shared, NULL, &options) != 0) abort();
    char *object = reapMalloc(&shared, 100);
    if (reapOf(object + 50, &owner) != 0 || owner != shared || reapUsableSize(object) != 112) abort();
    reapFree(&shared, object);
    reapDestroy(&shared);
}

/* Thousands of reaps of each kind, as a server has them, come and go where others were. */
enum { ROOT, CHILD, SHARED, SHARED_CHILD, IN_BUFFER, SOURCED, LIMITED, MARKED, KINDS };
enum { EACH = 3000 };

static void *take(size_t size, void *arg) { return (void)arg, aligned_alloc(4096, size); }
static void give(void *chunk, size_t size, void *arg) { (void)size, (void)arg, free(chunk); }

static void *reap_of_kind(int kind)
{
    static char buffer[8192];
    void *made;
    struct reap_options options = {.size = sizeof options};
    if (kind == ROOT || kind == CHILD || kind == MARKED) {
        reapCreate(&made, kind == ROOT ? NULL : &reap);
        return made;
    }
    if (kind == SHARED || kind == SHARED_CHILD) options.flags = REAP_SHARED;
    if (kind == IN_BUFFER) options.buffer = buffer, options.buffer_size = sizeof buffer;
    if (kind == SOURCED) options.source.take = take, options.source.give = give;
    if (kind == LIMITED) options.limit = 100000;
    return reapCreateWith(&made, kind == SHARED || kind == LIMITED ? NULL : &reap, &options) ? NULL : made;
}

/* Reap number i of its kind: some stay empty, some have objects, chunks, frees, children, a name, clears. */
static void use(void *one, int kind, int i)
{
    size_t size = i % 4 * 50u;
    reap_mark mark;
    if (kind == MARKED) reapMark(&one, &mark);
    char *object = size ? memset(reapMalloc(&one, size), 1, size) : NULL, *other = NULL;
    if (i % 7 == 0) other = memset(reapMalloc(&one, 3000), 1, 3000);
    if (i % 3 == 0) reapFree(&one, object);
    if (i % 5 == 0) reapFreeAll(&one), object = reapStrdup(&one, "again"), other = NULL;
    if (i % 11 == 0) reapSetName(&one, "one of many");
    if (i % 13 == 0) reapFree(&one, reapMalloc(&one, kind == IN_BUFFER ? 100 : 50000));
    if (i % 17 == 0) reapCreate(&(void *){NULL}, &one);
    if (kind == MARKED && i % 5 != 0) reapRewind(&one, &mark), object = other = NULL;
    if (other) sink = other[2999];
    if (object && i % 5 == 0) sink = object[5];
}

static void many_of_each_kind(void)
{
    for (int kind = 0; kind < KINDS; kind++) {
        for (int i = 0; i < EACH; i++) {
            void *one = reap_of_kind(kind);
            if (!one) abort();
            use(one, kind, i);
            reapDestroy(&one);
        }
    }
}

CASE(nothing_wrong)
{
    many_of_each_kind();
    a_shared_one();
    a_large_one_that_becomes_small();
    asked_by_two_threads();
    for (int round = 0; round < 3; round++) {
        char *objects[300];
        for (int i = 0; i < 300; i++) memset(objects[i] = reapMalloc(&reap, (size_t)i * 7), i, (size_t)i * 7);
        for (int i = 0; i < 300; i += 2) reapFree(&reap, objects[i]);
        for (int i = 1; i < 300; i += 2) {
            objects[i] = reapRealloc(&reap, objects[i], (size_t)i * 200);
            for (int k = 0; k < i * 7; k++) sink = objects[i][k];
        }
        memset(reapCalloc(&reap, 10, 10), 1, 100);
        all_that_is_usable();
        sink = *(char *)reapAlignedAlloc(&reap, 4096, 100) = 1;
        reapSetName(&reap, "request");
        reapFreeAll(&reap);
        if (strcmp(reapName(&reap), "request") != 0) sink = 0;
    }
}

/* Freed, where it is not the reap's last one. */
static volatile char *freed_object(void)
{
    void *object = reapMalloc(&reap, 100);
    reapMalloc(&reap, 100);
    reapFree(&reap, object);
    return object;
}

static volatile char *written_object(void **in)
{
    volatile char *object = reapMalloc(in, 100);
    object[5] = 1;
    return object;
}

CASE(after_free)
{
    volatile char *object = freed_object();
    sink = object[60];
}

CASE(after_clear)
{
    volatile char *object = written_object(&reap);
    reapFreeAll(&reap);
    sink = object[5];
}

CASE(past_the_end)
{
    volatile char *object = reapMalloc(&reap, 100);
    sink = object[OPAQUE(120)] = 1;
}

CASE(just_past_the_end)
{
    volatile char *object = reapMalloc(&reap, 100);
    sink = object[OPAQUE(100)] = 1;
}

CASE(after_destroy)
{
    void *child;
    reapCreate(&child, &reap);
    volatile char *object = written_object(&child);
    reapDestroy(&child);
    sink = object[5];
}

CASE(after_rewind)
{
    reap_mark mark;
    reapMark(&reap, &mark);
    volatile char *object = written_object(&reap);
    reapRewind(&reap, &mark);
    sink = object[5];
}

CASE(after_growing)
{
    volatile char *object = reapMalloc(&reap, 100), *next = reapMalloc(&reap, 100);
    next = reapRealloc(&reap, (void *)object, OPAQUE(1000));
    sink = next[500] = 1;
    sink = object[50];
}

CASE(past_a_large_one)
{
    volatile char *object = reapMalloc(&reap, 100000);
    sink = object[OPAQUE(100010)] = 1;
}

CASE(undefined)
{
    volatile char *object = reapMalloc(&reap, 100);
    for (int i = 0; i < 100; i++) object[i] = 1;
    reapFree(&reap, (void *)object);
    object = reapMalloc(&reap, 100);
    if (object[50]) sink = 1;
}

CASE(start_after_free)
{
    volatile char *object = freed_object();
    sink = object[0];
}

/* Of a size that is in use again. */
CASE(written_after_free)
{
    volatile char *object = freed_object();
    for (int i = 0; i < 10; i++) reapMalloc(&reap, 100);
    object[OPAQUE(60)] = 1;
}

CASE(after_clear_refilled)
{
    volatile char *object = written_object(&reap);
    reapFreeAll(&reap);
    for (int i = 0; i < 10; i++) memset(reapMalloc(&reap, 100), 1, 100);
    sink = object[5];
}

CASE(after_destroy_and_many)
{
    void *child;
    reapCreate(&child, &reap);
    volatile char *object = written_object(&child);
    reapDestroy(&child);
    for (int i = 0; i < 2000; i++) {
        reapCreate(&child, &reap);
        memset(reapMalloc(&child, 100), 1, 100);
        reapDestroy(&child);
    }
    sink = object[5];
}

/* Of whole units. */
CASE(past_whole_units)
{
    volatile char *object = reapMalloc(&reap, 96);
    memset(reapMalloc(&reap, 96), 1, 96);
    sink = object[OPAQUE(96)] = 1;
}

CASE(stale_builder)
{
    reap_builder builder = {NULL, 0, 0};
    reapAppendString(&reap, &builder, "text");
    volatile char *text = builder.data;
    reapMalloc(&reap, 100);
    for (int i = 0; i < 100; i++) reapAppendString(&reap, &builder, "text");
    sink = text[0];
}

CASE(of_another_reap)
{
    void *other;
    reapCreate(&other, NULL);
    reapFree(&reap, reapMalloc(&other, 100));
}

CASE(freed_by_libc)
{
    void *object = reapMalloc(&reap, 100);
    free(OPAQUE(object));
}

CASE(of_a_buffer)
{
    static _Alignas(1024) char buffer[8192];
    struct reap_options options = {.size = sizeof options, .buffer = buffer, .buffer_size = sizeof buffer};
    void *within;
    if (reapCreateWith(&within, NULL, &options) != 0) abort();
    volatile char *object = written_object(&within);
    reapDestroy(&within);
    sink = object[5];
}

CASE(after_shrinking)
{
    volatile char *object = reapMalloc(&reap, 1000);
    object = reapRealloc(&reap, (void *)object, OPAQUE(100));
    sink = object[500] = 1;
}

CASE(freed_twice)
{
    void *object = reapMalloc(&reap, 100);
    reapMalloc(&reap, 100);
    reapFree(&reap, object);
    reapFree(&reap, OPAQUE(object));
}

static int make_mistake(const char *name)
{
    reapCreate(&reap, NULL);
    run_cases(name);
    reapDestroy(&reap);
    return 0;
}

/* In a child: under a tool that takes long to start. Its process and the status that a shell would see. */
static void make_in_child(const char *name)
{
    int status;
    pid_t pid = fork();
    if (pid == 0) exit(make_mistake(name));
    if (pid < 0 || waitpid(pid, &status, 0) != pid) exit(99);
    printf("%s %d %d\n", name, (int)pid, WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
    fflush(stdout);
}

/* Lists the mistakes, or makes one, or several apart. */
int main(int argc, char **argv)
{
    for (unsigned i = 0; argc == 1 && i < all_cases()->count; i++) puts(all_cases()->names[i]);
    for (int i = 1; argc > 2 && i < argc; i++) make_in_child(argv[i]);
    return argc == 2 ? make_mistake(argv[1]) : 0;
}
