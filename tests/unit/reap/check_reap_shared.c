/* SPDX-License-Identifier: Apache-2.0 */
/* check_reap_shared.c: reaps made with REAP_SHARED: what one thread sees of them, and several at once.
 * (tests/fuzz has shared reaps among its own; check_reap_fork has forks.) */
#include "support/check_reap.h"

#include <semaphore.h>

#include "support/step.h"

enum { THREADS = 4, STEPS = 15000, SLOTS = 256 };

/* --- as one thread sees it ------------------------------------------------------------------- */

TEST(a_handle_like_any_other)
{
    void *shared = new_shared(NULL, 0), *owner, *child, *grandchild = NULL;
    char *text = reapPrintf(&shared, "%d", 12);
    ck_assert_str_eq(text, "12");
    ck_assert_int_eq(reapOf(text, &owner), 0);
    ck_assert_ptr_eq(owner, shared);
    reapCreate(&child, &shared);
    ck_assert_ptr_eq(reapParent(&child), shared);
    grandchild = new_shared(&child, 0);
    ck_assert_ptr_eq(reapParent(&grandchild), child);
    ck_assert_int_eq(reapOf(reapMalloc(&child, 10), &owner), 0);
    ck_assert_msg(owner == child, "a child is shared only if it is made so");
    ck_assert_uint_eq(stats_of(shared).children, 1);
    reapSetName(&shared, "everybody's");
    assert_valid(shared);
    reapFreeAll(&shared);
    ck_assert_str_eq(reapName(&shared), "everybody's");
    assert_valid(shared);
    ck_assert_ptr_nonnull(reapMalloc(&shared, 100000));
    reapDestroy(&shared);
    ck_assert_ptr_null(shared);
}

TEST(in_a_buffer)
{
    static _Alignas(1024) char buffer[4096];
    void *shared;
    struct reap_options options = {.size = sizeof options, .flags = REAP_SHARED, .buffer = buffer};
    for (options.buffer_size = sizeof buffer; options.buffer; options.buffer = NULL) {
        ck_assert_int_eq(reapCreateWith(&shared, NULL, &options), 0);
        for (int round = 0; round < 3; round++) {
            while (reapMalloc(&shared, 64) && stats_of(shared).live_objects < 100) continue;
            assert_valid(shared);
            reapFreeAll(&shared);
        }
        reapDestroy(&shared);
    }
    options.flags = REAP_SHARED << 1;
    ck_assert_int_eq(reapCreateWith(&shared, NULL, &options), -1);
}

/* --- functions of the user's, which use the reap that they are called for -------------------- */

static int free_third(void *object, size_t size, void *shared)
{
    static int n;
    ck_assert_uint_eq(reapUsableSize(object), size);
    if (n++ % 3 == 0) reapFree(&shared, object);
    return 0;
}

static void at_end(void *shared) { ck_assert_ptr_nonnull(reapStrdup(&shared, "the last one")); }

static void make_room(void **reap, size_t size, void *object)
{
    (void)size;
    reapFree(reap, *(void **)object);
    *(void **)object = NULL;
}

TEST(functions_use_the_reap)
{
    void *parent, *big, *shared, *other;
    reapCreate(&parent, NULL);
    shared = new_shared(&parent, 100000);
    for (size_t i = 0; i < 300; i++) reapMalloc(&shared, i);
    ck_assert_int_eq(reapWalk(&shared, free_third, shared), 0);
    ck_assert_uint_eq(stats_of(shared).live_objects, 200);
    big = reapMalloc(&shared, 40000);
    other = new_shared(&shared, 0);
    reapOnLimit(&shared, make_room, &big);
    ck_assert_ptr_nonnull(
        reapMalloc(&other, 50000)); /* the limit above is met: another shared reap's function */
    ck_assert_ptr_null(big);
    reapOnDestroy(&shared, at_end, shared);
    reapOnDestroy(&other, at_end, other);
    assert_valid(shared);
    reapFreeAll(&shared);
    assert_valid(shared);
    reapOnDestroy(&shared, at_end, shared);
    reapDestroy(&parent);
}

/* --- entered by several ---------------------------------------------------------------------- */

static void *entered;
static sem_t is_in, may_leave;

static void *enter_and_wait(void *unused)
{
    reapEnter(&entered);
    sem_post(&is_in);
    sem_wait(&may_leave);
    reapLeave();
    return unused;
}

static void destroy_entered(void *unused)
{
    (void)unused;
    reapDestroy(&entered);
}

