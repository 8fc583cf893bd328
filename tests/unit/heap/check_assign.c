/* SPDX-License-Identifier: Apache-2.0 */
/* check_assign.c: which heap an allocation comes from, under each policy; threads that come and go. */
#include "support/check_backend.h"

#include "arena/arena.h"
#include "base/options.h"
#include "heap/heap_policy.h"
#include "heap/heap_table.h"

#include <semaphore.h>

static void use_options(const char *text)
{
    setenv("REAP_OPTIONS", text, 1);
    hoard_free(hoard_malloc(1));
}

/* The heap that a block lies on; the block is freed. */
static unsigned heap_under(void *block)
{
    unsigned heap = superblock_of(block)->role.heap;
    hoard_free(block);
    return heap;
}

static unsigned heap_of_next(void) { return heap_under(hoard_malloc(40)); }

/* --- in turn --------------------------------------------------------------------------------- */

enum { ROUNDS = 5 };

TEST(dynamic_gives_the_next_heap_after_n, .times = 4)
{
    static const unsigned counts[] = {1, 2, 7, 100};
    char text[32];
    snprintf(text, sizeof text, "heaps=dynamic:%u", counts[_i]);
    use_options(_i == 0 ? "heaps=roundrobin" : text);
    unsigned heaps = 2 * cpu.count, n = counts[_i];
    while (n > 1 && heap_of_next() == 0) continue; /* to the first of the next heap */
    unsigned first = heap_of_next();
    for (unsigned i = 2; i < n; i++) ck_assert_uint_eq(heap_of_next(), first);
    for (unsigned i = n > 1 ? 1 : 0; i < n * heaps * ROUNDS; i++)
        ck_assert_uint_eq(heap_of_next(), (first + (n > 1 ? (i - 1) / n + 1 : i + 1)) % heaps);
    ck_assert(heap_is_valid());
}

/* Reallocation and calloc allocate too; free does not. */
TEST(frees_do_not_count)
{
    use_options("heaps=dynamic:3");
    void *blocks[9];
    unsigned heaps[9];
    while (heap_of_next() == 0) continue;
    heap_of_next(); /* two of the second heap's three */
    for (unsigned i = 0; i < 9; i++) blocks[i] = i % 2 == 0 ? hoard_malloc(50) : hoard_calloc(1, 50);
    for (unsigned i = 0; i < 9; i++) heaps[i] = heap_under(blocks[i]);
    for (unsigned i = 1; i < 9; i++) ck_assert_int_eq(heaps[i] != heaps[i - 1], i % 3 == 1);
}

static void *next_heap(void *arg)
{
    (void)arg;
    unsigned heap = heap_of_next();
    for (unsigned i = 0; i < 100; i++)
        if (heap_of_next() != heap) return (void *)(uintptr_t)-1;
    return (void *)(uintptr_t)heap;
}

static unsigned next_heap_of_a_thread(void *(*fn)(void *))
{
    return (unsigned)(uintptr_t)in_thread(fn, NULL);
}

TEST(threads_are_dealt_onto_2p_heaps, .times = 2)
{
    use_options(_i == 0 ? "path=locked" : "path=locked,heaps=cpu");
    unsigned heaps = 2 * cpu.count;
    for (unsigned i = 1; i < 3 * heaps; i++) ck_assert_uint_eq(next_heap_of_a_thread(next_heap), i % heaps);
}

TEST(there_is_a_single_heap)
{
    use_options("heaps=single");
    for (unsigned i = 0; i < 20; i++) ck_assert_uint_eq(next_heap_of_a_thread(next_heap), 0);
    ck_assert_uint_eq(heap_totals().heaps, 1);
}

/* --- by core --------------------------------------------------------------------------------- */

static __thread uint32_t acted_cpu; /* the CPU that this thread says it is on */

static void act_as_cpus(void) { cpu.now_at = (char *)&acted_cpu - (char *)__builtin_thread_pointer(); }

TEST(siblings_share_a_heap)
{
    static const unsigned cores[] = {0, 1, 2, 3, 0, 1, 2, 3};
    use_options("heaps=core,topology=0.0:1.0:2.1:3.1:0.0:1.0:2.1:3.1");
    act_as_cpus();
    uint64_t random = random_seed();
    for (unsigned i = 0; i < 1000; i++) {
        acted_cpu = random_below(&random, 8);
        ck_assert_uint_eq(heap_of_next(), cores[acted_cpu]);
    }
    ck_assert_uint_eq(heap_totals().heaps, 4);
    acted_cpu = 77; /* came later: a core of its own */
    ck_assert_uint_eq(heap_of_next(), 77);
    acted_cpu = UINT32_MAX;
    ck_assert_uint_eq(heap_of_next(), 0);
}

