/* SPDX-License-Identifier: Apache-2.0 */
/* check_protocol.c: what a restartable section and a slow path may do to each other, all of it: one processor
 * stands still at each instruction of each section in turn (stepper.h), and another one meanwhile takes the
 * superblock, closes the batch, files, looks or forks. Then blocks that were lost, or given out twice, are
 * found by what is in them and by superblocks that do not become empty at the end.
 *
 *     fast     malloc and free in thirteen states of a heap         (fast_parts)
 *     slow     each way to take, or look at, what is another's    (slow_parts)
 *     when     the fast one begins before the slow one, after each of its fences, before each superblock that
 *              it gives; or, the slow one being a thread that loses its id (moving_parts), at each section
 */
#include "support/check_backend.h"

#include "arena/false_sharing.h"
#include "heap/global_heap.h"
#include "heap/heap_emptiness.h"
#include "heap/heap_fast.h"
#include "heap/heap_remote.h"
#include "heap/heap_table.h"
#include "stepper.h"

#if RSEQ_AVAILABLE && defined(__x86_64__)

/* Few blocks in a superblock: no lines shared, lines shared, and wide. */
static const size_t sizes[] = {2048, 4368, 128 * KIB};
enum { SIZES = sizeof sizes / sizeof *sizes, CAPACITY = 32, OTHERS = 6 };

/* --- what lives ------------------------------------------------------------------------------- */

enum { OBJECTS = 600, EDGE = 32 };
static struct object {
    char *at;
    size_t size;
    uint8_t fill;
} objects[OBJECTS];
static unsigned live;
static uint8_t next_fill;

static void require(bool right, const char *what)
{
    if (!right) fprintf(stderr, "%s: %s\n", stepper_story, what);
    if (!right) _exit(1);
}

/* Fills below 0x80: a free looks longer at a block whose last two bytes are the cookie's, and takes another
 * way than was recorded. Those are at least 0x80. */
static void *keep(void *at, size_t size)
{
    require(at != NULL && live < OBJECTS, "no memory");
    struct object *object = &objects[live++];
    *object = (struct object){at, size, ++next_fill & 0x7f};
    memset(object->at, object->fill, EDGE);
    memset(object->at + size - EDGE, object->fill, EDGE);
    return at;
}

static void *new_object(size_t size) { return keep(hoard_malloc(size), size); }

static void assert_untouched(const struct object *object)
{
    require(all_bytes(object->at, EDGE, object->fill) &&
                all_bytes(object->at + object->size - EDGE, EDGE, object->fill),
            "a live block was written to, or two have it");
}

/* Off the list, about to be freed. */
static void *forget(void *at)
{
    unsigned i = 0;
    while (i < live && objects[i].at != at) i++;
    require(i < live, "not live");
    assert_untouched(&objects[i]);
    objects[i] = objects[--live];
    return at;
}

static void drop(void *at) { hoard_free(forget(at)); }

/* --- the states ------------------------------------------------------------------------------- */

static size_t size;
static unsigned class, capacity;
static char *full[CAPACITY];   /* in the fast one's first superblock, which is in a bin: all of it, but */
static unsigned freed;         /* the number of its first ones that are */
static char *some[CAPACITY];   /* in the active one; their number: */
static unsigned some_live;     /* the first ones were freed */
static char *others[CAPACITY]; /* the slow one's */
static void *victim, *second_victim, *got, *slow_got;

/* The first superblock's free blocks: one free away from the next group, from group 0 or 1. */
static unsigned almost(unsigned group)
{
    return ((group + 1) * capacity + GROUP_EMPTY - 1) / GROUP_EMPTY - 1;
}

static void do_malloc(void) { got = hoard_malloc(size); }

static void do_nothing(void) {}

static void do_free(void) { hoard_free(victim); }

static void free_and_malloc(void)
{
    hoard_free(victim);
    got = hoard_malloc(size);
}

static void free_two(void)
{
    hoard_free(victim);
    hoard_free(second_victim);
}

enum whose { NOBODYS, OF_FULL, OF_SOME, OF_OTHERS };

