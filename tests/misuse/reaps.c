/* SPDX-License-Identifier: Apache-2.0 */
/* Mistakes with reaps and marks, and of functions that the library calls. */
#include "misuse.h"

#include <pthread.h>

static void *copy; /* of a handle */
static char buffer[10000];

/* --- handles ------------------------------------------------------------------------------ */
static void live(void) { at = reap; }

static void destroyed(void)
{
    copy = at = reap;
    reapDestroy(&reap);
}

static void destroyed_with_object(void)
{
    copy = at = reap;
    prepare_freed(); /* and another one, which lives */
    at = copy;
    reapDestroy(&reap);
}

static void destroyed_by_value(void)
{
    at = reap;
    reapDestroy(at);
}

static void destroyed_with_parent(void)
{
    reapCreate(&copy, &reap);
    at = copy;
    reapDestroy(&reap);
}

static void null(void) { reapDestroy(&reap); }

static void destroyed_in_buffer(void)
{
    struct reap_options options = {.size = sizeof options, .buffer = buffer, .buffer_size = sizeof buffer};
    reapCreateWith(&reap, NULL, &options);
    destroyed();
}

static void block_of_malloc(void) { copy = at = calloc(1, 1000); }

static void use(void) { at = reapMalloc(&copy, 100); }
static void use_null(void) { at = reapMalloc(&reap, 100); }
static void print(void) { at = reapPrintf(&copy, "text"); }
static void free_in(void) { reapFree(&copy, object); }
static void destroy_by_value(void) { reapDestroy(at); }
static void charge(void) { reapCharge(&copy); }
static void charge_as(void) { reapChargeAs(&copy, "label"); }
static void charge_live(void) { reapCharge(&reap); }
static void charge_as_null(void) { reapChargeAs(&reap, (const char *)at); }

static void charged(void)
{
    charge_live();
    reapCharge(NULL);
    reapUncharge();
    reapUncharge();
}

static void *enter_and_end(void *it)
{
    reapEnterQuietly(&it);
    return NULL;
}

static void entered_elsewhere(void)
{
    pthread_t thread;
    at = reap;
    if (pthread_create(&thread, NULL, enter_and_end, reap) != 0 || pthread_join(thread, NULL) != 0) exit(99);
    reapEnterQuietly(NULL); /* this thread is in others */
    other = new_reap();
    reapEnterQuietly(&other);
}

static void create_there(void) { reapCreate(reap, NULL); } /* the `&` was forgotten */

/* --- functions of a reap that ends ----------------------------------------------------------- */
static void destroy_it(void *it) { reapDestroy(&it); }
static void adopt_it(void *it) { reapAdopt(&it, &other); }

static void destroys_itself(void)
{
    at = reap;
    reapOnDestroy(&reap, destroy_it, reap);
}

static void goes_to_other(void)
{
    at = reap;
    other = new_reap();
    reapOnDestroy(&reap, adopt_it, reap);
}

static void end(void) { reapDestroy(&reap); }
static void clear_it(void) { reapFreeAll(&reap); }

/* --- marks ----------------------------------------------------------------------------------- */
static reap_mark mark, second;

static void marked_and_cleared(void)
{
    at = &mark;
    reapMark(&reap, &mark);
    reapFreeAll(&reap);
}

static void closed(void)
{
    at = &mark;
    reapMark(&reap, &second);
    reapMark(&reap, &mark);
    reapUnmark(&reap, &mark);
}

static void closed_in_same_place(void) /* a younger mark has its place in the order */
{
    at = &mark;
    reapMark(&reap, &mark);
    reapUnmark(&reap, &mark);
    reapMark(&reap, &second);
}

static void of_other(void)
{
    at = &mark;
    other = new_reap();
    reapMark(&other, &mark);
    reapMark(&reap, &second);
}

static void all_marks(void)
{
    at = reap;
    for (int i = 0; i < 65535; i++) reapMark(&reap, &mark);
}

static void close_while_rewound(void *which)
{
    reap_mark inner;
    reapMark(&reap, &inner);
    reapUnmark(&reap, &inner);
    reapUnmark(&reap, which);
}

