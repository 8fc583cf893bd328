/* SPDX-License-Identifier: Apache-2.0 */
/* check_arena.c: slots, and the map of the address space. (Mappings and large objects: check_large.) */
#include "support/check_backend.h"

#include "arena/arena_table.h"
#include "arena/reclaim.h"
#include "base/options.h"
#include "os/pages.h"

#include <pthread.h>

/* --- slots against a model ------------------------------------------------------------------- */

enum { RUNS = 160, STEPS = 6000 };

struct run {
    struct superblock *first; /* NULL: none */
    unsigned n;
    uint64_t tag;
};

static struct run runs[RUNS];

static uint64_t *page_of(const struct run *run, unsigned page)
{
    return (uint64_t *)(slot_start(run->first) + page * (size_t)PAGE);
}

enum { PAGES_PER_SLOT = SUPERBLOCK / PAGE };

static void tag_slots(const struct run *run, unsigned from)
{
    for (unsigned p = from * PAGES_PER_SLOT; p < run->n * PAGES_PER_SLOT; p++)
        *page_of(run, p) = run->tag ^ p;
}

static bool has_tags(const struct run *run)
{
    unsigned wrong = 0;
    for (unsigned p = 0; p < run->n * PAGES_PER_SLOT; p++) wrong += *page_of(run, p) != (run->tag ^ p);
    return wrong == 0;
}

static bool reads_zero(const struct run *run)
{
    unsigned wrong = 0;
    for (unsigned p = 0; p < run->n * PAGES_PER_SLOT; p++) wrong += *page_of(run, p) != 0;
    return wrong == 0;
}

static void assert_found(const struct run *run, uint64_t *random)
{
    char *start = slot_start(run->first);
    struct arena *arena = pagemap_find(start);
    ck_assert_ptr_nonnull(arena);
    ck_assert_ptr_eq(arena_slot(arena, start), run->first);
    ck_assert_uint_eq(arena_span(run->first), run->n);
    for (unsigned i = 0; i < 4; i++) {
        char *inside = start + random_next(random) % ((size_t)run->n * SUPERBLOCK);
        struct arena *its = pagemap_find(inside);
        ck_assert_ptr_nonnull(its);
        ck_assert_ptr_eq(its->base, (char *)align_down((uintptr_t)inside, ARENA));
        ck_assert_ptr_eq(arena_head(its, inside), run->first);
    }
}

/* From 1 slot to ARENA_SPAN_MAX, which is several arenas, mostly few. */
static unsigned random_slots(uint64_t *random)
{
    unsigned i = random_below(random, 40);
    unsigned whole = ARENA_SPAN_MAX / SUPERBLOCK;
    unsigned most = i < 24 ? 3 : i < 36 ? ARENA_SLOTS : i < 39 ? 3 * ARENA_SLOTS : whole;
    return 1 + random_below(random, most);
}

static void take(struct run *run, uint64_t *random)
{
    unsigned n = random_slots(random);
    unsigned alignment = random_below(random, 3) != 0 ? 1 : 1u << random_below(random, 7);
    enum superblock_kind kind = random_below(random, 2) ? SLOT_SPAN : SLOT_SPAN_CHUNK;
    bool clean = false;
    run->first = arena_take_span(n, alignment, kind, ARENA_SPAN, &clean);
    ck_assert_ptr_nonnull(run->first);
    run->n = n;
    run->tag = random_next(random) << 12 | 1;
    ck_assert_uint_eq((uintptr_t)slot_start(run->first) % ((size_t)alignment * SUPERBLOCK), 0);
    ck_assert_uint_eq(run->first->kind, kind);
    ck_assert_uint_eq(run->first->inverse, 0);
    if (clean) ck_assert(reads_zero(run));
    tag_slots(run, 0);
}

