/* SPDX-License-Identifier: Apache-2.0 */
/* steps PRELOAD: how many instructions a malloc and a free of each size take on the fast path, and how many
 * of them are atomic read-modify-writes, for the malloc that PRELOAD ("" for none) brings. A line a size:
 *
 *     SIZE  INSTRUCTIONS ATOMICS of malloc  INSTRUCTIONS ATOMICS of free
 *
 * Each number is the least of several calls, after many others: the path that is taken nearly always. How
 * they are counted: stepping.h. Status 77 where that cannot be done.
 */
#include "stepping.h"

#ifdef STEPPING

#include <dlfcn.h>

enum { WARM = 600, TRIES = 16 };

static const size_t sizes[] = {8, 16, 64, 100, 256, 1000, 4000, 16000, 32000};
enum { SIZES = sizeof sizes / sizeof *sizes };

typedef void *malloc_call(size_t size);
typedef void free_call(void *block);

static int child(void)
{
    malloc_call *get = (malloc_call *)dlsym(RTLD_DEFAULT, "malloc");
    free_call *put = (free_call *)dlsym(RTLD_DEFAULT, "free");
    static void *blocks[WARM];
    stepping_begin_child();
    for (int s = 0; s < SIZES; s++) {
        for (int i = 0; i < WARM; i++) blocks[i] = measure_touch(get(sizes[s]));
        for (int i = 0; i < WARM; i += 2) put(blocks[i]); /* half stay: no page becomes empty by a free */
        for (int i = 0; i < TRIES; i++) {
            stepping_stop((uintptr_t)get, (uintptr_t)put);
            void *block = get(sizes[s]);
            put(block);
        }
    }
    return 0;
}

static int parent(void)
{
    for (int s = 0; s < SIZES; s++) {
        struct stepping_cost get = {0, 0}, put = {0, 0};
        for (int i = 0; i < TRIES; i++) {
            struct user_regs_struct r = stepping_next();
            stepping_count(r.rax, &get);
            stepping_count(r.rbx, &put);
        }
        printf("%zu %u %u %u %u\n", sizes[s], get.instructions, get.atomics, put.instructions, put.atomics);
    }
    stepping_end();
    return 0;
}

int main(int argc, char **argv)
{
    measure_need(argc == 2, "usage: steps PRELOAD");
    if (strcmp(argv[1], "child") == 0) return child();
    int status = stepping_start(argv, argv[1]);
    return status ? status : parent();
}

#else

int main(void) { return stepping_unsupported("steps"); }

#endif