static void closes_mark_of_rewind(void)
{
    at = &mark;
    reapMark(&reap, &mark);
    reapOnDestroy(&reap, close_while_rewound, &mark);
}

static void closes_mark_outside_of_rewind(void)
{
    at = &second;
    reapMark(&reap, &second);
    reapMark(&reap, &mark);
    reapOnDestroy(&reap, close_while_rewound, &second);
}

static void go_back(void) { reapRewind(&reap, &mark); }
static void unmark(void) { reapUnmark(&reap, &mark); }
static void mark_again(void) { reapMark(&reap, &mark); }

/* --- functions of limits: they may not take away what the call is about ------------------------- */
static void destroy_limited(void **limited, size_t size, void *arg)
{
    (void)size, (void)arg;
    reapDestroy(limited);
}

static void clear_limited(void **limited, size_t size, void *arg)
{
    (void)size, (void)arg;
    reapFreeAll(limited);
}

static void exchange_other(void **limited, size_t size, void *arg)
{
    (void)limited, (void)size, (void)arg;
    reapDestroy(&other);
    reapCreate(&other, NULL);
}

static void free_object(void **in, size_t size, void *arg)
{
    (void)size;
    reapFree(arg ? arg : in, object);
}

static void limit_destroys(void)
{
    at = reap;
    reapSetLimit(&reap, 1000);
    reapOnLimit(&reap, destroy_limited, NULL);
}

static void resized_below(void (*fn)(void **, size_t, void *))
{
    at = object = reapMalloc(&reap, 600);
    reapSetLimit(&reap, 1000);
    reapOnLimit(&reap, fn, NULL);
}

static void limit_clears(void) { resized_below(clear_limited); }
static void limit_frees(void) { resized_below(free_object); }

static void moved_below(void (*fn)(void **, size_t, void *))
{
    other = new_reap();
    at = object = reapMalloc(&other, 600);
    reapSetLimit(&reap, 500);
    reapOnLimit(&reap, fn, &other);
}

static void limit_exchanges_other(void) { moved_below(exchange_other); }

static void limit_frees_moved(void)
{
    moved_below(free_object);
    reapMalloc(&other, 600);
}

static void ask_for_much(void) { at = reapMalloc(&reap, 1100); }
static void grow(void) { at = reapRealloc(&reap, object, 1100); }
static void move(void) { at = reapMove(object, &other, &reap); }

/* --- functions of reapWalk ----------------------------------------------------------------------- */
static void *met[3];

static int meet(void *one, size_t size, void *n)
{
    (void)size;
    met[(*(int *)n)++] = one;
    return 0;
}

static int clear_at_first(void *one, size_t size, void *arg)
{
    (void)size, (void)arg;
    if (one == met[0]) reapFreeAll(&reap);
    return 0;
}

static int free_next(void *one, size_t size, void *arg)
{
    (void)size, (void)arg;
    if (one == met[0]) reapFree(&reap, met[1]);
    return 0;
}

static void some_objects(int count)
{
    int n = 0;
    for (int i = 0; i < count; i++) reapMalloc(&reap, 100);
    reapWalk(&reap, meet, &n);
    at = met[1];
}

static void two_objects(void) { some_objects(2); }
static void three_objects(void) { some_objects(3); }
static void walk_and_clear(void) { reapWalk(&reap, clear_at_first, NULL); }
static void walk_and_free(void) { reapWalk(&reap, free_next, NULL); }

/* --- sources of memory ------------------------------------------------------------------------------ */
static _Alignas(4096) char memory[16384];

static void *take(size_t size, void *from)
{
    (void)size;
    return from;
}

static void give(void *chunk, size_t size, void *arg) { (void)chunk, (void)size, (void)arg; }

static void create_with_source(void)
{
    struct reap_options options = {.size = sizeof options, .source = {take, give, at}};
    reapCreateWith(&reap, NULL, &options);
}

static void source_gives_once(void)
{
    at = memory;
    create_with_source();
}

static void source_unaligned(void) { at = memory + 16; }
static void fill(void)
{
    while (reapMalloc(&reap, 1000)) continue;
}

