/* SPDX-License-Identifier: Apache-2.0 */
/* check_fork.c: fork in the middle of a load of threads: the child goes on with all of the memory. */
#include "support/check_backend.h"

#include "arena/arena_table.h"
#include "heap/heap_remote.h"
#include "heap/heap_table.h"

enum { THREADS = 3, MINE = 2000, OF_PARENT = 20000, FORKS = 25 };

static _Atomic unsigned ready;
static void *of_parent[OF_PARENT];

static void *churn(void *arg)
{
    uint64_t random = (uintptr_t)arg * 7919 + 1;
    static __thread void *mine[MINE];
    for (unsigned step = 0; !is_over; step++) {
        unsigned i = random_below(&random, MINE);
        hoard_free(mine[i]);
        mine[i] = random_below(&random, 3) ? hoard_malloc(random_below(&random, 3000)) : NULL;
        if (step % 500 == 0) mine[i] = hoard_realloc(mine[i], 40000 + random_below(&random, 6000000));
        if (step == MINE) ready++;
    }
    for (unsigned i = 0; i < MINE; i++) hoard_free(mine[i]);
    return NULL;
}

static void *churn_a_while(void *arg)
{
    uint64_t random = (uintptr_t)arg + 1;
    void *mine[100] = {NULL};
    for (unsigned step = 0; step < 20000; step++) {
        unsigned i = random_below(&random, 100);
        hoard_free(mine[i]);
        mine[i] = hoard_malloc(random_below(&random, 5000));
        if (mine[i] == NULL) return (void *)1;
    }
    for (unsigned i = 0; i < 100; i++) hoard_free(mine[i]);
    return NULL;
}

static void be_a_child(void)
{
    expect(heap_is_valid(), "accounts are wrong at the start");
    size_t before = live_bytes();
    churn_a_while(NULL);
    expect(live_bytes() == before, "an account is off after a load");
    size_t freed = 0;
    for (unsigned i = 0; i < OF_PARENT; i++) {
        freed += hoard_usable_size(of_parent[i]);
        expect(*(unsigned *)of_parent[i] == i, "a block of the parent changed");
        hoard_free(of_parent[i]);
    }
    expect(live_bytes() == before - freed, "the parent's blocks were not freed");
    pthread_t more[2]; /* and threads of its own, which take over ids of those that stayed behind */
    for (uintptr_t i = 0; i < 2; i++) pthread_create(&more[i], NULL, churn_a_while, (void *)i);
    for (unsigned i = 0; i < 2; i++) {
        void *complaint;
        pthread_join(more[i], &complaint);
        expect(complaint == NULL, "a thread of the child had no memory");
    }
    expect(heap_is_valid(), "accounts are wrong at the end");
    pid_t pid = fork();
    if (pid == 0) {
        churn_a_while(NULL);
        _exit(heap_is_valid() ? 0 : 1);
    }
    int status;
    expect(waitpid(pid, &status, 0) == pid && status == 0, "the child's child failed");
    _exit(0);
}

TEST(a_child_goes_on, .times = POLICIES)
{
    use_path(_i, NULL);
    for (unsigned i = 0; i < OF_PARENT; i++) {
        of_parent[i] = hoard_malloc(8 + i % 700);
        *(unsigned *)of_parent[i] = i;
    }
    for (uintptr_t i = 0; i < THREADS; i++) start_threads(1, churn, (void *)i);
    while (ready < THREADS) sched_yield();
    unsigned forks = shorter(_i < PATHS ? FORKS : FORKS / 5, 2);
    for (unsigned n = 0; n < forks; n++) {
        pid_t pid = fork();
        ck_assert_int_ge(pid, 0);
        if (pid == 0) {
            alarm(100); /* a lock that stayed taken */
            be_a_child();
        }
        int status;
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        ck_assert_msg(status == 0, "fork %u: status %x", n, (unsigned)status);
    }
    end_threads();
    for (unsigned i = 0; i < OF_PARENT; i++) hoard_free(of_parent[i]);
    ck_assert_uint_eq(live_bytes(), 0);
    ck_assert(heap_is_valid());
}

enum { KEPT = 20000, KEPT_SIZE = 1000 };

static void *kept[KEPT];

/* A fifth is free then: what a heap may keep for itself. Under load a thread may get another heap's id on its
 * way. What it frees then is pending, too little to be looked at, and perhaps on the heap that is the child's
 * own. False: so it was. */
static bool keep_on_one_heap(void)
{
    bool one = true;
    for (unsigned i = 0; i < KEPT; i++) kept[i] = hoard_malloc(KEPT_SIZE);
    for (unsigned i = 0; i < KEPT; i += 5) hoard_free(kept[i]);
    for (unsigned i = 1; i < KEPT; i += 5) one &= !superblock_has_pending(superblock_of(kept[i]));
    for (unsigned i = 0; i < KEPT && !one; i++)
        if (i % 5 != 0) hoard_free(kept[i]);
    return one;
}

static void *keep(void *arg)
{
    (void)arg;
    pin_to(1);
    while (!keep_on_one_heap()) hoard_trim(0);
    ready++;
    while (!is_over) usleep(1000);
    return NULL;
}

