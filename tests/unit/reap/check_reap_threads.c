/* SPDX-License-Identifier: Apache-2.0 */
/* check_reap_threads.c: what threads may do to reaps at the same time, and what a fork leaves. */
#include "support/check_reap.h"

#include "reap/reap_tree.h"
#include "region/reap_chunk.h"

enum { THREADS = 4, ROUNDS = 20000 };

/* A few live children at a time, destroyed in another order than they were made in. */
static void *make_children(void *parent)
{
    void *children[7] = {NULL};
    for (int i = 0; i < ROUNDS; i++) {
        void **child = &children[i * 3 % 7];
        if (*child) reapDestroy(child);
        reapCreate(child, &parent);
        memset(reapMalloc(child, 100), i, 100);
        void *grandchild;
        reapCreate(&grandchild, child);
    }
    for (int i = 0; i < 7; i += 2) reapDestroy(&children[i]);
    return NULL;
}

TEST(threads_make_children_of_one_parent)
{
    void *parent;
    reapCreate(&parent, NULL);
    in_threads(THREADS, make_children, parent);
    ck_assert_uint_eq(stats_of(parent).children, THREADS * 3);
    reapDestroy(&parent);
}

enum { BATCH = 500 };

static void *objects[BATCH];

static void *free_batch(void *unused)
{
    for (int i = 0; i < BATCH; i++) ck_assert_int_eq(reapFreeAny(objects[i]), 0);
    return unused;
}

static void *new_batch(void *shared)
{
    void *reap;
    if (shared)
        reap = new_shared(NULL, 0);
    else
        reapCreate(&reap, NULL);
    for (int i = 0; i < BATCH; i++) objects[i] = reapMalloc(&reap, i % 50 ? (size_t)i : 50000);
    return reap;
}

/* The reap's own thread goes on meanwhile; and itself frees what it has not entered, and what it has. */
TEST(any_thread_frees_an_object, .times = 2)
{
    for (int round = 0; round < 20; round++) {
        void *reap = new_batch(_i ? &reap : NULL);
        start_threads(1, free_batch, NULL);
        for (int i = 0; i < BATCH; i++) ck_assert_int_eq(reapFreeAny(reapMalloc(&reap, 100)), 0);
        end_threads();
        reapEnterQuietly(&reap);
        ck_assert_int_eq(reapFreeAny(reapMalloc(&reap, 100)), 0);
        reapLeave();
        ck_assert_int_eq(reapSetLimit(&reap, 0), 0); /* which takes in what was freed */
        ck_assert_uint_eq(stats_of(reap).live_objects, 0);
        reapDestroy(&reap);
    }
}

static void *make_large(void *object) { return hoard_realloc(object, 100000); }

/* realloc() in another thread has made the object large; it is the first thing that the reap's thread
 * frees. */
TEST(what_another_thread_made_large_is_freed)
{
    void *reap;
    reapCreate(&reap, NULL);
    for (int i = 0; i < 41; i++) {
        void *large = in_thread(make_large, memset(reapMalloc(&reap, 100), i, 100));
        ck_assert_ptr_nonnull(large);
        for (int b = 0; b < 100; b++) ck_assert_int_eq(((unsigned char *)large)[b], (unsigned char)i);
        reapFree(&reap, large);
        void *block = memset(hoard_malloc(90000), i, 90000); /* which may be at the same place */
        assert_valid(reap);
        hoard_free(block);
        if (i % 10) continue;
        ck_assert_int_eq(reapSetLimit(&reap, 0), 0);
        ck_assert_uint_eq(stats_of(reap).live_objects, 0);
    }
    reapDestroy(&reap);
}

/* With bypass each object has memory of its own, which malloc may have by now. */
TEST(what_malloc_has_by_now_stays)
{
    void *reap, *blocks[BATCH];
    reapCreate(&reap, NULL);
    for (int i = 0; i < BATCH; i++) reapFree(&reap, reapMalloc(&reap, 1 << 20));
    for (int i = 0; i < BATCH; i++) {
        blocks[i] = hoard_malloc(40000);
        ck_assert_int_eq(reapFreeAny(blocks[i]), -1);
    }
    for (int i = 0; i < BATCH; i++) hoard_free(blocks[i]);
    reapDestroy(&reap);
}

/* Trees of small chunks, large objects and names, in memory that goes back to the OS between them. */
static void *make_trees(void *unused)
{
    while (!is_over) {
        void *top, *child;
        reapCreate(&top, NULL);
        for (int i = 0; i < 20; i++) {
            reapCreate(&child, &top);
            reapSetName(&child, "a child");
            for (int k = 0; k < 50; k++) reapFree(&child, reapMalloc(&child, (size_t)k * 100));
            reapMalloc(&child, 200000);
        }
        reapFreeAll(&child);
        reapDestroy(&top);
        hoard_trim(0);
    }
    return unused;
}

/* In a report of all, once. */
static void assert_reported(const char *name)
{
    char *text;
    size_t length;
    FILE *out = open_memstream(&text, &length);
    reapReport(NULL, out);
    fclose(out);
    const char *found = strstr(text, name);
    ck_assert_ptr_nonnull(found);
    ck_assert_ptr_null(strstr(found + 1, name));
    free(text);
}