static const char no_reap[] = "not a live reap", no_object[] = "not a live object",
                  ending[] = "reap is being destroyed";
static const char no_mark[] = "not an open mark of this reap",
                  going[] = "reap is going back to it, or to a later mark";
static const struct misuse cases[] = {
    CASE("destroyed", ANY, NULL, destroyed, use, "reapMalloc", no_reap),
    CASE("destroyed_free", ANY, NULL, destroyed_with_object, free_in, "reapFree", no_reap),
    CASE("destroyed_by_value", ANY, NULL, destroyed_by_value, destroy_by_value, "reapDestroy", no_reap),
    CASE("destroyed_with_parent", ANY, NULL, destroyed_with_parent, print, "reapPrintf", no_reap),
    CASE("destroyed_in_buffer", ORDINARY, NULL, destroyed_in_buffer, use, "reapMalloc", no_reap),
    CASE("null", ANY, NULL, null, use_null, "reapMalloc", no_reap),
    CASE("charge_destroyed", ANY, NULL, destroyed, charge, "reapCharge", no_reap),
    CASE("charge_as_destroyed", ANY, NULL, destroyed, charge_as, "reapChargeAs", no_reap),
    CASE("charge_of_malloc", ORDINARY, NULL, block_of_malloc, charge, "reapCharge", no_reap),
    CASE("charge_of_another_thread", ORDINARY, NULL, entered_elsewhere, charge_live, "reapCharge",
         "another thread has entered the reap"),
    CASE("charge_as_null", ANY, NULL, null, charge_as_null, "reapChargeAs", "an argument is NULL"),
    CASE("uncharge_without_charge", ANY, NULL, charged, reapUncharge, "reapUncharge", "no reap is charged"),
    CASE("create_in_reap", ANY, NULL, live, create_there, "reapCreate",
         "a reap, where the address of a handle is to be set"),

    CASE("destroyed_within", ANY, NULL, destroys_itself, end, "reapDestroy", ending),
    CASE("destroyed_while_cleared", ANY, NULL, destroys_itself, clear_it, "reapDestroy", ending),
    CASE("adopt_within", ANY, NULL, goes_to_other, end, "reapAdopt", ending),

    CASE("mark_cleared", ANY, NULL, marked_and_cleared, go_back, "reapRewind", no_mark),
    CASE("mark_closed", ANY, NULL, closed, go_back, "reapRewind", no_mark),
    CASE("mark_closed_outer", ANY, NULL, closed_in_same_place, unmark, "reapUnmark", no_mark),
    CASE("mark_of_another", ANY, NULL, of_other, go_back, "reapRewind", no_mark),
    CASE("marks_too_many", ANY, NULL, all_marks, mark_again, "reapMark", "65535 marks are open already"),
    CASE("unmark_of_rewind", ANY, NULL, closes_mark_of_rewind, go_back, "reapUnmark", going),
    CASE("unmark_within_rewind", ANY, NULL, closes_mark_outside_of_rewind, go_back, "reapUnmark", going),

    CASE("limit_destroys", ANY, NULL, limit_destroys, ask_for_much, "reapOnLimit", no_reap),
    CASE("limit_destroys_moved", ANY, NULL, limit_exchanges_other, move, "reapOnLimit", no_object),
    CASE("limit_frees_resized", ANY, NULL, limit_clears, grow, "reapOnLimit", no_object),
    CASE("limit_frees", ANY, NULL, limit_frees, grow, "reapOnLimit", no_object),
    CASE("limit_frees_moved", ANY, NULL, limit_frees_moved, move, "reapOnLimit", no_object),

    CASE("walk_clears", ANY, NULL, two_objects, walk_and_clear, "reapWalk", no_object),
    CASE("walk_frees_next", ANY, NULL, three_objects, walk_and_free, "reapWalk", no_object),

    CASE("source_again", ORDINARY, NULL, source_gives_once, fill, "reapCreateWith",
         "the source's memory is a reap's already"),
    CASE("source_unaligned", ORDINARY, NULL, source_unaligned, create_with_source, "reapCreateWith",
         "the source's memory is not aligned to 4096"),
};

MISUSE_MAIN