/* 20 MB in 1000 bytes, a fifth of it free on the other heap: the child gets that fifth before it asks the OS.
 */
static void use_what_was_left(void *arg)
{
    (void)arg;
    size_t before = held_bytes();
    for (unsigned i = 0; i < KEPT / 5 - 200; i++) expect(hoard_malloc(KEPT_SIZE) != NULL, "no memory");
    expect(held_bytes() <= before + 8 * SUPERBLOCK, "free blocks that were left behind are not used");
    for (unsigned i = 0; i < KEPT; i++)
        if (i % 5 != 0) hoard_free(kept[i]);
    before = held_bytes();
    for (unsigned i = 0; i < KEPT * 3 / 5; i++) expect(hoard_malloc(KEPT_SIZE) != NULL, "no memory");
    expect(held_bytes() <= before + 8 * SUPERBLOCK, "memory freed by the child is not used");
    expect(heap_is_valid(), "accounts are wrong");
}

TEST(the_child_uses_what_was_left_behind, .times = POLICIES)
{
    use_path(_i, NULL);
    hoard_free(hoard_malloc(1));
    start_threads(1, keep, NULL);
    while (ready == 0) sched_yield(); /* running, so that the other has another id */
    pin_to(0);
    assert_ends_well(use_what_was_left, NULL);
    end_threads();
}

static void post_in_child(void *sb)
{
    heap_enqueue(sb);
    const struct heap *heap = heap_get(((struct superblock *)sb)->role.heap);
    if (atomic_load(&heap->queued) != sb) _exit(3);
}

static void see_that_it_is_posted(void *sb)
{
    const struct heap *heap = heap_get(((struct superblock *)sb)->role.heap);
    if (atomic_load(&heap->queued) != sb || atomic_load(&((struct superblock *)sb)->queued) == 0) _exit(3);
}

TEST(the_child_has_what_was_posted, .times = POLICIES)
{
    use_path(_i, NULL);
    void *block = hoard_malloc(64);
    heap_enqueue(superblock_of(block));
    assert_ends_well(see_that_it_is_posted, superblock_of(block));
    hoard_free(block);
}

/* In the parent a superblock is marked as queued and on no list yet when another thread forks. */
TEST(the_child_posts_what_was_only_marked, .times = POLICIES)
{
    use_path(_i, NULL);
    void *block = hoard_malloc(64);
    struct superblock *sb = superblock_of(block);
    atomic_store(&sb->queued, 1);
    assert_ends_well(post_in_child, sb);
    atomic_store(&sb->queued, 0);
    heap_enqueue(sb); /* the mark is what this test takes it for */
    ck_assert_int_eq(atomic_load(&sb->queued), 1);
    hoard_free(block);
}

static struct gate *outer; /* the gate that the thread passes when it comes to libc; NULL: no more */

static void use_all_sizes(void)
{
    static char *blocks[64];
    for (size_t size = 16; size <= 40 * 1024 * 1024; size *= 2) {
        for (unsigned i = 0; i < 64; i++) blocks[i] = hoard_malloc(size + i);
        for (unsigned i = 0; i < 64; i++) hoard_free(blocks[i]);
    }
    hoard_trim(0);
}

/* Waits until another thread forks, and waits for this one. */
static void nest(void)
{
    struct gate *gate = outer;
    if (gate == NULL || lock_depth < (unsigned)gate->unit) return;
    outer = NULL;
    ready = 1;
    while (atomic_load(&gate->closed) == 0) sched_yield();
    use_all_sizes();
}

#define WRAP(type, name, parameters, arguments)                                                              \
    type __real_##name parameters;                                                                           \
    type __wrap_##name parameters;                                                                           \
    type __wrap_##name parameters                                                                            \
    {                                                                                                        \
        nest();                                                                                              \
        return __real_##name arguments;                                                                      \
    }

WRAP(int, munmap, (void *start, size_t size), (start, size))
WRAP(int, madvise, (void *start, size_t size, int advice), (start, size, advice))
WRAP(void *, mmap, (void *hint, size_t size, int may, int flags, int fd, off_t at),
     (hint, size, may, flags, fd, at))

/* Until the thread has come to libc within the gate. */
static void *come_to_libc(void *gate)
{
    outer = gate;
    while (outer != NULL) {
        void *large = hoard_malloc(40 * 1024 * 1024);
        for (unsigned i = 0; i < 100; i++) hoard_malloc(100000);
        hoard_free(large);
    }
    return NULL;
}

/* The fork waits for the thread in the gate, which needs locks and gates that the fork wants. */
TEST(a_fork_waits_for_a_nested_malloc, .times = 2 * POLICIES)
{
    struct gate *gates[] = {&heap_transit, &arenas.gate};
    use_path(_i / 2, NULL);
    hoard_free(hoard_malloc(1));
    start_threads(1, come_to_libc, gates[_i % 2]);
    while (ready == 0) sched_yield();
    pid_t pid = fork();
    if (pid == 0) {
        alarm(60);
        use_all_sizes();
        _exit(heap_is_valid() ? 0 : 1);
    }
    int status;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    end_threads();
    ck_assert(heap_is_valid());
}

int main(void) { return run_tests((struct suite){.seconds = 90}); }
