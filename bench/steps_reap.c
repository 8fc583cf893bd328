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
 */
#include "reap.h"
#include "stepping.h"

#ifdef STEPPING

#include <dlfcn.h>

enum { BLOCKS = 600 };

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
    static void *blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++) blocks[i] = measure_touch(reapMalloc(&reap, size));
    for (int i = 0; i < BLOCKS; i += 2) reapFree(&reap, blocks[i]);
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

static const struct stepping_call calls[] = {
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

static const char *const kinds[] = {"", ", shared", ", limited"};
enum { KINDS = sizeof kinds / sizeof *kinds };

static void pool_begin(int kind)
{
    static const struct reap_options options[KINDS] = {
        {.size = sizeof(struct reap_options)},
        {.size = sizeof(struct reap_options), .flags = REAP_SHARED},
        {.size = sizeof(struct reap_options), .limit = (size_t)1 << 30}};
    measure_need(reapCreateWith(&reap, NULL, &options[kind]) == 0, "no reap");
}

static void pool_end(void) { reapDestroy(&reap); }

static void print_library(void)
{
    Dl_info library;
    measure_need(dladdr((void *)dlsym(RTLD_DEFAULT, "reapVersion"), &library) != 0, "no library");
    printf("library %s\n", library.dli_fname);
}

int main(int argc, char **argv)
{
    if (argc == 1) print_library();
    return stepping_run(
        argv, "",
        &(struct stepping_calls){calls, sizeof calls / sizeof *calls, KINDS, kinds, pool_begin, pool_end});
}

#else

int main(void) { return stepping_unsupported("steps_reap"); }

#endif
