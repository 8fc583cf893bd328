/* SPDX-License-Identifier: Apache-2.0 */
/* check_reap_races.c: what other threads see and do while a reap's own thread goes on: they ask for the size
 * of its objects, free and resize them, and make children. At each instruction of a call (step.h), and once
 * with threads, of which reap_remote and tests/fuzz have more. */
#include "support/check_reap.h"

#include <time.h>

#include "hoard/apart.h"
#include "reap/reap_stats.h"
#include "reap/reap_tree.h"
#include "reap/remote_free.h"
#include "region/reap_chunk.h"
#include "support/step.h"

/* A look comes after each instruction, of which a debug build has many more: what is done at each of them is
 * done there at every STRIDE-th. */
#ifdef REAP_DEBUG
#define FEW_STEPS "walk_steps=0"
enum { STRIDE = 7 };
#else
#define FEW_STEPS NULL
enum { STRIDE = 1 };
#endif

static void *reap;

/* --- at each instruction --------------------------------------------------------------------- */

enum { OBJECTS = 48, MARKS = 3, HELD_MAX = 1 << 20 };

/* What lives, oldest first, and what the call that is under way frees or resizes: `first` up to `last`. */
static struct {
    char *at;
    struct reap_chunk *chunk;
    size_t units;
} live[OBJECTS];
static unsigned count, first, last;

static const char *wrong;
static unsigned whose;

static void say(unsigned i, const char *what)
{
    if (wrong) return;
    wrong = what;
    whose = i;
}

/* As another thread. What lives is seen to, with its size; or something is being changed behind it. */
static void look_at_sizes_aside(void)
{
    int saved = errno;
    for (unsigned i = 0; i < count; i++) {
        void *owner;
        if (i >= first && i < last) continue;
        const struct reap_chunk *chunk = live[i].chunk;
        if (!reap_is_object(chunk, live[i].at)) say(i, "no object");
        if (reapOf(live[i].at + live[i].units * 16 - 1, &owner) != 0 || owner != reap) say(i, "no owner");
        if (live[i].units == 1 && reap_remote_is_roomy(chunk, live[i].at)) say(i, "roomy");
        size_t unit = reap_unit(live[i].at);
        if (reap_block_end(chunk, unit) - unit != live[i].units) say(i, "of another size");
    }
    struct reap_stats stats;
    reap_stats_of(reap, &stats);
    if (stats.live_bytes > HELD_MAX || stats.live_objects > HELD_MAX / 16) say(0, "counted wildly");
    errno = saved;
}

/* Not within a gate: reapOf waits for who is there. */
static void look_at_sizes(void)
{
    if (lock_depth < LOCK_GATE) step_aside(look_at_sizes_aside);
}

static void note(unsigned i, void *at)
{
    ck_assert_ptr_nonnull(at);
    live[i].at = at;
    live[i].chunk = chunk_of(at, NULL);
    live[i].units = reapUsableSize(at) / 16;
    if (i == count) count++;
}

static void forget(unsigned i)
{
    for (count--; i < count; i++) live[i] = live[i + 1];
}

static size_t some_size(uint64_t *chance)
{
    return random_below(chance, 2) ? 16 : random_below(chance, 8) ? 1 + random_below(chance, 300) : 5000;
}

/* One call, looked at all the time; n objects from i on are its business. */
#define STEPPED(i, n, call)                                                                                  \
    do {                                                                                                     \
        first = (i);                                                                                         \
        last = first + (n);                                                                                  \
        step_begin();                                                                                        \
        call;                                                                                                \
        step_end();                                                                                          \
        ck_assert_msg(!wrong, "%s: object %u of %u, %zu units: %s", #call, whose, count, live[whose].units,  \
                      wrong);                                                                                \
    } while (0)

static reap_mark marks[MARKS];
static unsigned older[MARKS], depth;

static void change_marks(uint64_t *chance)
{
    if (depth < MARKS && random_below(chance, 2)) {
        older[depth] = count;
        STEPPED(0, 0, reapMark(&reap, &marks[depth]));
        depth++;
    } else if (depth > 0 && random_below(chance, 3)) {
        unsigned to = random_below(chance, depth), n = older[to];
        STEPPED(n, count - n, reapRewind(&reap, &marks[to]));
        count = n;
        depth = to + 1;
    } else if (depth > 0) {
        depth = random_below(chance, depth);
        STEPPED(0, 0, reapUnmark(&reap, &marks[depth]));
    }
}