TEST(the_core_is_that_of_the_cpu_below, .times = 2)
{
    use_options("heaps=core");
    cpu_set_t allowed;
    sched_getaffinity(0, sizeof allowed, &allowed);
    for (unsigned c = 0; c < CPU_SETSIZE; c++) {
        cpu_set_t one;
        if (!CPU_ISSET(c, &allowed)) continue;
        CPU_ZERO(&one);
        CPU_SET(c, &one);
        sched_setaffinity(0, sizeof one, &one);
        ck_assert_uint_eq(rseq_cpu_now(), c);
        cpu.now_at = _i == 0 ? cpu.now_at : 0; /* and as the kernel says, where there is no rseq */
        ck_assert_uint_eq(rseq_cpu_now(), c);
        ck_assert_uint_le(heap_of_next(), c); /* the least of the siblings */
    }
}

/* --- a thread's own -------------------------------------------------------------------------- */

enum { AT_ONCE = 6, GENERATIONS = 50, OF_EACH = 200 };

static struct visitor {
    pthread_t thread;
    unsigned heap;
    void *blocks[OF_EACH];
} visitors[AT_ONCE];

static pthread_barrier_t all_here;

static void *visit(void *arg)
{
    struct visitor *me = arg;
    for (unsigned i = 0; i < OF_EACH; i++) me->blocks[i] = hoard_malloc(20 + i);
    me->heap = heap_of_next();
    pthread_barrier_wait(&all_here); /* so that all live at once */
    return NULL;
}

static void run_generation(void)
{
    for (unsigned i = 0; i < AT_ONCE; i++)
        ck_assert_int_eq(pthread_create(&visitors[i].thread, NULL, visit, &visitors[i]), 0);
    for (unsigned i = 0; i < AT_ONCE; i++) pthread_join(visitors[i].thread, NULL);
}

TEST(each_living_thread_has_its_own)
{
    use_options("heaps=thread");
    pthread_barrier_init(&all_here, NULL, AT_ONCE);
    size_t held = 0;
    for (unsigned g = 0; g < GENERATIONS; g++) {
        bool seen[AT_ONCE + 2] = {false};
        run_generation();
        for (unsigned i = 0; i < AT_ONCE; i++) {
            ck_assert_uint_ge(visitors[i].heap, 2); /* 0 is nobody's own, 1 the main thread's */
            ck_assert_uint_lt(visitors[i].heap, AT_ONCE + 2);
            ck_assert(!seen[visitors[i].heap]);
            seen[visitors[i].heap] = true;
            for (unsigned b = 0; b < OF_EACH; b++) hoard_free(visitors[i].blocks[b]);
        }
        if (g == GENERATIONS / 10) held = held_bytes();
        if (g > GENERATIONS / 10) ck_assert_uint_le(held_bytes(), held + MIB);
    }
    ck_assert_uint_eq(heap_totals().heaps, AT_ONCE + 1);
    ck_assert(heap_is_valid());
}

/* A thread for whose heap there was no memory has its id all the same. malloc makes the heap later; a free
 * does not, since it holds another heap's lock. */
TEST(a_free_makes_no_heap)
{
    use_options("path=locked");
    void *block = hoard_malloc(20000);
    ck_assert_uint_eq(heap_totals().heaps, 1);
    heap_of_thread += 100;
    hoard_free(block);
    heap_of_thread -= 100;
    ck_assert_uint_eq(heap_totals().heaps, 1);
    ck_assert(heap_is_valid());
}

static sem_t may_go_on, has_come;
static void *kept[OF_EACH];

static void *leave_kept(void *size)
{
    for (unsigned i = 0; i < OF_EACH; i++) kept[i] = hoard_malloc((uintptr_t)size);
    return (void *)(uintptr_t)heap_of_next();
}

static void *free_kept(void *arg)
{
    for (unsigned i = 0; i < OF_EACH; i++) hoard_free(kept[i]);
    return arg;
}

/* The memory of an ended thread is for all: one that asks for much afterwards gets it before the OS is asked.
 */
TEST(an_ended_threads_memory_serves_others)
{
    use_options("heaps=thread,slack=64");
    in_thread(leave_kept, (void *)(uintptr_t)30000);
    free_kept(NULL);
    size_t before = held_bytes();
    for (unsigned i = 0; i < OF_EACH; i++) ck_assert_ptr_nonnull(hoard_malloc(20000));
    ck_assert_uint_le(held_bytes(), before);
    ck_assert(heap_is_valid());
}

