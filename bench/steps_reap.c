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

/* A request: ten objects, of which some are freed, and ten more. */
static inline __attribute__((always_inline)) void serve(const struct reap_options *options, int frees)
{
    void *request, *first[10];
    if (options)
        reapCreateWith(&request, &reap, options);
    else
        reapCreate(&request, &reap);
    for (int i = 0; i < 10; i++) first[i] = reapMalloc(&request, 64);
    for (int i = 0; i < frees; i++) reapFree(&request, first[2 * i]);
    for (int i = 0; i < 10; i++) object = reapMalloc(&request, 64);
    reapDestroy(&request);
}

static const struct reap_options at_most = {.size = sizeof at_most, .limit = 1 << 20};
COUNTED void request_0(void) { serve(NULL, 0); }
COUNTED void request_1(void) { serve(NULL, 1); }
COUNTED void request_2(void) { serve(NULL, 2); }
COUNTED void request_limited(void) { serve(&at_most, 0); }

COUNTED void request_buffer(void)
{
    void *request;
    reapCreate(&request, &reap);
    void *buffer = reapMalloc(&request, 512);
    for (int i = 0; i < 10; i++) {
        object = reapMalloc(&request, 64);
        if (i == 5) buffer = reapRealloc(&request, buffer, 1024);
    }
    reapDestroy(&request);
}

static reap_builder text;
COUNTED void append_16(void) { reapAppend(&reap, &text, "sixteen letters.", 16); }

COUNTED void mark_and_back(void)
{
    reap_mark mark;
    reapMark(&reap, &mark);
    object = reapMalloc(&reap, 64);
    reapRewind(&reap, &mark);
    reapUnmark(&reap, &mark);
}

/* A text with some room, and another object behind it. */
static void begin_text(void)
{
    if (text.length > 0 && text.length < 4096) return;
    text = (reap_builder){NULL, 0, 0};
    for (int i = 0; i < 5; i++) append_16();
    malloc_64();
}

static void no_text(void) { text = (reap_builder){NULL, 0, 0}; }

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
    {"a request of 20 objects", nothing, nothing, request_0},
    {"a request of 20 objects, one freed", nothing, nothing, request_1},
    {"a request of 20 objects, two freed", nothing, nothing, request_2},
    {"a request of 20 objects, with a limit of its own", nothing, nothing, request_limited},
    {"a request of 10 objects, beside which a buffer grows", nothing, nothing, request_buffer},
    {"reapAppend 16", no_text, begin_text, append_16},
    {"reapMark, reapMalloc 64, reapRewind, reapUnmark", nothing, nothing, mark_and_back},
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