static void change_object(uint64_t *chance)
{
    void *object = NULL;
    unsigned i = random_below(chance, 2) ? count - 1 : random_below(chance, count);
    if (random_below(chance, 4)) {
        STEPPED(i, 1, reapFree(&reap, live[i].at));
        for (unsigned k = 0; k < depth; k++) older[k] -= i < older[k];
        forget(i);
    } else {
        size_t size = some_size(chance);
        STEPPED(i, 1, object = reapRealloc(&reap, live[i].at, size));
        for (unsigned k = 0; k < depth; k++) /* what has moved is the youngest */
            if (i < older[k] && object != live[i].at) older[k]--;
        if (object == live[i].at) {
            note(i, object);
        } else {
            forget(i);
            note(count, object);
        }
    }
}

TEST(at_each_instruction, .times = 3)
{
    use_path(PATHS - 1, FEW_STEPS);
    needs(step_start(), "no single steps here");
    step_look = look_at_sizes;
    uint64_t chance = 1 + (uint64_t)_i;
    for (unsigned round = 0, rounds = shorter(24, 4); round < rounds; round++) {
        const int calls = round % 4 ? 25 : 120; /* most of 25 come to a reap in region mode */
        reapCreate(&reap, NULL);
        count = depth = 0;
        for (unsigned fill = random_below(&chance, 7000), done = 0; done < fill; done += 700)
            reapMalloc(&reap, 700);
        for (int i = 0; i < calls; i++) {
            unsigned what = random_below(&chance, 8);
            void *object = NULL;
            size_t size = some_size(&chance);
            if (count == OBJECTS || (what < 4 && count > 0)) {
                change_object(&chance);
            } else if (what < 7) {
                STEPPED(0, 0, object = reapMalloc(&reap, size));
                note(count, object);
            } else {
                change_marks(&chance);
            }
            assert_valid(reap);
        }
        reapDestroy(&reap);
    }
}

/* --- what another thread does to the list of children ------------------------------------------ */

static unsigned long looks, look_number; /* of the look at which it is done, or 0 */
static void (*act)(void);

/* Once, when nobody has the lock of the list, for which it would wait. */
static void act_once(void)
{
    const struct reap *it = reap;
    if (++looks < look_number || look_number == 0 || atomic_load(&it->below.lock) != 0) return;
    look_number = 0;
    step_aside(act);
}

static void expect_act(unsigned long at, void (*what)(void))
{
    step_look = act_once;
    act = what;
    looks = 0;
    look_number = at;
}

/* False: the call was over before. */
static bool has_acted(void)
{
    bool has = look_number == 0;
    look_number = 0;
    return has;
}

static bool was_written;

static void look_at_rest(void)
{
    if (!apart_is_intact(live[0].chunk)) was_written = true;
}

/* A fork may come between any two instructions, and its child looks at what lies behind each object. */
TEST(an_object_apart_that_shrinks)
{
    use_path(PATHS - 1, "harden=1");
    needs(step_start(), "no single steps here");
    reapCreate(&reap, NULL);
    char *object = reapMalloc(&reap, 40000);
    memset(object, 1, 40000);
    note(0, object);
    step_look = look_at_rest;
    step_begin();
    void *same = reapRealloc(&reap, object, 39990);
    step_end();
    step_look = step_nothing;
    ck_assert_ptr_eq(same, object);
    ck_assert_msg(!was_written, "the rest has no pattern when it counts as the rest");
    reapDestroy(&reap);
}

static reap_mark outer;

/* As the parent's own thread. */
static void close_outer(void) { reapUnmark(&reap, &outer); }

/* The mark is closed at each instruction of reapCreate, then another one is opened: the child is older. */
TEST(a_child_made_while_a_mark_is_closed)
{
    use_path(PATHS - 1, FEW_STEPS);
    needs(step_start(), "no single steps here");
    void *child;
    for (unsigned long at = 1;; at += shorter(STRIDE, 7)) {
        reap_mark later;
        reapCreate(&reap, NULL);
        reapCreate(&child, &reap);
        reapDestroy(&child); /* its chunk is for the next one, which then asks the backend for nothing */
        reapMark(&reap, &outer);
        expect_act(at, close_outer);
        step_begin();
        reapCreate(&child, &reap);
        step_end();
        if (!has_acted()) break;
        assert_valid(reap);
        reapMark(&reap, &later);
        reapRewind(&reap, &later);
        ck_assert_msg(stats_of(reap).children == 1, "closed at instruction %lu: the child is gone", at);
        reapDestroy(&reap);
    }
    ck_assert_uint_gt(looks, 20);
}

