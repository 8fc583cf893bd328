/* SPDX-License-Identifier: Apache-2.0 */
/* check_reap_fork.c: what the child of a fork finds of reaps that other threads were ending, or were in:
 * their parents can be cleared and destroyed. With threads, and at the instructions of calls (step.h). */
#include "support/check_reap.h"

#include <semaphore.h>

#include "base/lock.h"
#include "support/step.h"

enum { THREADS = 4, FORKS = 300, FEW = 80 /* where a tool is slow */ };

static void *parent;

static void setup(void) { reapCreate(&parent, NULL); }

static void teardown(void)
{
    assert_valid(parent);
    reapDestroy(&parent);
}

/* The wait status of a child that does this. */
static int in_child(int (*body)(void))
{
    pid_t pid = fork();
    if (pid == 0) {
        alarm(60);
        _exit(body());
    }
    int status;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    return status;
}

static int clear_and_destroy(void)
{
    reapFreeAll(&parent);
    bool valid = reap_is_valid(reap_behind(parent), NULL) && stats_of(parent).children == 0;
    void *children[3]; /* the first one is the parent's dead child, and others may be a depot's */
    for (int i = 0; i < 3; i++) reapCreate(&children[i], &parent);
    for (int i = 0; i < 3; i++) valid = valid && reapMalloc(&children[i], 1000);
    valid = valid && reapMalloc(&parent, 1000);
    reapDestroy(&parent);
    return !valid;
}

/* --- while others end ------------------------------------------------------------------------ */

/* Forks again and again beside threads that do something until it is over; each child does something too. */
static void fork_beside(void *(*others)(void *), int (*child)(void))
{
    start_threads(THREADS, others, NULL);
    for (unsigned n = steps_of(is_slowed() ? FEW : FORKS); n > 0; n--) ck_assert_int_eq(in_child(child), 0);
    end_threads();
}

static void linger(void *arg)
{
    (void)arg;
    sched_yield();
}

/* A tree of three levels, with functions and without. */
static void *make_and_end(void *unused)
{
    while (!is_over) {
        void *top, *child, *leaf;
        reapCreate(&top, &parent);
        for (int i = 0; i < 4; i++) {
            reapCreate(&child, &top);
            reapCreate(&leaf, &child);
            reapMalloc(&leaf, 20000);
            if (i % 2) reapOnDestroy(&leaf, linger, NULL);
            reapOnDestroy(&child, linger, NULL);
        }
        reapOnDestroy(&top, linger, NULL);
        if (leaf) reapFreeAll(&child);
        reapDestroy(&top);
    }
    return unused;
}

TEST(others_end_children)
{
    reapSetLimit(&parent, 1 << 30);
    fork_beside(make_and_end, clear_and_destroy);
}

/* --- while others allocate ------------------------------------------------------------------- */

/* In a reap of its own, which the child of the fork destroys with its parent. */
static void *allocate_and_free(void *unused)
{
    while (!is_over) {
        void *reap, *objects[64] = {NULL};
        reapCreate(&reap, &parent);
        for (unsigned i = 0; i < 2000 && !is_over; i++) {
            void **object = &objects[i % 64];
            if (i % 3) reapFree(&reap, *object), *object = NULL;
            size_t size = i * 7919 % 400;
            *object = memset(reapRealloc(&reap, *object, size), 1, size);
        }
        reapDestroy(&reap);
    }
    return unused;
}

/* Whatever they do just then, with zones around objects too. */
TEST(others_allocate) { fork_beside(allocate_and_free, clear_and_destroy); }

/* --- at each instruction --------------------------------------------------------------------- */

enum { SIBLINGS = 3, SIZE = 200, FORK_EACH = 5 /* instructions; in a list each */ };

static void *siblings[SIBLINGS], *stepped, *its_object;
static unsigned forks, first_to_go, fork_each;
static int bad_status;

/* Below the parent: two, the one that the call is about, and a third. The parent may keep a dead child. */
static void make_siblings(bool keeps_one, size_t limit)
{
    void *dead;
    reapCreate(&parent, NULL);
    reapSetLimit(&parent, limit);
    reapCreate(&dead, &parent);
    for (int i = 0; i < SIBLINGS; i++) {
        if (i == 2) reapCreate(&stepped, &parent);
        reapCreate(&siblings[i], &parent);
    }
    its_object = memset(reapMalloc(&stepped, SIZE), 1, SIZE);
    reapDestroy(&dead);
    if (!keeps_one) reapTrim(&parent, 0); /* and this thread's depot is empty */
}