/* Who leaves it first leaves it for itself alone. */
TEST(one_of_two_leaves)
{
    pthread_t thread;
    entered = new_shared(NULL, 0);
    sem_init(&is_in, 0, 0);
    sem_init(&may_leave, 0, 0);
    reapEnter(&entered);
    ck_assert_int_eq(pthread_create(&thread, NULL, enter_and_wait, NULL), 0);
    sem_wait(&is_in);
    struct reap *shared = ((struct reap_face *)entered)->reap;
    ck_assert_uint_eq(shared->entered, 2);
    reapLeave();
    ck_assert_uint_eq(shared->entered, 1);
    ck_assert(shared->flags & REAP_ENTERED);
    sem_post(&may_leave);
    pthread_join(thread, NULL);
    ck_assert(!(shared->flags & REAP_ENTERED));
    reapEnter(&entered);
    assert_misuse(destroy_entered, entered, "reapDestroy", "reap is entered");
    reapLeave();
    reapDestroy(&entered);
}

/* --- several threads ------------------------------------------------------------------------- */

/* An object says how long it is, and all its bytes are that. */
static _Atomic(unsigned char *) slots[SLOTS];
static _Atomic unsigned numbers;

/* NULL where there is no object. */
static unsigned char *fill_if(unsigned char *object, size_t size)
{
    if (!object) return NULL;
    memset(object, (int)(size & 0xff), size);
    memcpy(object, &size, sizeof size);
    return object;
}

static unsigned char *fill(unsigned char *object, size_t size)
{
    ck_assert_ptr_nonnull(object);
    return fill_if(object, size);
}

static size_t size_of(const unsigned char *object)
{
    size_t size;
    memcpy(&size, object, sizeof size);
    return size;
}

static bool is_filled(const unsigned char *object)
{
    size_t size = size_of(object);
    if (reapUsableSize(object) != (size + 15) / 16 * 16) return false;
    for (size_t i = sizeof size; i < size; i += 61)
        if (object[i] != (size & 0xff)) return false;
    return size <= sizeof size || object[size - 1] == (size & 0xff);
}

static size_t check_filled(const unsigned char *object)
{
    ck_assert(is_filled(object));
    return size_of(object);
}

static unsigned char *make(void **reap, unsigned random)
{
    size_t size = 8 + (random % 97 == 0 ? random % 100000 : random % 500);
    switch (random >> 8 & 3) {
    case 0: return fill(reapAlignedAlloc(reap, 64, size), size);
    case 1: return fill(reapCalloc(reap, 1, size), size);
    default: return fill(reapMalloc(reap, size), size);
    }
}

static unsigned char *remake(void **reap, unsigned char *object, unsigned random)
{
    size_t size = 8 + random % 900, before = check_filled(object), kept = size < before ? size : before;
    object = reapRealloc(reap, object, size);
    ck_assert_ptr_nonnull(object);
    ck_assert_int_eq(memcmp(object, &before, sizeof before), 0);
    ck_assert_uint_eq(object[kept - 1], kept > sizeof before ? before & 0xff : 0);
    return fill(object, size);
}

static void nothing(void *arg) { (void)arg; }

static int count_one(void *object, size_t size, void *count)
{
    (void)object, (void)size;
    ++*(size_t *)count;
    return 0;
}

/* Children of it, one of them shared too. */
static void family(void **reap, unsigned step)
{
    void *child, *owner, *shared = step % 2 ? new_shared(reap, 0) : NULL;
    reapCreate(&child, reap);
    ck_assert_int_eq(reapOf(reapMalloc(&child, 100), &owner), 0);
    ck_assert_ptr_eq(reapParent(&child), *reap);
    if (shared) ck_assert_int_eq(reapAdopt(&child, &shared), 0);
    reapDestroy(step % 2 ? &shared : &child);
}

static void look(void **reap, unsigned step)
{
    size_t count = 0;
    struct reap_stats stats;
    ck_assert_int_eq(reapStats(reap, &stats), 0);
    ck_assert_uint_le(stats.live_objects, SLOTS + 2 * THREADS);
    ck_assert_int_eq(reapWalk(reap, count_one, &count), 0);
    ck_assert_uint_le(count, SLOTS + 2 * THREADS);
    ck_assert_int_eq(reapSetName(reap, step % 3 ? "one" : "another"), 0);
    ck_assert_int_eq(reapOnDestroy(reap, nothing, &count), 0);
    ck_assert_int_eq(reapCancelOnDestroy(reap, nothing, &count), 0);
    family(reap, step / 64);
}

static void *play(void *shared)
{
    unsigned random = atomic_fetch_add(&numbers, 1) * 7919 + 1, n = steps_of(STEPS);
    for (unsigned step = 0; step < n; step++) {
        random = random * 1103515245 + 12345;
        unsigned char *object = step % 3 ? make(&shared, random >> 8) : NULL, *old;
        old = atomic_exchange(&slots[random >> 24 & (SLOTS - 1)], object);
        if (old && step % 5 == 0) old = remake(&shared, old, random >> 4);
        if (old) check_filled(old);
        reapFree(&shared, old);
        if (step % 64 == 0) look(&shared, step);
    }
    return NULL;
}

