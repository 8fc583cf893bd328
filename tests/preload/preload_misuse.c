/* SPDX-License-Identifier: Apache-2.0 */
/* One misuse of malloc per run, named by the argument. With none: allocates a little, properly. */
#include "support/expect.h"

#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static void free_twice(void)
{
    char *block = malloc(OPAQUE((size_t)100));
    free(block);
    free(OPAQUE(block));
}

static void free_twice_later(void)
{
    char *a = malloc(OPAQUE((size_t)100)), *b = malloc(OPAQUE((size_t)100));
    free(a);
    free(b);
    free(OPAQUE(a));
}

static void free_large_twice(void)
{
    char *block = malloc(OPAQUE((size_t)3 << 20));
    free(block);
    free(OPAQUE(block));
}

static void free_interior(void)
{
    char *block = malloc(OPAQUE((size_t)100));
    free(OPAQUE(block + 16));
}

static void free_odd(void)
{
    char *block = malloc(OPAQUE((size_t)100));
    free(OPAQUE(block + 1));
}

static void free_interior_of_large(void)
{
    char *block = malloc(OPAQUE((size_t)3 << 20));
    free(OPAQUE(block + 65536));
}

static void free_stack(void)
{
    char local[64];
    free(OPAQUE((char *)local));
}

static void free_static(void)
{
    static char text[64];
    free(OPAQUE((char *)text));
}

static void free_mapping(void)
{
    free(mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
}

static void free_nonsense(void) { free((void *)OPAQUE((uintptr_t)0xdeadbeefdeadbee0)); }

static void realloc_freed(void)
{
    char *block = malloc(OPAQUE((size_t)100));
    free(block);
    free(realloc(OPAQUE(block), 200));
}

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {
    {"free_twice", free_twice},
    {"free_twice_later", free_twice_later},
    {"free_large_twice", free_large_twice},
    {"free_interior", free_interior},
    {"free_odd", free_odd},
    {"free_interior_of_large", free_interior_of_large},
    {"free_stack", free_stack},
    {"free_static", free_static},
    {"free_mapping", free_mapping},
    {"free_nonsense", free_nonsense},
    {"realloc_freed", realloc_freed},
};

int main(int argc, char **argv)
{
    free(malloc(OPAQUE((size_t)100)));
    for (size_t i = 0; argc > 1 && i < sizeof cases / sizeof *cases; i++)
        if (strcmp(argv[1], cases[i].name) == 0) cases[i].run();
    if (argc > 1 && strcmp(argv[1], "list") == 0)
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) puts(cases[i].name);
    else
        puts("came to its end");
    return 0;
}