/* Who has had its lock finds it so. */
static bool is_list_whole(const struct reap *reap)
{
    const struct reap *prev = NULL, *child = reap->below.first;
    unsigned n = 0;
    for (; child && n <= SIBLINGS + 1 && child->prev == prev; n++, child = child->next) prev = child;
    return !child;
}

/* One that may lie beside what the call is about, and then all. What a handle names is below the parent. */
static int destroy_one_and_all(void)
{
    if (stepped && !reapParent(&stepped)) return 3;
    if (first_to_go < SIBLINGS) {
        reapDestroy(&siblings[first_to_go]);
        if (!is_list_whole(parent)) return 2;
    }
    return clear_and_destroy();
}

static void fork_aside(void) { bad_status = in_child(destroy_one_and_all); }

static void fork_once(unsigned first)
{
    if (bad_status != 0) return;
    first_to_go = first;
    forks++;
    step_aside(fork_aside);
}

static bool is_list_locked(const struct reap *reap) { return atomic_load(&reap->below.lock) != 0; }

/* As another thread, but not where its fork would wait for this one. */
static void fork_now(void)
{
    if (lock_depth != 0) return;
    if (is_list_locked(parent) || is_list_locked(siblings[0]))
        for (unsigned i = 0; i <= SIBLINGS; i++) fork_once(i);
    else if (step_count % fork_each == 0)
        fork_once(SIBLINGS);
}

static void create(void) { reapCreate(&stepped, &parent); }
static void create_second(void) { reapCreate(&stepped, &siblings[0]); }
static void destroy(void) { reapDestroy(&stepped); }
static void adopt(void) { reapAdopt(&stepped, &siblings[0]); }
static void allocate(void) { reapMalloc(&stepped, SIZE); }
static void allocate_much(void) { reapMalloc(&stepped, 300000); }
static void shrink(void) { its_object = reapRealloc(&stepped, its_object, SIZE / 2); }
static void grow(void) { its_object = reapRealloc(&stepped, its_object, SIZE + 100); }
static void free_it(void) { reapFree(&stepped, its_object); }
static void free_from_any(void) { reapFreeAny(its_object); }
static void set_limit(void) { reapSetLimit(&parent, 1 << 20); }
static void set_limit_below(void) { reapSetLimit(&stepped, 1 << 19); }
static void lift_limit(void) { reapSetLimit(&parent, 0); }
static void be_refused(void)
{
    reapFreeAny(its_object);
    reapMalloc(&siblings[0], 1 << 20);
    reapMalloc(&stepped, SIZE);
}
static char long_name[100] = {[0 ... 98] = 'n'};
static void note(void *arg) { (void)arg; }
static void record_and_clear(void)
{
    reapSetName(&stepped, long_name);
    reapFreeAll(&stepped);
    reapOnDestroy(&stepped, note, NULL);
    reapFreeAll(&stepped);
}

/* In region mode with dead blocks, in heap mode from the fourth free on, and to the end. */
static void free_and_end(void)
{
    void *objects[8];
    reap_builder text = {NULL, 0, 0};
    for (int i = 0; i < 8; i++) objects[i] = reapMalloc(&stepped, 40);
    its_object = reapRealloc(&stepped, its_object, SIZE + 100);
    for (int i = 0; i < 6; i++) {
        reapFree(&stepped, objects[i]);
        reapMalloc(&stepped, i % 3 ? 40 : 100);
        if (i == 1) reapAppendf(&stepped, &text, "%300d", i);
    }
    reapFreeAll(&stepped);
    for (int i = 0; i < 2; i++) objects[i] = reapMalloc(&stepped, 40);
    reapFree(&stepped, objects[0]);
    reapDestroy(&stepped);
}