static void empty_slots(void *shared)
{
    size_t objects = 0, bytes = 0;
    for (unsigned i = 0; i < SLOTS; i++) {
        if (!slots[i]) continue;
        objects++;
        bytes += (check_filled(slots[i]) + 15) / 16 * 16;
    }
    ck_assert_uint_eq(stats_of(shared).live_objects, objects);
    ck_assert_uint_eq(stats_of(shared).live_bytes, bytes);
    assert_valid(shared);
    for (unsigned i = 0; i < SLOTS; i++) reapFree(&shared, atomic_exchange(&slots[i], NULL));
    assert_valid(shared);
    ck_assert_uint_eq(stats_of(shared).live_objects, 0);
}

/* Below a limit of the parent's, and with one of its own, both larger than what the load needs. */
TEST(threads_below_a_limit)
{
    void *parent, *shared;
    reapCreate(&parent, NULL);
    reapSetLimit(&parent, 100 << 20);
    shared = new_shared(&parent, 90 << 20);
    in_threads(THREADS, play, shared);
    assert_valid(parent);
    empty_slots(shared);
    assert_valid(parent);
    reapDestroy(&parent);
}

static _Atomic size_t got;

static void *take_all(void *shared)
{
    while (reapMalloc(&shared, 100)) atomic_fetch_add(&got, 112);
    return NULL;
}

TEST(threads_meet_a_limit)
{
    void *parent, *shared;
    reapCreate(&parent, NULL);
    reapSetLimit(&parent, 1000000);
    shared = new_shared(&parent, 0);
    got = 0;
    in_threads(THREADS, take_all, shared);
    ck_assert_uint_eq(got, 1000000 / 112 * 112);
    ck_assert_uint_eq(stats_of(shared).live_bytes, got);
    assert_valid(parent);
    reapDestroy(&parent);
}

static void *top, *middle, *below;
static unsigned held; /* how often the reap below came to be held */
static bool was_held;

static void look_whether_held(void)
{
    bool is_held = ((struct reap_face *)below)->owner != NULL;
    if (is_held && !was_held) held++;
    was_held = is_held;
}

static void set_limit(void) { reapSetLimit(&top, 1 << 20); }
static void set_another(void) { reapSetLimit(&top, 2 << 20); }
static void adopt(void) { reapAdopt(&middle, &top); }
static void set_none(void) { reapSetLimit(&top, 0); }

/* Any thread may call free() while a limit comes, changes or goes. So a shared reap below is held all the
 * time: else the bytes that live are others than those that were counted. */
TEST(held_while_a_limit_is_set, .times = 4)
{
    void (*const calls[])(void) = {set_limit, adopt, set_another, set_none};
    use_path(PATHS - 1, NULL);
    needs(step_start(), "no single steps here");
    reapCreate(&top, NULL);
    reapCreate(&middle, _i == 1 ? NULL : &top);
    below = new_shared(&middle, 0);
    reapMalloc(&below, 100);
    if (_i > 0) set_limit();
    held = 0;
    step_look = look_whether_held;
    step_begin();
    calls[_i]();
    step_end();
    step_look = step_nothing;
    ck_assert_uint_eq(held, 1);
    assert_valid(top);
    reapDestroy(&top);
}

static void measure(void *object) { reapUsableSize(object); }

/* What another part has freed is pending. To measure it takes the parts, and then its chunk is gone. */
TEST(a_large_object_that_was_sent)
{
    use_path(1, NULL); /* a part for each CPU */
    needs_cpus(2);
    needs_rseq();
    pin_to(0);
    void *shared = new_shared(NULL, 0);
    if (apart_on) return; /* it has no parts */
    reapMalloc(&shared, 100);
    void *large = reapMalloc(&shared, 100000);
    pin_to(1);
    reapMalloc(&shared, 100);
    reapFree(&shared, large);
    struct outcome outcome = run_child(measure, large);
    ck_assert_msg(strstr(outcome.text, "not a reap's object") != NULL, "%s", outcome.text);
    reapDestroy(&shared);
}

/* --- two reaps at once ----------------------------------------------------------------------- */

struct pair {
    void *reaps[2];
};

/* Half of the threads go one way, half the other. */
static void *move_to_and_fro(void *arg)
{
    struct pair *pair = arg;
    unsigned here = atomic_fetch_add(&numbers, 1) & 1, n = steps_of(STEPS);
    void *object = fill(reapMalloc(&pair->reaps[here], 100), 100), *owner;
    for (unsigned i = 0; i < n; i++, here = !here) {
        object = reapMove(object, &pair->reaps[here], &pair->reaps[!here]);
        ck_assert_int_eq(reapOf(object, &owner), 0);
        ck_assert_ptr_eq(owner, pair->reaps[!here]);
    }
    check_filled(object);
    reapFree(&pair->reaps[here], object);
    return NULL;
}