static const struct fast_part {
    const char *name;
    void (*does)(void);
    enum whose frees;
    enum { NONE, ALMOST_0, ALMOST_1, MORE } room; /* in the first superblock */
    enum { HALF, ONE, ALL } has;                  /* of the active superblock's blocks */
    bool listed;                                  /* one of these was freed: pop, not carve */
    bool batch;                                   /* and one of the others' */
} fast_parts[] = {
    {"pop", do_malloc, NOBODYS, NONE, HALF, true, false},
    {"pop where nothing lives", do_malloc, NOBODYS, NONE, ONE, true, false},
    {"carve", do_malloc, NOBODYS, NONE, HALF, false, false},
    {"malloc from the batch", do_malloc, NOBODYS, NONE, ALL, false, true},
    {"malloc from the bin", do_malloc, NOBODYS, MORE, ALL, false, false},
    {"free into the active one", do_free, OF_SOME, NONE, HALF, false, false},
    {"free of all that lives", do_free, OF_SOME, NONE, ONE, false, false},
    {"free into a full one", do_free, OF_FULL, ALMOST_1, HALF, true, false},
    {"free to the next group", do_free, OF_FULL, ALMOST_0, HALF, false, false},
    {"free to a group beyond", do_free, OF_FULL, ALMOST_1, ALL, false, false},
    {"free of another's", do_free, OF_OTHERS, NONE, HALF, false, true},
    {"free into a full one, and malloc", free_and_malloc, OF_FULL, NONE, ALL, false, false},
};
enum { FAST_PARTS = sizeof fast_parts / sizeof *fast_parts };

static void prepare_fast(const struct fast_part *part)
{
    const unsigned rooms[] = {0, almost(0), almost(1), capacity / 4 + 1};
    stepper_be(STEPPER_FAST);
    for (unsigned i = 0; i < capacity; i++) full[i] = new_object(size);
    some_live = part->has == ONE ? 1 : part->has == HALF ? capacity / 2 + 1 : capacity;
    for (unsigned i = 0; i < some_live; i++) some[i] = new_object(size);
    stepper_be(STEPPER_SLOW);
    for (unsigned i = 0; i < OTHERS; i++) others[i] = new_object(size);
    stepper_be(STEPPER_FAST);
    freed = rooms[part->room];
    for (unsigned i = 0; i < freed; i++) drop(full[i]);
    if (part->listed) drop(some[0]);
    if (part->batch) drop(others[0]);
    char *const victims[] = {NULL, full[capacity - 1], some[some_live - 1], others[1]};
    victim = victims[part->frees];
    second_victim = part->does == free_two ? others[2] : NULL;
    got = slow_got = NULL;
}

/* --- the slow parts --------------------------------------------------------------------------- */

/* What was taken is given out again, as the class that it was and as another. */
static void use(void)
{
    for (unsigned i = 0; i < capacity + 2; i++) new_object(size);
    new_object(1024);
    new_object(1024);
}

static void give_all(void) { heap_give_all(); }

static void leave_orphan(void) { heap_get(STEPPER_FAST)->orphan = true; }

/* Of both superblocks' blocks some are freed by the other heap, and queued; of the active one's all. */
static void post(void)
{
    for (unsigned i = freed; i + 1 < capacity && i < freed + capacity / 4 + 1; i++) drop(full[i]);
    for (unsigned i = 1; i + 1 < some_live; i++) drop(some[i]);
    heap_deliver_all();
}

/* As if this were the first look, with what the fast one keeps. */
static void look_at_kept(void)
{
    struct heap *heap;
    for (unsigned id = 0; (heap = heap_next(id)) != NULL; id = heap->id + 1u)
        memset(heap->kept, 0, sizeof heap->kept);
    heap_send_idle_home(false);
}

static void send_home(void) { heap_send_idle_home(true); }

static void trim(void) { hoard_trim(0); }

/* One of the fast one's: its superblock stays what it was. */
static void look_at(void *block)
{
    struct superblock *sb = superblock_of(block);
    require(!heap_block_is_free(sb, stub_of(block)), "it lives");
    require(sb->role.owner == STEPPER_FAST, "it has another owner now");
}

static void look(void)
{
    look_at(full[capacity - 2]);
    require(!heap_block_is_free(superblock_of(others[2]), stub_of(others[2])), "it lives");
    if (some_live > 2) look_at(some[some_live - 2]);
}

static unsigned slots(void) { return (unsigned)(heap_totals().slots + global_heap_slots()); }