static void give(struct run *run)
{
    ck_assert(has_tags(run));
    char *start = slot_start(run->first);
    arena_give_span(run->first);
    for (unsigned i = 0; i < run->n; i++, start += SUPERBLOCK) {
        struct arena *arena = pagemap_find(start);
        if (arena != NULL) ck_assert_uint_eq(arena_head(arena, start)->kind, SLOT_FREE);
    }
    run->first = NULL;
}

static void resize(struct run *run, uint64_t *random)
{
    unsigned before = run->n;
    int most = random_below(random, 8) != 0 ? 3 : 2 * ARENA_SLOTS;
    int more = (int)random_below(random, 2 * (unsigned)most) - most;
    if (more <= -(int)before) return;
    bool done = arena_resize(run->first, before, more);
    if (more <= 0) ck_assert(done);
    if (done) run->n = before + (unsigned)more;
    ck_assert_uint_eq(arena_span(run->first), run->n);
    if (run->n > before) tag_slots(run, before);
    ck_assert(has_tags(run));
}

/* Every used slot is a run's, what is held is what is used or dirty, and no slot is both. */
static void assert_accounts(void)
{
    size_t used = 0, held = 0, runs_slots = 0;
    for (struct arena *arena = arena_first(); arena != NULL; arena = arena->next) {
        if (arena->base == NULL) continue;
        ck_assert_uint_eq(arena->used & arena->dirty, 0);
        used += (size_t)__builtin_popcountll(arena->used);
        held += (size_t)__builtin_popcountll(arena->used | arena->dirty);
    }
    for (unsigned i = 0; i < RUNS; i++) runs_slots += runs[i].first != NULL ? runs[i].n : 0;
    ck_assert_uint_eq(used, runs_slots);
    ck_assert_uint_eq(arena_held().now, held * SUPERBLOCK);
    ck_assert_uint_ge(arena_held().peak, arena_held().now);
}

static void purge_and_look(void)
{
    size_t before = arena_held().now, bytes = arena_purge(0), used = 0;
    for (unsigned i = 0; i < RUNS; i++) used += runs[i].first != NULL ? runs[i].n : 0;
    ck_assert_uint_eq(arena_held().now, used * SUPERBLOCK);
    ck_assert_uint_eq(bytes, before - used * SUPERBLOCK);
}

TEST(runs_of_slots_agree_with_a_model)
{
    uint64_t random = random_seed();
    for (unsigned step = 0, steps = steps_of(STEPS); step < steps; step++) {
        struct run *run = &runs[random_below(&random, RUNS)];
        unsigned what = random_below(&random, 100);
        if (what == 0)
            purge_and_look();
        else if (run->first == NULL)
            take(run, &random);
        else if (what < 30)
            resize(run, &random);
        else
            give(run);
        if (run->first != NULL) assert_found(run, &random);
        if (step % 16 == 0) assert_accounts();
    }
    for (unsigned i = 0; i < RUNS; i++)
        if (runs[i].first != NULL) give(&runs[i]);
    purge_and_look();
    ck_assert_uint_eq(arena_held().now, 0);
    for (struct arena *arena = arena_first(); arena != NULL; arena = arena->next)
        ck_assert_ptr_null(arena->base);
}

TEST(dirty_slots_serve_before_clean_ones)
{
    bool clean;
    struct superblock *a = arena_take_span(3, 1, SLOT_SPAN, ARENA_SPAN, &clean);
    struct superblock *b = arena_take_span(1, 1, SLOT_SPAN, ARENA_SPAN, &clean);
    ck_assert(clean);
    memset(slot_start(a), 1, 3 * SUPERBLOCK);
    arena_give_span(a);
    ck_assert_ptr_eq(arena_take_span(3, 1, SLOT_SPAN, ARENA_SPAN, &clean), a);
    ck_assert(!clean);
    arena_give_span(a);
    arena_give_span(b);
    size_t held = arena_held().now;
    ck_assert_ptr_nonnull(arena_take_span(4, 4, SLOT_SPAN, ARENA_SPAN, &clean));
    ck_assert_uint_eq(arena_held().now, held);
}