TEST(a_report_of_all_while_reaps_come_and_go)
{
    void *mine;
    reapCreate(&mine, NULL);
    ck_assert_int_eq(reapSetName(&mine, "mine"), 0);
    start_threads(THREADS, make_trees, NULL);
    for (int i = 0; i < 300; i++) assert_reported("mine");
    end_threads();
    assert_valid(mine);
    reapDestroy(&mine);
}

struct exchange {
    _Atomic(void *) slots[8];
    void *parent;
};

/* Takes what lies in a slot, checks and uses it, and leaves a reap of its own there. */
static void *hand_on(void *arg)
{
    struct exchange *exchange = arg;
    for (int i = 0; i < ROUNDS; i++) {
        void *reap;
        reapCreate(&reap, &exchange->parent);
        unsigned char *object = reapMalloc(&reap, 1000);
        memset(object, i & 0xff, 1000);
        reapSetName(&reap, (char[]){(char)(i & 0x7f ? i & 0x7f : 1), '\0'});
        reap = atomic_exchange(&exchange->slots[i % 8], reap);
        if (!reap) continue;
        const char *name = reapName(&reap);
        ck_assert_uint_eq(strlen(name), 1);
        reapFree(&reap, reapMalloc(&reap, 50));
        reapMalloc(&reap, 20000);
        if (i % 2) reapFreeAll(&reap);
        reapDestroy(&reap);
    }
    return NULL;
}

TEST(reaps_go_from_thread_to_thread)
{
    static struct exchange exchange;
    reapCreate(&exchange.parent, NULL);
    in_threads(THREADS, hand_on, &exchange);
    assert_valid(exchange.parent);
    reapDestroy(&exchange.parent);
}

/* The state that a fork meets in the middle of reap_tree_add: the lock is held, the new child is not
 * on the list yet, and what was the newest one already points back to it. */
TEST(a_lock_that_nobody_holds, .modes = ORDINARY)
{
    void *parent, *old, *lost, *child;
    reapCreate(&parent, NULL);
    reapCreate(&old, &parent);
    reapCreate(&lost, NULL);
    struct reap *p = parent, *o = old;
    p->below.lock = 1;
    o->prev = lost;
    pid_t pid = fork();
    if (pid == 0) {
        alarm(100);
        reapDestroy(&old);
        bool valid = reap_is_valid(parent, NULL) && p->below.lock == 0 && !p->below.first;
        reapCreate(&child, &parent);
        valid = valid && p->below.first == child && reap_tree_count(p) == 1;
        reapDestroy(&parent);
        _exit(!valid);
    }
    int status;
    waitpid(pid, &status, 0);
    ck_assert_int_eq(status, 0);
    p->below.lock = 0;
    o->prev = NULL;
    reapDestroy(&lost);
    reapDestroy(&parent);
}

static _Atomic(void *) object;

static void unmap(void *chunk, size_t size, void *arg)
{
    (void)arg;
    munmap(chunk, size);
}

/* Plain ones and shared ones, on memory that goes back to the OS at once. */
static void *make_and_unmap(void *unused)
{
    struct reap_options options = {.size = sizeof options, .source = {take_pages, unmap, NULL}};
    for (unsigned i = 0; i < steps_of(10000); i++) {
        void *reap;
        options.flags = i % 4 == 0 ? REAP_SHARED : 0;
        ck_assert_int_eq(reapCreateWith(&reap, NULL, &options), 0);
        object = reapMalloc(&reap, 100);
        if (i % 2) object = reapMalloc(&reap, 100000);
        reapDestroy(&reap);
    }
    is_over = true;
    return unused;
}

/* The end of an object that is so large that to look for its beginning takes some time. */
static void *make_large_and_unmap(void *unused)
{
    enum { LARGE = 64 << 20 };
    struct reap_options options = {.size = sizeof options, .buffer_size = LARGE};
    for (unsigned i = 0; i < steps_of(600); i++) {
        void *reap;
        options.buffer = take_pages(LARGE, NULL);
        options.flags = i % 4 == 0 ? REAP_SHARED : 0;
        ck_assert_int_eq(reapCreateWith(&reap, NULL, &options), 0);
        object = (char *)reapMalloc(&reap, LARGE - (LARGE >> 4)) + LARGE - (LARGE >> 4) - 1;
        sched_yield();
        reapDestroy(&reap);
        unmap(options.buffer, LARGE, NULL);
    }
    is_over = true;
    return unused;
}

TEST(whose_is_a_pointer_while_its_reap_ends, .times = 2)
{
    void *mine, *owner;
    size_t asked = 0;
    reapCreate(&mine, NULL);
    char *lives = reapMalloc(&mine, 100);
    void *(*makers[])(void *) = {make_and_unmap, make_large_and_unmap};
    start_threads(1, makers[_i], NULL);
    for (; !is_over; asked++) {
        void *pointer = object;
        if (reapOf(pointer, &owner) == 0) ck_assert_ptr_nonnull(owner);
        ck_assert_int_eq(reapOf(lives + 99, &owner), 0);
        ck_assert_ptr_eq(owner, mine);
    }
    end_threads();
    ck_assert_uint_gt(asked, 0);
    ck_assert_int_eq(reapOf(object, &owner), -1);
    reapDestroy(&mine);
}

int main(void) { return run_tests((struct suite){.modes = ALL_MODES}); }