/* Frees all that lives, half of it by each heap. */
static void free_all(void)
{
    while (live != 0) {
        stepper_be(live % 2 == 0 ? STEPPER_FAST : STEPPER_SLOW);
        drop(objects[live - 1].at);
    }
    heap_deliver_all();
    heap_give_all();
}

/* Returns true if the fast one holds anything that fork waits for. */
static bool is_any_held(void)
{
    bool any = atomic_load(&heap_transit.passing) != 0;
    struct heap *heap;
    for (unsigned id = 0; (heap = heap_next(id)) != NULL; id = heap->id + 1u)
        any |= atomic_load(&heap->lock.state) != LOCK_FREE;
    return any;
}

/* The child has what the parent had, but for the block that the stopped one had in hands. */
static void fork_now(void)
{
    pid_t child = stepper_fork(is_any_held());
    int status = 1;
    if (child == 0) {
        use();
        require(heap_is_valid(), "a child's accounts do not add up");
        free_all();
        require(heap_is_valid() && slots() <= sizeclasses[class].slots, "a child has lost blocks");
        _exit(0);
    }
    waitpid(child, &status, 0);
    require(child > 0 && status == 0, "a child has failed");
}

static const struct slow_part {
    const char *name;
    void (*prepare)(void);
    void (*does)(void);
    bool once; /* the fast one begins before it, and not at its events too */
} slow_parts[] = {
    {"all is given", NULL, give_all, false},
    {"idle is given of an orphan", leave_orphan, heap_give_idle, false},
    {"idle is given of what was queued", post, heap_give_idle, false},
    {"batches are delivered", NULL, heap_deliver_all, false},
    {"what is kept goes home", look_at_kept, send_home, false},
    {"malloc looks everywhere", leave_orphan, NULL, false},
    {"all is trimmed", NULL, trim, true},
    {"a closer look at a block", NULL, look, false},
    {"fork", NULL, fork_now, true},
};
enum { SLOW_PARTS = sizeof slow_parts / sizeof *slow_parts };

static const struct slow_part *slow_part;

static void do_slow(void)
{
    if (slow_part->does != NULL) slow_part->does();
    use();
}

/* Those of a thread that has the fast one's id, and loses it on the way. */
static void malloc_slowly(void) { slow_got = hoard_malloc(size); }

static void free_slowly(void) { drop(full[capacity - 2]); }

static void malloc_and_more(void)
{
    malloc_slowly();
    for (unsigned i = 0; i < 3; i++) new_object(size);
}

static const struct slow_part moving_parts[] = {
    {"malloc by a thread that moves", NULL, malloc_slowly, false},
    {"free by a thread that moves", NULL, free_slowly, false},
    {"malloc of what was queued by a thread that moves", post, malloc_and_more, false},
};
enum { MOVING_PARTS = sizeof moving_parts / sizeof *moving_parts };

/* --- one run ---------------------------------------------------------------------------------- */

/* Of the class that is tested. */
static bool each_in_bins(bool (*is_right)(const struct superblock *sb))
{
    struct heap *heap;
    for (unsigned id = 0; (heap = heap_next(id)) != NULL; id = heap->id + 1u)
        for (unsigned group = 0; group < GROUP_EMPTY; group++) {
            const struct list_node *node = heap->bins[class].groups[group].first;
            for (; node != NULL; node = node->next)
                if (!is_right(LIST_ENTRY(node, struct superblock, link))) return false;
        }
    return true;
}

/* A free that takes a superblock to its next group is seen by that free, or by who files it, or it is queued.
 */
static bool is_regrouped(const struct superblock *sb)
{
    return word_free(word_read(sb)) < sb->role.regroup_at || atomic_load(&sb->queued);
}

/* When others have freed so much of a superblock in a bin, it is queued: the bound on memory counts on that.
 * (An active one counts as full there.) */
static bool is_due(const struct superblock *sb)
{
    unsigned pending = atomic_load(&sb->pending) >> 16 & 0xffff;
    unsigned due = capacity / (sb->role.sharing != SHARING_NONE ? 16 : 4);
    return pending >= (due != 0 ? due : 1);
}

static bool is_queued_if_due(const struct superblock *sb) { return !is_due(sb) || atomic_load(&sb->queued); }