static const struct {
    const char *name;
    void (*does)(void);
    bool keeps_one;
    size_t limit; /* of the parent */
} calls[] = {{"reapCreate", create, false, 0},
             {"reapCreate of a dead child", create, true, 0},
             {"reapDestroy", destroy, false, 0},
             {"reapDestroy beside a dead child", destroy, true, 0},
             {"reapCreate of a dead one of the depot", create_second, true, 0},
             {"reapAdopt", adopt, false, 0},
             {"reapMalloc", allocate, false, 0},
             {"reapMalloc of much", allocate_much, false, 0},
             {"reapRealloc to less", shrink, false, 0},
             {"reapRealloc to more", grow, false, 0},
             {"reapFree", free_it, false, 0},
             {"frees in both modes", free_and_end, false, 0},
             {"reapOnDestroy and reapFreeAll", record_and_clear, false, 0},
             {"a first reapSetLimit", set_limit, false, 0},
             {"another reapSetLimit", set_limit, false, 1 << 19},
             {"reapSetLimit below a limit", set_limit_below, false, 1 << 20},
             {"the end of a limit", lift_limit, false, 1 << 20},
             {"reapFreeAny below a limit", free_from_any, false, 1 << 20},
             {"a limit that refuses", be_refused, false, 1 << 20}};
enum { CALLS = sizeof calls / sizeof *calls };

static const struct {
    const char *options;
    bool has_threads; /* or takes locks without atomic instructions */
} ways[] = {{NULL, false}, {NULL, true}, {"harden=1", true}};
enum { WAYS = sizeof ways / sizeof *ways };

static void *nothing(void *unused) { return unused; }

/* Whenever another thread forks, the child can clear and destroy what there is. */
TEST(a_fork_at_any_instruction, .times = WAYS, .modes = ORDINARY, .apart = true)
{
    use_path(PATHS - 1, ways[_i].options);
    if (ways[_i].has_threads) in_threads(1, nothing, NULL);
    needs(step_start(), "no single steps here");
    for (unsigned i = 0; i < CALLS; i++) {
        make_siblings(calls[i].keeps_one, calls[i].limit);
        forks = 0;
        bool few = calls[i].does == create || calls[i].does == record_and_clear; /* stores that it is about */
        fork_each = few ? 1 : calls[i].limit ? 4 * FORK_EACH : calls[i].does == free_and_end ? 13 : FORK_EACH;
        step_look = fork_now;
        step_begin();
        calls[i].does();
        step_end();
        step_look = step_nothing;
        ck_assert_msg(bad_status == 0, "%s, fork %u, reap %u goes first: the child's status is %x",
                      calls[i].name, forks, first_to_go, (unsigned)bad_status);
        ck_assert_uint_gt(forks, 0);
        assert_valid(parent);
        reapDestroy(&parent);
    }
}

/* --- in the middle of it --------------------------------------------------------------------- */

static sem_t there, on;
static unsigned ran;

static void count(void *arg)
{
    (void)arg;
    ran++;
}

static void stand_still(void *arg)
{
    (void)arg;
    sem_post(&there);
    sem_wait(&on);
}

static void in_a_thread_that_stands(void *(*body)(void *), int (*child)(void), int expected)
{
    pthread_t thread;
    sem_init(&there, 0, 0);
    sem_init(&on, 0, 0);
    ck_assert_int_eq(pthread_create(&thread, NULL, body, NULL), 0);
    sem_wait(&there);
    ck_assert_int_eq(in_child(child), expected);
    sem_post(&on);
    pthread_join(thread, NULL);
}

/* An ordinary child, for which no fork waits. */
static void *end_slowly(void *clears)
{
    void *reap;
    (reapCreate)(&reap, &parent);
    reapOnDestroy(&reap, count, NULL);
    reapOnDestroy(&reap, stand_still, NULL);
    reapDestroy(&reap);
    return clears;
}

/* What had been called is not called again, and the rest is. */
static int ends_once(void) { return clear_and_destroy() != 0 || ran != 1; }

TEST(one_was_being_destroyed)
{
    ran = 0;
    in_a_thread_that_stands(end_slowly, ends_once, 0);
    ck_assert_uint_eq(ran, 1);
}

/* --- in reaps -------------------------------------------------------------------------------- */

static void *shared;