/* Gaps of 8 dirty slots each, between objects, and one of 6: a large object of 6 takes this. One of 20 that
 * lies half in memory is better than one without; it goes on from one arena to the next. */
TEST(large_objects_take_the_place_with_most_memory)
{
    enum { ALL = 3 * ARENA_SLOTS };
    static struct superblock *all[ALL];
    bool clean;
    /* so that three arenas adjoin */
    struct superblock *whole = arena_take_span(ALL, 1, SLOT_SPAN, ARENA_SPAN, &clean);
    char *base = slot_start(whole);
    arena_give_span(whole); /* its slots are dirty: they serve before those of further arenas */
    for (unsigned i = 0; i < ALL; i++)
        ck_assert_ptr_nonnull(all[i] = arena_take_span(1, 1, SLOT_SPAN, ARENA_SPAN, &clean));
    struct superblock *slots[ALL];
    for (unsigned i = 0; i < ALL; i++) slots[(size_t)(slot_start(all[i]) - base) / SUPERBLOCK] = all[i];
    for (unsigned i = 8; i < 16; i++) arena_give_span(slots[i]);
    for (unsigned i = 24; i < 30; i++) arena_give_span(slots[i]);
    for (unsigned i = 40; i < 48; i++) arena_give_span(slots[i]);
    struct superblock *six = arena_take_span(6, 1, SLOT_SPAN, ARENA_SPAN, &clean);
    ck_assert_ptr_eq(slot_start(six), base + 24 * SUPERBLOCK);
    ck_assert(!clean);
    for (unsigned i = 54; i < 74; i++) arena_give_span(slots[i]);
    size_t held = arena_held().now;
    struct superblock *over = arena_take_span(20, 1, SLOT_SPAN, ARENA_SPAN, &clean);
    ck_assert_ptr_eq(slot_start(over), base + 54 * SUPERBLOCK);
    ck_assert_uint_eq(arena_held().now, held);
    char *inside = base + 70 * SUPERBLOCK + 5;
    ck_assert_ptr_eq(arena_head(pagemap_find(inside), inside), over);
    arena_give_span(over);
    arena_purge(0);
    over = arena_take_span(20, 1, SLOT_SPAN, ARENA_SPAN, &clean);
    ck_assert(clean && reads_zero(&(struct run){over, 20, 0}));
}

/* An object that grows lies where it can, and takes what is free behind it, also in the next arena. */
TEST(an_object_that_grows_has_room_behind)
{
    bool clean;
    struct superblock *whole = arena_take_span(2 * ARENA_SLOTS, 1, SLOT_SPAN, ARENA_SPAN, &clean);
    char *base = slot_start(whole);
    arena_give_span(whole);
    struct superblock *first = arena_take_span(10, 1, SLOT_SPAN, ARENA_SPAN, &clean);
    struct superblock *gap = arena_take_span(6, 1, SLOT_SPAN, ARENA_SPAN, &clean);
    struct superblock *second = arena_take_span(4, 1, SLOT_SPAN, ARENA_SPAN, &clean);
    ck_assert_ptr_eq(slot_start(second), base + 16 * SUPERBLOCK);
    arena_give_span(gap);
    struct superblock *grows = arena_take_span(5, 1, SLOT_SPAN, ARENA_GROWS, &clean);
    ck_assert_ptr_eq(slot_start(grows), base + 20 * SUPERBLOCK);
    ck_assert_ptr_eq(slot_start(arena_take_span(5, 1, SLOT_SPAN, ARENA_SPAN, &clean)),
                     base + 10 * SUPERBLOCK);
    ck_assert(arena_resize(grows, 5, 100));
    ck_assert_uint_eq(arena_span(grows), 105);
    char *inside = base + 120 * SUPERBLOCK;
    ck_assert_ptr_eq(arena_head(pagemap_find(inside), inside), grows);
    ck_assert(arena_resize(grows, 105, -60));
    ck_assert_ptr_eq(arena_head(pagemap_find(inside), inside), arena_slot(pagemap_find(inside), inside));
    ck_assert(!arena_resize(first, 10, 1));
    ck_assert_uint_eq(arena_span(first), 10);
}