TEST(objects_go_both_ways)
{
    struct pair pair = {{new_shared(NULL, 0), new_shared(NULL, 0)}};
    in_threads(THREADS, move_to_and_fro, &pair);
    for (int i = 0; i < 2; i++) {
        assert_valid(pair.reaps[i]);
        ck_assert_uint_eq(stats_of(pair.reaps[i]).live_objects, 0);
        reapDestroy(&pair.reaps[i]);
    }
}

/* --- forks ------------------------------------------------------------------------------------ */

/* Most of the time a thread is in a part. It asserts nothing: a child would find Check's own lock held. */
static void *come_and_go(void *shared)
{
    unsigned char *mine[16] = {NULL};
    for (unsigned step = 0; !is_over; step++) {
        unsigned char **slot = &mine[step * 7 % 16], *others;
        reapFree(&shared, *slot);
        *slot = fill_if(reapMalloc(&shared, 8 + step % 300), 8 + step % 300);
        others = atomic_exchange(&slots[step % SLOTS], fill_if(reapMalloc(&shared, 40), 40));
        if (!*slot || (others && !is_filled(others))) abort();
        reapFree(&shared, others);
    }
    for (unsigned i = 0; i < 16; i++) reapFree(&shared, mine[i]);
    return NULL;
}

/* The child has none of the threads, and the reap is whole: no part is entered, and all go on. */
static void use_in_child(void *shared)
{
    struct reap_stats stats;
    size_t count = 0;
    if (!reap_is_valid(reap_behind(shared), NULL)) _exit(1);
    for (unsigned i = 0; i < SLOTS; i++) {
        unsigned char *object = atomic_exchange(&slots[i], NULL);
        if (object && !is_filled(object)) _exit(4);
        reapFree(&shared, object);
        if (!reapMalloc(&shared, i)) _exit(2);
    }
    reapWalk(&shared, count_one, &count);
    if (reapStats(&shared, &stats) != 0 || stats.live_objects != count || count < SLOTS) _exit(3);
    reapFreeAll(&shared);
    reapDestroy(&shared);
    _exit(0);
}

TEST(forks_find_no_thread_in_a_part)
{
    void *shared = new_shared(NULL, 0);
    start_threads(THREADS, come_and_go, shared);
    for (unsigned i = 0; i < shorter(100, 40); i++) {
        pid_t pid = fork();
        if (pid == 0) use_in_child(shared);
        int status;
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        ck_assert_msg(status == 0, "a child ends with %x", status);
    }
    end_threads();
    empty_slots(shared);
    reapDestroy(&shared);
}

/* --- limits of a tree that threads use --------------------------------------------------------- */

enum { BELOW = 4 };
static void *members[BELOW];

/* Holds two reaps of the tree at once, in the order of their addresses; makes shared children and ends them;
 * and moves a whole part of the tree. */
static void *use_the_tree(void *arg)
{
    unsigned n = (unsigned)(uintptr_t)arg;
    void *mine = new_shared(&members[n], 0);
    for (unsigned i = 0; !is_over; i++) {
        void *passing = new_shared(i % 2 ? &top : &members[i % BELOW], 0);
        void *object = reapMalloc(&members[i % BELOW], 100);
        if (object) object = reapMove(object, &members[i % BELOW], &top);
        if (object) reapFreeAny(object);
        reapFree(&mine, reapMalloc(&mine, 50));
        if (passing) reapMalloc(&passing, 2000);
        reapAdopt(&mine, i % 3 ? &members[(n + i) % BELOW] : NULL);
        reapDestroy(&passing);
    }
    return NULL;
}

/* Any thread may set a limit at any time, as long as all reaps of the tree are shared. */
TEST(limits_of_a_tree_that_threads_use)
{
    top = new_shared(NULL, 0);
    for (int i = 0; i < BELOW; i++) { /* the top has the greatest address: who takes two takes it last */
        members[i] = new_shared(NULL, 0);
        if (members[i] < top) continue;
        void *greater = members[i];
        members[i] = top;
        top = greater;
    }
    for (int i = 0; i < BELOW; i++) ck_assert_int_eq(reapAdopt(&members[i], &top), 0);
    for (uintptr_t i = 0; i < 2; i++) start_threads(1, use_the_tree, (void *)i);
    for (unsigned i = 0; i < shorter(3000, 400); i++) {
        ck_assert_int_eq(reapSetLimit(&top, i % 4 == 3 ? 0 : 10000000 + i), 0);
        ck_assert_int_eq(reapSetLimit(&members[i % BELOW], i % 2 ? 0 : 5000000), 0);
    }
    end_threads();
    assert_valid(top);
    reapDestroy(&top);
}

int main(void) { return run_tests((struct suite){0}); }