static void *sibling;

/* As an older child's own thread; its memory becomes something else. */
static void destroy_sibling(void)
{
    struct reap *dead = sibling;
    reapDestroy(&sibling);
    memset(dead, 0xff, sizeof *dead);
}

/* The child is destroyed at each instruction of reapRewind, which has nothing to do with it. */
TEST(a_child_that_ends_while_its_parent_goes_back)
{
    use_path(PATHS - 1, FEW_STEPS);
    needs(step_start(), "no single steps here");
    for (unsigned long at = 1;; at += shorter(STRIDE, 7)) {
        reap_mark mark;
        void *younger;
        reapCreate(&reap, NULL);
        reapCreate(&sibling, &reap);
        reapMark(&reap, &mark);
        reapCreate(&younger, &reap);
        expect_act(at, destroy_sibling);
        step_begin();
        reapRewind(&reap, &mark);
        step_end();
        bool acted = has_acted();
        ck_assert_uint_eq(stats_of(reap).children, acted ? 0 : 1);
        assert_valid(reap);
        reapDestroy(&reap);
        if (!acted) break;
    }
    ck_assert_uint_gt(looks, 20);
}

/* The child is destroyed at each instruction of reapAdopt, which puts another one in front of it. */
TEST(a_child_that_ends_while_another_comes)
{
    use_path(PATHS - 1, FEW_STEPS);
    needs(step_start(), "no single steps here");
    for (unsigned long at = 1;; at += shorter(STRIDE, 7)) {
        void *younger;
        reapCreate(&reap, NULL);
        reapCreate(&sibling, &reap);
        reapCreate(&younger, NULL);
        expect_act(at, destroy_sibling);
        step_begin();
        reapAdopt(&younger, &reap);
        step_end();
        bool acted = has_acted();
        ck_assert_uint_eq(stats_of(reap).children, acted ? 1 : 2);
        reapDestroy(&reap);
        if (!acted) break;
    }
    ck_assert_uint_gt(looks, 20);
}

/* --- what a limit looks at ---------------------------------------------------------------------- */

enum { OUR_LIMIT = 1 << 20 };
static void *ours[4], *its_reap;

/* As a sibling's thread: its limit refuses, when it has looked at this thread's reap. */
static void be_refused(void) { ck_assert_ptr_null(reapMalloc(&sibling, OUR_LIMIT + 1)); }

static void look_aside(void)
{
    if (lock_depth == 0) act_once();
}

static void free_last_of_ours(void) { reapFreeAny(ours[3]); }
static void take_ours(void) { reapMalloc(&its_reap, 500); }
static void clear_ours(void) { reapFreeAll(&its_reap); }
static void destroy_ours(void) { reapDestroy(&its_reap); }
static void rewind_ours(void) { reapRewind(&its_reap, &outer); }
static void (*const of_ours[])(void) = {free_last_of_ours, take_ours, clear_ours, destroy_ours, rewind_ours};

/* Pending objects are claimed at each instruction of what frees them: each byte is given back once. */
TEST(a_limit_that_looks_at_a_reap, .times = sizeof of_ours / sizeof *of_ours)
{
    use_path(PATHS - 1, FEW_STEPS);
    needs(step_start(), "no single steps here");
    reapCreate(&reap, NULL);
    reapCreate(&sibling, &reap);
    ck_assert_int_eq(reapSetLimit(&reap, OUR_LIMIT), 0);
    for (unsigned long at = 1;; at += shorter(3 * STRIDE, 29) + at / 16) {
        reapCreate(&its_reap, &reap);
        for (unsigned i = 0; i < 4; i++) {
            if (i == 2) reapMark(&its_reap, &outer);
            ours[i] = reapMalloc(&its_reap, 100 + 300 * (i % 2));
            if (i == 2) reapFreeAny(ours[0]);
        }
        be_refused();
        reapFreeAny(ours[1]);
        expect_act(at, be_refused);
        step_look = look_aside;
        step_begin();
        of_ours[_i]();
        step_end();
        step_look = step_nothing;
        assert_valid(reap);
        if (its_reap) assert_valid(its_reap);
        reapDestroy(&its_reap);
        assert_valid(reap);
        if (!has_acted()) break;
    }
    ck_assert_uint_gt(looks, 20);
    reapDestroy(&sibling);
    ck_assert_ptr_nonnull(reapMalloc(&reap, OUR_LIMIT));
    reapDestroy(&reap);
}