/* Nobody is to look at an active one. */
static bool no_active_one_has_a_threshold(void)
{
    struct heap *heap;
    for (unsigned id = 0; (heap = heap_next(id)) != NULL; id = heap->id + 1u) {
        const struct superblock *sb = heap_active(heap, class);
        if (sb != NULL && sb->role.regroup_at != HEAP_NEVER) return false;
    }
    return true;
}

static void look_at_all(void)
{
    for (unsigned i = 0; i < live; i++) assert_untouched(&objects[i]);
    require(heap_is_valid(), "accounts do not add up");
    require(each_in_bins(is_regrouped), "a superblock was not regrouped");
    require(no_active_one_has_a_threshold(), "an active superblock has a threshold");
    require(each_in_bins(is_queued_if_due), "much is pending, and not queued");
}

static struct passed run(const struct fast_part *fast, const struct slow_part *slow, const struct plan *plan)
{
    prepare_fast(fast);
    slow_part = slow;
    stepper_be(STEPPER_SLOW);
    if (slow->prepare != NULL) slow->prepare();
    if (victim != NULL) forget(victim);
    if (second_victim != NULL) forget(second_victim);
    snprintf(stepper_story, sizeof stepper_story,
             "blocks of %zu: %s (point %u, %u, %u); %s (event %u, moved at %u)", size, fast->name,
             plan->point, plan->then[0], plan->then[1], slow->name, plan->event, plan->moved);
    struct passed passed = stepper_run(plan, fast->does, plan->moved != 0 ? slow->does : do_slow);
    if (slow_got != NULL) keep(slow_got, size);
    if (got != NULL) keep(got, size);
    if (!passed.begun && victim != NULL) hoard_free(victim);
    look_at_all();
    stepper_be(STEPPER_FAST);
    for (unsigned i = 0; i < 3; i++) new_object(size); /* of what the fast one's heap has now */
    look_at_all();
    free_all();
    require(heap_is_valid() && slots() == 0, "blocks were lost");
    return passed;
}

static unsigned runs;

/* At each point; false: the slow one has no such event, or section. */
static bool run_at_each_point(const struct fast_part *fast, const struct slow_part *slow, struct plan plan)
{
    plan.point = 0;
    if (!run(fast, slow, &plan).begun) return false;
    while (plan.point++ < stepper_points()) {
        require(run(fast, slow, &plan).stopped, "a run was another one than was recorded");
        runs++;
    }
    return true;
}

static void set_size(size_t n)
{
    size = n;
    class = sizeclass_of(n);
    capacity = sizeclasses[class].capacity;
    require(capacity <= CAPACITY && false_sharing_possible(class) == (n == 4368),
            "other classes than this knows");
}

TEST(sections_and_slow_paths, .times = SLOW_PARTS)
{
    for (unsigned s = 0; s < SIZES; s++)
        for (unsigned f = 0; f < FAST_PARTS; f++) {
            const struct slow_part *slow = &slow_parts[_i];
            struct plan plan = {0};
            set_size(sizes[s]);
            while (run_at_each_point(&fast_parts[f], slow, plan) && !slow->once) plan.event++;
        }
    fprintf(stderr, "%s: %u runs\n", slow_parts[_i].name, runs);
    ck_assert_uint_gt(runs, 0);
}

TEST(sections_and_threads_that_move, .times = MOVING_PARTS)
{
    for (unsigned s = 0; s < SIZES; s++)
        for (unsigned f = 0; f < FAST_PARTS; f++) {
            struct plan plan = {.moved = 1};
            set_size(sizes[s]);
            for (; run_at_each_point(&fast_parts[f], &moving_parts[_i], plan); plan.moved++, plan.event = 0)
                while (plan.event++, run_at_each_point(&fast_parts[f], &moving_parts[_i], plan)) continue;
        }
    fprintf(stderr, "%s: %u runs\n", moving_parts[_i].name, runs);
    ck_assert_uint_gt(runs, 0);
}

/* --- a heap that is lost ------------------------------------------------------------------------ */

/* As many other threads free them. */
static void pend(char *const *blocks, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        struct superblock *sb = superblock_of(blocks[i]);
        struct chain chain = chain_of_block(sb, stub_of(forget(blocks[i])));
        heap_make_pending(sb, &chain);
    }
}

static void pend_most_of_one(void) { pend(full, capacity - 1); }

