/* SPDX-License-Identifier: Apache-2.0 */
/* Memory runs out (RLIMIT_AS): NULL and ENOMEM, nothing lost; and memory freed can be had again. */
#include "support/expect.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { ROOM = 96 << 20 };

struct node {
    struct node *next;
    size_t size;
};

/* Allocates blocks of one size until there are no more; the list of them, their number to *n. */
static struct node *allocate_all(size_t size, size_t *n)
{
    struct node *list = NULL, *block;
    errno = 0;
    for (*n = 0; (block = malloc(OPAQUE(size))) != NULL; ++*n) {
        memset(block, (int)(size & 255), size);
        *block = (struct node){list, size};
        list = block;
    }
    EXPECT(errno == ENOMEM);
    return list;
}

/* Frees a list; the number of blocks that had kept what was written. */
static size_t free_all(struct node *list)
{
    size_t intact = 0;
    while (list) {
        struct node *next = list->next;
        unsigned char *bytes = (unsigned char *)list;
        intact += list->size == sizeof *list || bytes[list->size - 1] == (unsigned char)list->size;
        free(list);
        list = next;
    }
    return intact;
}

static void limit_address_space(void)
{
    size_t pages = 0;
    FILE *statm = fopen("/proc/self/statm", "r");
    EXPECT(statm && fscanf(statm, "%zu", &pages) == 1);
    if (statm) fclose(statm);
    struct rlimit limit = {pages * 4096 + ROOM, RLIM_INFINITY};
    EXPECT(setrlimit(RLIMIT_AS, &limit) == 0);
}

/* At least half of the room can be had in any size, also after other sizes had it. */
static void test_size(size_t size)
{
    size_t n;
    struct node *list = allocate_all(size, &n);
    EXPECT(n * size >= ROOM / 2);

    void *out = list;
    EXPECT((errno = 0, calloc(1, OPAQUE((size_t)ROOM)) == NULL && errno == ENOMEM));
    EXPECT(posix_memalign(&out, 1 << 16, OPAQUE((size_t)ROOM)) == ENOMEM && out == list);
    EXPECT((errno = 0, realloc(list, OPAQUE((size_t)ROOM)) == NULL && errno == ENOMEM));
    EXPECT(free_all(list) == n);
}

int main(void)
{
    static const size_t sizes[] = {1 << 20, 64, 1 << 20, 16, 5000, 300, 40000, 8 << 20, 64, 3 << 20};
    limit_address_space();
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) test_size(sizes[i]);
    return expect_status();
}