TEST(what_was_freed_last_serves_first)
{
    enum { ALL = 4 * ARENA_SLOTS };
    struct superblock *all[ALL];
    bool clean;
    for (unsigned i = 0; i < ALL; i++) all[i] = arena_take_span(1, 1, SLOT_SPAN, ARENA_SPAN, &clean);
    for (unsigned i = 0; i < ALL; i += ARENA_SLOTS / 2) arena_give_span(all[i]);
    for (unsigned i = 0; i < ALL; i += ARENA_SLOTS) {
        arena_give_span(all[i + 1]);
        ck_assert_ptr_eq(pagemap_find(slot_start(arena_take_span(1, 1, SLOT_SPAN, ARENA_SPAN, &clean))),
                         pagemap_find(slot_start(all[i + 1])));
    }
}

static void *purge_all(void *arg)
{
    (void)arg;
    arena_purge(0);
    return NULL;
}

/* What a purge has claimed when another thread forks is nobody's in the child. So what waits, as each does
 * over a fork, has claimed nothing: no dirty slots, no arena without used ones. */
TEST(a_purge_that_waits_has_claimed_nothing, .times = 2)
{
    enum { DIRTY, UNUSED };
    bool clean;
    pthread_t thread;
    struct superblock *first = arena_take_span(3, 1, SLOT_SPAN, ARENA_SPAN, &clean);
    struct arena *arena = pagemap_find(slot_start(first));
    arena_give_span(first);
    if (_i == UNUSED) usleep(20000);
    if (_i == UNUSED) ck_assert_uint_eq(arena_purge(1), 3 * SUPERBLOCK);
    arena_freeze();
    ck_assert_int_eq(pthread_create(&thread, NULL, purge_all, NULL), 0);
    while (arenas.gate.closed != 2) usleep(1000); /* it waits */
    ck_assert_uint_eq(arena->used, 0);
    ck_assert_uint_eq(arena->dirty, _i == DIRTY ? 7 : 0);
    arena_thaw();
    pthread_join(thread, NULL);
    ck_assert_uint_eq(arena_held().now, 0);
}

TEST(slots_that_are_not_old_enough_stay)
{
    bool clean;
    struct superblock *a = arena_take_span(5, 1, SLOT_SPAN, ARENA_SPAN, &clean);
    arena_give_span(a);
    ck_assert_uint_eq(arena_purge(3600000), 0);
    ck_assert_uint_eq(arena_held().now, 5 * SUPERBLOCK);
    ck_assert_uint_eq(arena_purge(0), 5 * SUPERBLOCK);
    ck_assert_uint_eq(arena_held().now, 0);
    ck_assert_uint_eq(arena_held().peak, 5 * SUPERBLOCK);
}

static struct superblock *use(unsigned n)
{
    bool clean;
    struct superblock *span = arena_take_span(n, 1, SLOT_SPAN, ARENA_SPAN, &clean);
    ck_assert_ptr_nonnull(span);
    return span;
}

/* But the latest slot of an arena counts. */
TEST(slots_that_have_been_idle_are_so_much_older)
{
    struct superblock *idle = use(1), *late = use(1);
    arena_note_idle_for(60000);
    arena_give_span(idle);
    ck_assert_uint_eq(arena_purge(61000), 0);
    ck_assert_uint_eq(arena_purge(60000), SUPERBLOCK);
    idle = use(1);
    arena_note_idle_for(0);
    arena_give_span(late);
    arena_note_idle_for(60000);
    arena_give_span(idle);
    ck_assert_uint_eq(arena_purge(60000), 0);
}

