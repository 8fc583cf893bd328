/* SPDX-License-Identifier: Apache-2.0 */
/* Mistakes with free() and realloc() of a reap's objects, and with entered reaps, under libreap-malloc. */
#include "misuse.h"

static void freed(void)
{
    prepare_object();
    free(at);
}

static void freed_and_another(void)
{
    prepare_object();
    reapMalloc(&reap, 100);
    free(at);
}

static void freed_in_shared(void)
{
    reap = new_shared_reap();
    freed_and_another();
}

static void freed_by_reap(void)
{
    prepare_object();
    reapFree(&reap, at);
}

static void freed_in_block(void) /* the reap lies in a block of malloc */
{
    struct reap_options options = {.size = sizeof options, .buffer = malloc(20000), .buffer_size = 20000};
    reapCreateWith(&reap, NULL, &options);
    freed();
}

static void call_free(void) { free(at); }
static void call_realloc(void) { at = realloc(at, 200); }

static void free_both_ways(void)
{
    reapFree(&reap, at);
    at = reapMalloc(&reap, 100000); /* the reap takes in what free() was given */
}

static void free_limited(void **limited, size_t size, void *arg)
{
    (void)limited, (void)size, (void)arg;
    free(at);
}

static void limit_frees(void)
{
    at = object = reapMalloc(&reap, 600);
    reapSetLimit(&reap, 1000);
    reapOnLimit(&reap, free_limited, NULL);
}

static void grow(void) { object = reapRealloc(&reap, object, 1100); }

static void enter_it(void *it)
{
    (void)it;
    reapEnter(&reap);
}

static void enters_itself(void)
{
    at = reap;
    reapOnDestroy(&reap, enter_it, NULL);
}

static void entered(void)
{
    at = reap;
    reapEnter(&reap);
}

static void child_entered(void)
{
    reapCreate(&other, &reap);
    at = other;
    reapEnter(&other);
}

static void two_entered(void)
{
    entered();
    other = new_reap();
    reapEnter(&other);
}

static void heap_entered(void)
{
    entered();
    reapEnter(NULL);
}

static void heap_left(void)
{
    reapEnter(NULL);
    reapLeave();
}

static void shared_entered(void)
{
    other = new_shared_reap();
    reap = new_shared_reap();
    reapEnter(&reap);
    reapEnter(&reap);
    at = other;
}

static void left(void)
{
    reapEnter(&reap);
    reapLeave();
}

static void enter(void) { reapEnter(&reap); }
static void enter_other(void) { reapEnter(&other); }
static void clear(void) { reapFreeAll(&reap); }
static void destroy(void) { reapDestroy(&reap); }

static const struct misuse cases[] = {
    CASE("freed_twice", ANY, NULL, freed, call_free, "free", "freed twice"),
    CASE("freed_twice_shared", ORDINARY, NULL, freed_in_shared, call_free, "free", "freed twice"),
    CASE("freed_twice_buffer", ORDINARY, NULL, freed_in_block, call_free, "free", "freed twice"),
    CASE("freed_both_ways", ANY, NULL, prepare_freed, call_free, "free", "freed twice"),
    CASE("freed_before", ORDINARY, NULL, freed_and_another, free_both_ways, "free", "freed twice"),
    CASE("freed_before_shared", SHARED | PARTS, NULL, freed_and_another, free_both_ways, "reapFree",
         "freed twice"),
    CASE("freed_then_resized", ANY, NULL, freed_by_reap, call_realloc, "realloc", "not a live object"),
    CASE("interior", ANY, NULL, prepare_interior, call_free, "free", "not the start of an object"),
    CASE("destroyed", ANY, NULL, prepare_destroyed, call_free, "free", "not a live object"),
    CASE("limit_frees", ANY, NULL, limit_frees, grow, "reapOnLimit", "not a live object"),

    CASE("entered_by_function", ANY, NULL, enters_itself, destroy, "reapDestroy", "reap is entered"),
    CASE("entered_cleared", ANY, NULL, child_entered, clear, "reapFreeAll", "reap is entered"),
    CASE("entered_destroyed", ANY, NULL, entered, destroy, "reapDestroy", "reap is entered"),
    CASE("entered_again", ORDINARY, NULL, two_entered, enter, "reapEnter",
         "reap is entered, and not the innermost"),
    CASE("entered_below_heap", ORDINARY, NULL, heap_entered, enter, "reapEnter",
         "reap is entered, and not the innermost"),
    CASE("destroyed_below_heap", ANY, NULL, heap_entered, destroy, "reapDestroy", "reap is entered"),
    CASE("leave_without_heap", ANY, NULL, heap_left, reapLeave, "reapLeave", "no reap is entered"),
    CASE("entered_shared", ORDINARY, NULL, shared_entered, enter_other, "reapEnter",
         "a shared reap is entered, and not this one innermost"),
    CASE("leave_without_enter", ANY, NULL, left, reapLeave, "reapLeave", "no reap is entered"),
};

MISUSE_MAIN
