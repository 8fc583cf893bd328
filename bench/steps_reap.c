/* SPDX-License-Identifier: Apache-2.0 */
/* steps_reap: how many instructions the calls of reap.h take, and how many of them are atomic
 * read-modify-writes. First a line "library PATH", then a line a call:
 *
 *     INSTRUCTIONS ATOMICS CALL
 *
 * The calls are those of a program: each is in a function, which is counted from its entry to its return,
 * with what reap.h puts inline. Three kinds of reaps do the same: a plain one, one of REAP_SHARED that one
 * thread uses, and one with a limit. Each number is the least of several calls, after many others. How they
 * are counted: stepping.h. Status 77 where that cannot be done.
 *
 * For another build run.py compiles this file with that build's reap.h, and LD_LIBRARY_PATH leads to its
 * library.
 */
#include "reap.h"
#include "stepping.h"

#ifdef STEPPING

#include <dlfcn.h>

enum { WARM = 600, TRIES = 6 }; /* a step takes long, and there are many */

/* --- calls, and what goes before each ---------------------------------------------------------- */

static void *reap, *object;

static void nothing(void) {}

COUNTED void malloc_16(void) { object = reapMalloc(&reap, 16); }
COUNTED void malloc_64(void) { object = reapMalloc(&reap, 64); }
COUNTED void malloc_256(void) { object = reapMalloc(&reap, 256); }
COUNTED void malloc_4000(void) { object = reapMalloc(&reap, 4000); }
COUNTED void calloc_64(void) { object = reapCalloc(&reap, 4, 16); }
COUNTED void free_one(void) { reapFree(&reap, object); }
COUNTED void realloc_60(void) { object = reapRealloc(&reap, object, 60); }
COUNTED void realloc_128(void) { object = reapRealloc(&reap, object, 128); }
COUNTED void free_all(void) { reapFreeAll(&reap); }

COUNTED void child_life(void)
{
    void *below;
    reapCreate(&below, &reap);
    object = reapMalloc(&below, 64);
    reapDestroy(&below);
}

/* Blocks in the middle of the reap, of this size, every second of which is free. */
static void make_free_blocks(size_t size)
{
    static void *blocks[WARM];
    for (int i = 0; i < WARM; i++) blocks[i] = measure_touch(reapMalloc(&reap, size));
    for (int i = 0; i < WARM; i += 2) reapFree(&reap, blocks[i]);
}

static void with_free_64(void)
{
    make_free_blocks(64);
    malloc_64();
}

static void *block_of_128;

static void with_free_128(void)
{
    make_free_blocks(128);
    block_of_128 = reapMalloc(&reap, 128);
}

/* Heap mode without a free block of 64 bytes. */
static void turn_to_heap_mode(void)
{
    reapFree(&reap, block_of_128);
    block_of_128 = reapMalloc(&reap, 128);
}

static void three_objects(void)
{
    for (int i = 0; i < 3; i++) malloc_64();
}

static const struct counted {
    const char *name;
    void (*begin)(void);  /* once, with a new reap */
    void (*before)(void); /* before each call */
    void (*call)(void);
} counted[] = {
    {"reapMalloc 16", nothing, nothing, malloc_16},
    {"reapMalloc 64", nothing, nothing, malloc_64},
    {"reapMalloc 256", nothing, nothing, malloc_256},
    {"reapMalloc 4000", nothing, nothing, malloc_4000},
    {"reapMalloc 64, a free block", with_free_64, free_one, malloc_64},
    {"reapMalloc 64, other free blocks", with_free_128, turn_to_heap_mode, malloc_64},
    {"reapFree, in the middle", with_free_64, malloc_64, free_one},
    {"reapFree, the last object", malloc_64, malloc_64, free_one},
    {"reapCalloc 64", nothing, nothing, calloc_64},
    {"reapRealloc 64 to 60", nothing, malloc_64, realloc_60},
    {"reapRealloc 64 to 128, the last object", nothing, malloc_64, realloc_128},
    {"reapCreate, reapMalloc 64, reapDestroy", nothing, nothing, child_life},
    {"reapFreeAll, three objects", nothing, three_objects, free_all},
};
enum { COUNTED_CALLS = sizeof counted / sizeof *counted };

static const struct kind {
    const char *name;
    struct reap_options options;
} kinds[] = {
    {"", {.size = sizeof(struct reap_options)}},
    {", shared", {.size = sizeof(struct reap_options), .flags = REAP_SHARED}},
    {", limited", {.size = sizeof(struct reap_options), .limit = (size_t)1 << 30}},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* --- the child and the parent ------------------------------------------------------------------- */

static void make_calls(const struct kind *kind, const struct counted *one)
{
    measure_need(reapCreateWith(&reap, NULL, &kind->options) == 0, "no reap");
    one->begin();
    for (int i = 0; i < WARM + TRIES; i++) {
        one->before();
        if (i >= WARM) stepping_stop((uintptr_t)one->call, 0);
        one->call();
    }
    reapDestroy(&reap);
}

static int child(void)
{
    stepping_begin_child();
    for (int k = 0; k < KINDS; k++)
        for (int c = 0; c < COUNTED_CALLS; c++) make_calls(&kinds[k], &counted[c]);
    return 0;
}

static void print_library(void)
{
    Dl_info library;
    measure_need(dladdr((void *)dlsym(RTLD_DEFAULT, "reapVersion"), &library) != 0, "no library");
    printf("library %s\n", library.dli_fname);
}

static int parent(void)
{
    print_library();
    for (int k = 0; k < KINDS; k++) {
        for (int c = 0; c < COUNTED_CALLS; c++) {
            struct stepping_cost least = {0, 0};
            for (int i = 0; i < TRIES; i++) stepping_count(stepping_next().rax, &least);
            printf("%u %u %s%s\n", least.instructions, least.atomics, counted[c].name, kinds[k].name);
        }
    }
    stepping_end();
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "child") == 0) return child();
    measure_need(argc == 1, "usage: steps_reap");
    int status = stepping_start(argv, "");
    return status ? status : parent();
}

#else

int main(void) { return stepping_unsupported("steps_reap"); }

#endif