TEST(purges_come_by_themselves_when_due)
{
    options.purge_ms = 20;
    bool clean;
    struct superblock *old = arena_take_span(8, 1, SLOT_SPAN, ARENA_SPAN, &clean);
    struct superblock *keep = arena_take_span(1, 1, SLOT_SPAN, ARENA_SPAN, &clean);
    struct superblock *more = arena_take_span(1, 1, SLOT_SPAN, ARENA_SPAN, &clean);
    arena_give_span(old);
    uint64_t start = pages_clock();
    while (arena_held().now > 2 * SUPERBLOCK && pages_clock() < start + 5000)
        if (pages_clock() > start + 40) arena_purge_if_due();
    ck_assert_uint_eq(arena_held().now, 2 * SUPERBLOCK);
    arena_give_span(keep);
    arena_give_span(more);
}

/* --- what stays at a fall -------------------------------------------------------------------------- */

/* A free that a slow path follows. Returns the slots held then. */
static size_t fall(struct superblock *span)
{
    arena_give_span(span);
    arena_purge_after_free();
    return arena_held().now / SUPERBLOCK;
}

enum { MANY = 160, FEW = 96, LATE = 256 }; /* slots: each more than 4 MiB */

/* Nothing has been wanted again before the first fall. None of this is old enough to go back by its age. */
static void fall_first(void)
{
    options.purge_ms = 1000;
    arena_purge_if_due(); /* the first call purges */
    ck_assert_uint_eq(fall(use(MANY)), 0);
}

TEST(what_is_wanted_again_stays)
{
    fall_first();
    for (unsigned i = 0; i < 3; i++) ck_assert_uint_eq(fall(use(MANY)), MANY);
    ck_assert_uint_eq(fall(use(LATE)), LATE);
}

/* The first step leaves less unused than was wanted again, and no step begins anew. */
TEST(a_fall_in_steps_is_one)
{
    fall_first();
    struct superblock *large = use(MANY), *small = use(FEW / 4);
    ck_assert_uint_eq(fall(large), MANY + FEW / 4);
    ck_assert_uint_eq(fall(small), MANY + FEW / 4);
}

/* The larger object does not fit into the gap before the small one, so more is held than was in use. */
TEST(what_fits_into_no_gap_is_wanted_too)
{
    enum { LARGE = 96, SMALL = 32, ROOM = 2 * (LARGE + SMALL) };
    fall_first();
    for (unsigned i = 0; i < 3; i++) {
        struct superblock *first = use(LARGE), *between = use(SMALL);
        arena_give_span(first);
        struct superblock *larger = use(LARGE + SMALL);
        ck_assert_uint_eq(arena_held().now, ROOM * (size_t)SUPERBLOCK);
        arena_give_span(between);
        ck_assert_uint_eq(fall(larger), ROOM);
    }
}

/* Slots that were not wanted within purge_ms after the fall before. */
static struct superblock *use_late(unsigned n)
{
    options.purge_ms = 1;
    usleep(20000);
    struct superblock *late = use(n);
    options.purge_ms = 1000; /* so that age does not matter */
    return late;
}

static bool nothing_else(void) { return false; }

static void *wait_for_unused(void *unused)
{
    arena_wait_for_unused(nothing_else);
    return unused;
}

/* What falls is for the thread that purges. In a child of fork there is none. */
TEST(a_thread_that_purges_takes_the_place_of_falls)
{
    pthread_t thread;
    fall_first();
    options.purge_thread = PURGE_THREAD_AUTO;
    ck_assert_int_eq(pthread_create(&thread, NULL, wait_for_unused, NULL), 0);
    while (!arenas.has_purger) usleep(1000);
    ck_assert_uint_eq(fall(use_late(LATE)), LATE);
    pthread_join(thread, NULL);
    ck_assert_uint_eq(fall(use_late(LATE)), LATE);
    arena_fork_prepare();
    arena_fork_child();
    ck_assert_uint_eq(fall(use_late(LATE)), 0);
}

/* What was used later than purge_ms after a fall was not wanted again: so few slots stay, or none. */
TEST(what_is_wanted_too_late_goes_back, .times = 2)
{
    fall_first();
    struct superblock *few = _i != 0 ? use(FEW) : NULL, *late = use_late(LATE);
    if (_i != 0) arena_give_span(few);
    ck_assert_uint_eq(fall(late), _i != 0 ? FEW : 0);
}