/* An ordinary one, since a thread that is in a shared reap may enter no other. */
static void *stand_in(void *unused)
{
    void *reap;
    (reapCreate)(&reap, &parent);
    reapEnter(&reap);
    reapEnter(&reap);
    reapEnter(&shared);
    stand_still(NULL);
    reapLeave();
    reapLeave();
    reapLeave();
    reapDestroy(&reap);
    return unused;
}

TEST(others_are_in_reaps)
{
    shared = new_shared(&parent, 0);
    in_a_thread_that_stands(stand_in, clear_and_destroy, 0);
    reapDestroy(&shared);
}

/* The forking thread is in the shared reap too, and in one of its own; so it is in the child, alone. */
static void *mine;

static int leave_and_destroy(void)
{
    reapEnter(&shared);
    reapLeave();
    reapLeave();
    reapLeave();
    return clear_and_destroy();
}

static int destroy_within(void)
{
    reapDestroy(&mine);
    return 0;
}

static int destroy_all(void)
{
    reapDestroy(&parent);
    return 0;
}

TEST(the_forking_thread_is_in_reaps)
{
    shared = new_shared(&parent, 0);
    (reapCreate)(&mine, &parent);
    reapEnter(&mine);
    reapEnter(&shared);
    in_a_thread_that_stands(stand_in, leave_and_destroy, 0);
    reapLeave();
    in_a_thread_that_stands(stand_in, destroy_within, SIGABRT);
    in_a_thread_that_stands(stand_in, destroy_all, SIGABRT);
    reapLeave();
    reapDestroy(&mine);
    reapDestroy(&shared);
}

/* --- in the midst of shared reaps ------------------------------------------------------------ */

enum { SHARED_FORKS = 40 };

static void *both[2];
static unsigned changes; /* under the second one's lock; odd in the middle of one */

/* The child of a fork finds them whole, and can go on with them. */
static int use_both(void)
{
    bool valid = changes % 2 == 0;
    for (int i = 0; i < 2; i++) {
        valid = valid && reap_is_valid(reap_behind(both[i]), NULL);
        valid = valid && reapMalloc(&both[i], 1000);
        reapFreeAll(&both[i]);
        reapDestroy(&both[i]);
    }
    void *another = new_shared(NULL, 0);
    reapDestroy(&another);
    return !valid;
}

static int one_inside_the_other(void *object, size_t size, void *other)
{
    (void)object, (void)size;
    changes++;
    reapFree(&other, reapMalloc(&other, 100));
    sched_yield();
    changes++;
    return 0;
}

/* Holds both at a time, and makes others below one. */
static void *hold_both(void *unused)
{
    for (unsigned n = 0; !is_over; n++) {
        reapFree(&both[n % 2], reapMalloc(&both[n % 2], 16 + n % 300));
        reapWalk(&both[1], one_inside_the_other, both[0]);
        if (n % 16) continue;
        void *below = new_shared(&both[0], 0);
        reapDestroy(&below);
    }
    return unused;
}

static void *fork_until_over(void *unused)
{
    while (!is_over) {
        pid_t child = fork();
        if (child == 0) _exit(0);
        if (child > 0) waitpid(child, NULL, 0);
    }
    return unused;
}

/* The second time another thread forks, too. */
TEST(a_fork_finds_them_whole, .times = 2, .modes = ORDINARY)
{
    for (int i = 0; i < 2; i++) both[i] = new_shared(NULL, 0);
    reapMalloc(&both[1], 100);
    start_threads(THREADS, hold_both, NULL);
    start_threads(_i == 1, fork_until_over, NULL);
    for (unsigned n = steps_of(SHARED_FORKS); n > 0; n--) ck_assert_int_eq(in_child(use_both), 0);
    end_threads();
    assert_valid(both[0]);
    for (int i = 0; i < 2; i++) reapDestroy(&both[i]);
}

static int use_one(void) { return reapMalloc(&both[0], 10) == NULL; }

static int fork_here(void *object, size_t size, void *arg)
{
    (void)object, (void)size, (void)arg;
    return in_child(use_one);
}