static void *hold_an_id(void *arg)
{
    (void)arg;
    uintptr_t heap = heap_of_next();
    sem_post(&has_come);
    while (sem_wait(&may_go_on) != 0) continue;
    heap = heap_of_next() == heap ? heap : 0;
    return (void *)heap;
}

/* Others free into the heap of a thread that has ended, while a new one is there already. */
TEST(frees_into_a_heap_that_changed_hands)
{
    use_options("heaps=thread");
    sem_init(&may_go_on, 0, 0);
    sem_init(&has_come, 0, 0);
    pthread_t thread;
    void *old, *new;
    for (unsigned round = 0; round < 20; round++) {
        old = in_thread(leave_kept, (void *)(uintptr_t)(16 + 100 * round));
        pthread_create(&thread, NULL, hold_an_id, NULL);
        sem_wait(&has_come);
        free_kept(NULL);
        ck_assert(heap_is_valid());
        sem_post(&may_go_on);
        pthread_join(thread, &new);
        ck_assert_ptr_eq(old, new);
    }
}

/* Destructors of thread-specific data allocate and free in every round that libc runs them. A thread that
 * starts meanwhile gets another heap. */
static pthread_key_t key;
static unsigned runs, wrong;

static void allocate_late(void *heap)
{
    wrong += heap_of_next() != (uintptr_t)heap;
    wrong += next_heap_of_a_thread(next_heap) == (uintptr_t)heap;
    runs++;
    pthread_setspecific(key, heap);
}

static void *end_busily(void *arg)
{
    (void)arg;
    uintptr_t heap = heap_of_next();
    pthread_setspecific(key, (void *)heap);
    return (void *)heap;
}

TEST(destructors_allocate_from_the_threads_heap)
{
    use_options("heaps=thread");
    pthread_key_create(&key, allocate_late);
    unsigned heap = next_heap_of_a_thread(end_busily);
    ck_assert_uint_eq(runs, (unsigned)sysconf(_SC_THREAD_DESTRUCTOR_ITERATIONS));
    ck_assert_uint_eq(wrong, 0);
    ck_assert_uint_eq(next_heap_of_a_thread(next_heap), heap); /* and comes back all the same */
}

/* The child has the heap of the thread that forked; all other ids are to be had again. */
TEST(a_child_has_only_its_own)
{
    use_options("heaps=thread");
    sem_init(&may_go_on, 0, 0);
    sem_init(&has_come, 0, 0);
    pthread_t threads[3];
    for (unsigned i = 0; i < 3; i++) {
        pthread_create(&threads[i], NULL, hold_an_id, NULL);
        sem_wait(&has_come);
    }
    unsigned mine = heap_of_next();
    pid_t pid = fork();
    if (pid == 0) {
        if (heap_of_next() != mine) _exit(1);
        if (next_heap_of_a_thread(next_heap) != 2 || next_heap_of_a_thread(next_heap) != 2) _exit(2);
        _exit(heap_is_valid() ? 0 : 3);
    }
    int status;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    ck_assert_uint_eq(next_heap_of_a_thread(next_heap), 5); /* nothing has changed for the parent */
    for (unsigned i = 0; i < 3; i++) sem_post(&may_go_on);
    for (uintptr_t i = 0; i < 3; i++) {
        void *heap;
        pthread_join(threads[i], &heap);
        ck_assert_uint_eq((uintptr_t)heap, 2 + i);
    }
}

/* More threads than ids, as far as the machine lets there be so many: the last ones share a heap. */
TEST(too_many_threads_share_one)
{
    enum { MANY = IDS_MAX + 4 };
    static pthread_t threads[MANY];
    needs(!is_slowed(), "too many threads for a tool that watches"); /* Valgrind has 500 */
    use_options("heaps=thread");
    sem_init(&may_go_on, 0, 0);
    sem_init(&has_come, 0, 0);
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 64 * KIB);
    unsigned n = 0, shared = 0;
    while (n < MANY && pthread_create(&threads[n], &small, hold_an_id, NULL) == 0) n++;
    for (unsigned i = 0; i < n; i++) sem_wait(&has_come);
    for (unsigned i = 0; i < n; i++) sem_post(&may_go_on);
    for (unsigned i = 0; i < n; i++) {
        void *heap;
        pthread_join(threads[i], &heap);
        shared += heap == NULL;
    }
    ck_assert_uint_eq(shared, n > IDS_MAX - 2 ? n - (IDS_MAX - 2) : 0);
    ck_assert(heap_is_valid());
}

int main(void) { return run_tests((struct suite){0}); }