TEST(a_refreshed_slot_has_no_memory)
{
    bool clean;
    unsigned char resident[SUPERBLOCK / 4096];
    struct superblock *sb = arena_take(1, SLOT_BLOCKS, ARENA_PLAIN, &clean);
    memset(slot_start(sb), 1, SUPERBLOCK);
    ck_assert(arena_refresh(sb, 1));
    ck_assert_int_eq(mincore(slot_start(sb), SUPERBLOCK, resident), 0);
    for (unsigned i = 0; i < sizeof resident; i++) ck_assert_uint_eq(resident[i] & 1, 0);
    arena_give(sb, 1);
}

/* --- the map --------------------------------------------------------------------------------- */

TEST(any_bits_can_be_asked_about)
{
    int on_stack;
    static int in_data;
    uint64_t random = random_seed();
    void *elsewhere = malloc(100);
    const void *strangers[] = {NULL,
                               (void *)1,
                               &on_stack,
                               &in_data,
                               elsewhere,
                               (void *)(((uintptr_t)1 << 47) - 1),
                               (void *)((uintptr_t)1 << 47),
                               (void *)((uintptr_t)1 << 48),
                               (void *)((uintptr_t)1 << 63),
                               (void *)0xffffffffff600000, /* vsyscall */
                               (void *)UINTPTR_MAX};
    bool clean;
    struct superblock *span = arena_take_span(2, 1, SLOT_SPAN, ARENA_SPAN, &clean);
    struct arena *arena = pagemap_find(slot_start(span));
    for (size_t i = 0; i < sizeof strangers / sizeof strangers[0]; i++) {
        ck_assert_ptr_null(pagemap_find(strangers[i]));
        ck_assert_uint_eq(arena_guess(strangers[i])->inverse, 0);
    }
    unsigned wrong = 0; /* each ck_assert tells Check where it is */
    for (unsigned i = 0; i < 1000000; i++) {
        uintptr_t bits = random_next(&random) << 11 ^ random_next(&random);
        bool ours = bits >> PAGEMAP_SHIFT == (uintptr_t)arena->base >> PAGEMAP_SHIFT;
        wrong += pagemap_find((void *)bits) != (ours ? arena : NULL);
    }
    ck_assert_uint_eq(wrong, 0);
    for (unsigned bit = 47; bit < 64; bit++) /* not an address, though its lower bits are one of ours */
        ck_assert_ptr_null(pagemap_find((void *)((uintptr_t)arena->base | (uintptr_t)1 << bit)));
    ck_assert_ptr_eq(pagemap_find(arena->base + ARENA - 1), arena);
    ck_assert_ptr_null(pagemap_find(arena->base + ARENA));
    ck_assert_ptr_null(pagemap_find(arena->base - 1));
    free(elsewhere);
}

TEST(a_guess_is_believed_only_for_its_own)
{
    bool clean;
    struct superblock *sb = arena_take(1, SLOT_BLOCKS, ARENA_PLAIN, &clean);
    superblock_format(sb, 4);
    char *block = slot_start(sb);
    struct arena *arena = pagemap_find(block);
    ck_assert(!superblock_starts_at(arena_guess(block), block)); /* not learned yet */
    arena_learn(arena, block);
    ck_assert_ptr_eq(arena_guess(block), sb);
    ck_assert(superblock_starts_at(arena_guess(block), block));
    for (unsigned i = 1; i < 64; i++) { /* the same 4 MiB modulo 4 GiB */
        const char *alias = (const char *)((uintptr_t)block ^ (uintptr_t)i << 32);
        ck_assert(!superblock_starts_at(arena_guess(alias), alias));
    }
    arena_give(sb, 1);
    ck_assert(!superblock_starts_at(arena_guess(block), block));
}

int main(void) { return run_tests((struct suite){.begin = start_arenas}); }