/* While it is held: by the thread that forks, with others waiting for it. */
TEST(a_fork_in_a_function, .modes = ORDINARY)
{
    both[0] = both[1] = new_shared(NULL, 0);
    for (int i = 0; i < 5; i++) reapMalloc(&both[0], 100);
    start_threads(1, hold_both, NULL);
    ck_assert_int_eq(reapWalk(&both[0], fork_here, NULL), 0);
    end_threads();
    assert_valid(both[0]);
    reapDestroy(&both[0]);
}

/* --- parts of shared reaps ------------------------------------------------------------------- */

static int destroy_parent(void)
{
    reapDestroy(&parent);
    return 0;
}

static void *make_and_end_shared(void *unused)
{
    while (!is_over) {
        void *reap = new_shared(NULL, 0);
        for (size_t i = 0; i < 4; i++) reapMalloc(&reap, 100 * i);
        reapDestroy(&reap);
    }
    return unused;
}

/* A fork enters the parts of all shared reaps, and others end some. */
TEST(others_end_parts, .modes = ORDINARY) { fork_beside(make_and_end_shared, destroy_parent); }

static void *fork_often(void *unused)
{
    for (unsigned n = steps_of(is_slowed() ? FEW : FORKS); n > 0; n--) {
        pid_t child = fork();
        if (child == 0) _exit(0);
        if (child > 0) waitpid(child, NULL, 0);
    }
    is_over = true;
    return unused;
}

/* A fork enters the parts of all shared reaps for a moment. That makes none invalid, and all are left. */
TEST(others_fork, .modes = ORDINARY)
{
    void *shared_one = new_shared(NULL, 0);
    start_threads(1, fork_often, NULL);
    while (!is_over) {
        void *object = reapMalloc(&shared_one, 100);
        assert_valid(shared_one);
        reapFree(&shared_one, object);
    }
    end_threads();
    FOR_EACH_PART(part, ((struct reap_face *)shared_one)->reap)
    ck_assert_uint_eq(reap_own_part(part)->holder, apart_on ? PART_TAKEN : 0); /* these have no parts */
    reapDestroy(&shared_one);
}

static atomic_bool stands, stands_in_part;
static atomic_uint stops; /* how often the thread was stopped: a busy machine may not let us see it stand */

static bool is_in_part(const struct reap_face *face)
{
    FOR_EACH_PART(part, face->reap) if (reap_own_part(part)->holder == reap_part_me()) return true;
    return false;
}

static void stand_for_long(int signal)
{
    (void)signal;
    stands_in_part = is_in_part(both[1]);
    stands = true;
    stops++;
    usleep(10000);
    stands_in_part = stands = false;
}

static void *come_and_go(void *unused)
{
    while (!is_over) reapFree(&both[1], reapMalloc(&both[1], 100));
    return unused;
}

static int nobody_stands_there(void) { return stands_in_part; }

static int forks_without_anybody(void *object, size_t size, void *arg)
{
    (void)object, (void)size, (void)arg;
    return in_child(nobody_stands_there);
}

/* A function of one shared reap forks, while the kernel does not run a thread that is in a part of another.
 * The fork waits for it, since such a thread waits for nobody's reap. */
TEST(a_fork_in_a_function_waits_for_parts, .modes = ORDINARY)
{
    pthread_t thread;
    unsigned stood = 0;
    needs(!apart_on, "where objects lie apart there are no parts");
    for (int i = 0; i < 2; i++) both[i] = new_shared(NULL, 0);
    reapMalloc(&both[0], 100);
    reapMalloc(&both[1], 100);
    signal(SIGUSR1, stand_for_long);
    ck_assert_int_eq(pthread_create(&thread, NULL, come_and_go, NULL), 0);
    for (unsigned i = 0; i < 200 && stood < 5; i++) {
        while (stands) usleep(1000);
        usleep(300); /* the thread goes on */
        unsigned before = stops;
        pthread_kill(thread, SIGUSR1);
        while (stops == before) sched_yield();
        if (!stands_in_part) continue;
        stood++;
        ck_assert_int_eq(reapWalk(&both[0], forks_without_anybody, NULL), 0);
    }
    end_threads();
    if (stood == 0) skip_test("the thread was never stopped in a part");
    for (int i = 0; i < 2; i++) reapDestroy(&both[i]);
}

int main(void) { return run_tests((struct suite){.begin = setup, .end = teardown, .modes = ALL_MODES}); }