/* A third one is active then. */
static void pend_most_of_two(void)
{
    stepper_be(STEPPER_FAST);
    for (unsigned i = 0; i < capacity; i++) new_object(size);
    stepper_be(STEPPER_SLOW);
    pend(full, capacity - 1);
    pend(some, capacity - 1);
}

static const struct fast_part idle = {"nothing", do_nothing, NOBODYS, NONE, ALL, false, false};

static const struct slow_part losing_parts[] = {
    {"malloc of what was queued", pend_most_of_one, malloc_slowly, true},
    {"malloc of what was queued, of two", pend_most_of_two, malloc_slowly, true},
};
enum { LOSING_PARTS = sizeof losing_parts / sizeof *losing_parts };

/* Wherever a thread is when it gets another id: what it took off its heap's list of queued ones, and could
 * not collect, is on it again. */
TEST(what_a_thread_that_moves_has_taken_is_posted, .times = LOSING_PARTS)
{
    for (unsigned s = 0; s < SIZES; s++) {
        struct plan plan = {0};
        set_size(sizes[s]);
        do plan.moved++, runs++;
        while (run(&idle, &losing_parts[_i], &plan).begun);
    }
    fprintf(stderr, "%s: %u runs\n", losing_parts[_i].name, runs);
    ck_assert_uint_gt(runs, 10);
}

/* As a thread does that had read which heap a superblock is in, and was late: another one has it since. */
static void post_late(struct superblock *sb, struct heap *heap)
{
    atomic_store(&sb->queued, 1); /* as in a process that was not forked */
    sb->queued_next = atomic_load(&heap->queued);
    atomic_store(&heap->queued, sb);
}

/* Then more is freed of it, and not queued, since it is. The first heap finds it on its list, and passes it
 * on. */
TEST(what_has_left_its_heap_is_posted_to_the_next)
{
    set_size(sizes[0]);
    prepare_fast(&idle);
    struct superblock *moved = superblock_of(full[0]);
    struct heap *first = heap_get(STEPPER_FAST);
    for (unsigned i = 0; i <= capacity / 4; i++) drop(full[i]);
    heap_give_all();
    stepper_be(STEPPER_SLOW);
    for (unsigned i = 0; i <= 3 * capacity; i++) new_object(size);
    ck_assert_uint_eq(moved->role.heap, STEPPER_SLOW);
    ck_assert_ptr_ne(heap_active(heap_get(STEPPER_SLOW), class), moved);
    post_late(moved, first);
    stepper_be(STEPPER_FAST);
    for (unsigned i = capacity / 4 + 1; i < capacity; i++) drop(full[i]);
    heap_deliver_all();
    ck_assert(is_due(moved));
    lock_take(&first->lock);
    heap_collect_queued(first);
    heap_unlock(first);
    look_at_all();
    ck_assert(is_due(moved));
    free_all();
}

/* --- three stops ------------------------------------------------------------------------------- */

static void malloc_and_free(void)
{
    do_malloc();
    hoard_free(victim);
}

static const struct slow_part deliver = {"batches are delivered", NULL, heap_deliver_all, false};

static const struct fast_part double_parts[] = {
    {"two frees of another's", free_two, OF_OTHERS, NONE, HALF, false, true},
    {"a malloc from the batch and a free of another's", malloc_and_free, OF_OTHERS, NONE, ALL, false, true},
};

/* A section that is under way when its batch is closed opens it again, and the next one is under way when it
 * is looked at. */
TEST(what_is_closed_is_opened_by_a_section)
{
    for (unsigned s = 0; s < SIZES; s++)
        for (unsigned f = 0; f < 2; f++) {
            struct plan plan = {0};
            set_size(sizes[s]);
            run(&double_parts[f], &deliver, &plan);
            unsigned points = stepper_points();
            plan.goes_on = 1;
            for (plan.point = 1; (plan.then[0] = stepper_next_behind(plan.point)) != 0; plan.point++)
                for (plan.then[1] = plan.then[0] + 1; plan.then[1] <= points; plan.then[1]++, runs++)
                    run(&double_parts[f], &deliver, &plan);
        }
    fprintf(stderr, "%s, three stops: %u runs\n", deliver.name, runs);
    ck_assert_uint_gt(runs, 0);
}

int main(void) { return stepper_works() ? run_tests((struct suite){.begin = stepper_start}) : SKIPPED; }

#else

int main(void) { return 77; }

#endif