/* --- what another thread ends while this one looks ---------------------------------------------- */

static char *ended; /* memory of a shared reap that has ended */
static size_t ended_size;

static unsigned locks_of_freezing;

static void *its_handle;

/* Returns true if this thread is in the part of the shared reap, which another thread would wait for. */
static bool is_in_part(void)
{
    const struct reap_face *face = its_handle;
    return look_number != 0 && face->part.holder == reap_part_me();
}

/* While all chunks are frozen, and this thread has no other lock. */
static void act_while_frozen(void)
{
    if (lock_held() == locks_of_freezing && !is_in_part()) act_once();
    step_is_last = look_number == 0;
}

/* As another thread. The memory becomes the program's, and has zeros: a lock there would look free. */
static void end_sibling(void)
{
    struct reap_chunk *chunk = reap_first_chunk(((struct reap_face *)sibling)->reap);
    ended = (char *)chunk + REAP_HEADER;
    ended_size = chunk->size - REAP_HEADER;
    reapDestroy(&sibling);
    memset(ended, 0, ended_size);
}

static bool is_untouched(void)
{
    for (size_t i = 0; i < ended_size; i++)
        if (ended[i] != 0) return false;
    return true;
}

static int see_nothing(const struct reap_view *view, void *arg) { return (void)view, (void)arg, 0; }

static void look_at_tree(void) { ck_assert_int_eq(reapSurvey(&reap, see_nothing, NULL), 0); }

static char *its_object;

static void look_for_owner(void)
{
    void *owner;
    if (reapOf(its_object, &owner) == 0) ck_assert_ptr_eq(owner, its_handle); /* it may have ended since */
}

static void (*const looks_at[])(void) = {look_at_tree, look_for_owner};

/* A shared child ends at each instruction at which the call has no lock that keeps it alive. */
TEST(a_shared_child_that_ends_while_others_look, .times = 2)
{
    use_path(PATHS - 1, FEW_STEPS);
    needs(step_start(), "no single steps here");
    chunk_freeze();
    locks_of_freezing = lock_held();
    chunk_thaw();
    for (unsigned long at = 1;; at += 6 + STRIDE) {
        step_is_last = false;
        reapCreate(&reap, NULL);
        sibling = its_handle = new_shared(&reap, 0);
        if (_i == 1) its_object = reapMalloc(&sibling, 50);
        expect_act(at, end_sibling);
        step_look = act_while_frozen;
        step_begin();
        looks_at[_i]();
        step_end();
        step_look = step_nothing;
        bool acted = has_acted();
        ck_assert_msg(!acted || is_untouched(), "ended at look %lu: its memory was written to", at);
        reapDestroy(&reap);
        if (!acted) break;
    }
    ck_assert_uint_gt(looks, 0);
}

/* --- threads --------------------------------------------------------------------------------- */

static void *_Atomic made;

static void *make_children(void *unused)
{
    while (!is_over) {
        void *child;
        if (made) continue;
        reapCreate(&child, &reap);
        made = child;
    }
    return unused;
}

/* A child that another thread has made, and given over, is older than a mark that is opened then. */
TEST(another_thread_makes_children)
{
    reap_mark mark;
    reapCreate(&reap, NULL);
    start_threads(1, make_children, NULL);
    for (time_t end = time(NULL) + 2; time(NULL) < end;) {
        while (!made) {
            reapMark(&reap, &mark);
            reapUnmark(&reap, &mark);
        }
        reapMark(&reap, &mark);
        reapRewind(&reap, &mark);
        ck_assert_uint_eq(stats_of(reap).children, 1);
        reapUnmark(&reap, &mark);
        void *child = made;
        reapDestroy(&child);
        made = NULL;
    }
    end_threads();
    reapDestroy(&reap);
}

int main(void) { return run_tests((struct suite){0}); }
