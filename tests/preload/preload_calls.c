/* SPDX-License-Identifier: Apache-2.0 */
/* The malloc family, asked for what programs rarely ask: odd sizes, great alignments. What must fail is in
 * preload_errors.c. */
#include "support/expect.h"

#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static const size_t sizes[] = {1, 8, 16, 24, 100, 1000, 4096, 5000, 33000, 100000, 1 << 20, 5 << 20};
enum { SIZES = sizeof sizes / sizeof *sizes };

/* A pattern that tells blocks, and places within a block, apart. */
static void fill(unsigned char *block, size_t size, unsigned seed)
{
    for (size_t i = 0; i < size; i++) block[i] = (unsigned char)(i * 7 + seed);
}

static int is_filled(const unsigned char *block, size_t size, unsigned seed)
{
    for (size_t i = 0; i < size; i++)
        if (block[i] != (unsigned char)(i * 7 + seed)) return 0;
    return 1;
}

static void test_size_zero(void)
{
    void *a = malloc(OPAQUE((size_t)0)), *b = malloc(OPAQUE((size_t)0)), *c = calloc(OPAQUE((size_t)0), 5);
    EXPECT(a && b && c && a != b && b != c && a != c);
    free(a);
    free(b);
    free(c);
    free(NULL);
}

/* realloc(p, 0) may free and give NULL, or give a block of size 0; either way nothing leaks. */
static void test_realloc_to_zero(void)
{
    struct rusage before, after;
    getrusage(RUSAGE_SELF, &before);
    for (int i = 0; i < 200000; i++) {
        char *block = malloc(OPAQUE((size_t)1000));
        memset(block, 1, 1000);
        free(realloc(block, OPAQUE((size_t)0)));
    }
    getrusage(RUSAGE_SELF, &after);
    EXPECT(after.ru_maxrss - before.ru_maxrss < 16 * 1024);
}

static void check_aligned(void *block, size_t alignment, size_t size)
{
    EXPECT(block && (uintptr_t)block % alignment == 0);
    EXPECT(malloc_usable_size(block) >= size);
    memset(block, 0x5a, malloc_usable_size(block));
    free(block);
}

static void test_alignment(void)
{
    for (size_t alignment = 8; alignment <= 8 << 20; alignment *= 2)
        for (int i = 0; i < SIZES - 1; i++) {
            void *out = NULL;
            EXPECT(posix_memalign(&out, alignment, sizes[i]) == 0);
            check_aligned(out, alignment, sizes[i]);
            check_aligned(memalign(alignment, sizes[i]), alignment, sizes[i]);
            check_aligned(aligned_alloc(alignment, sizes[i]), alignment, sizes[i]);
        }
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    check_aligned(valloc(OPAQUE((size_t)10)), page, 10);
    check_aligned(pvalloc(OPAQUE((size_t)10)), page, page);
    check_aligned(pvalloc(OPAQUE(page + 1)), page, 2 * page);
}

/* Aligned blocks can be resized as others can. */
static void test_realloc_of_aligned(void)
{
    for (size_t alignment = 32; alignment <= 1 << 20; alignment *= 2) {
        unsigned char *block = memalign(alignment, 3000);
        fill(block, 3000, 7);
        block = realloc(block, OPAQUE((size_t)70000));
        EXPECT(block && is_filled(block, 3000, 7));
        block = realloc(block, OPAQUE((size_t)100));
        EXPECT(block && is_filled(block, 100, 7));
        free(block);
    }
}

static void test_realloc_keeps_contents(void)
{
    for (int i = 0; i < SIZES; i++)
        for (int j = 0; j < SIZES; j++) {
            size_t common = sizes[i] < sizes[j] ? sizes[i] : sizes[j];
            unsigned char *block = malloc(OPAQUE(sizes[i]));
            fill(block, sizes[i], (unsigned)i);
            block = realloc(block, OPAQUE(sizes[j]));
            EXPECT(block && is_filled(block, common, (unsigned)i));
            EXPECT((uintptr_t)block % 16 == 0);
            free(block);
        }
}

static void test_usable_size(void)
{
    EXPECT(malloc_usable_size(NULL) == 0);
    unsigned char *blocks[SIZES];
    size_t usable[SIZES];
    for (int i = 0; i < SIZES; i++) {
        blocks[i] = malloc(OPAQUE(sizes[i]));
        usable[i] = malloc_usable_size(blocks[i]);
        EXPECT(usable[i] >= sizes[i]);
        fill(blocks[i], usable[i], (unsigned)i);
    }
    for (int i = 0; i < SIZES; i++) {
        EXPECT(malloc_usable_size(blocks[i]) == usable[i]);
        EXPECT(is_filled(blocks[i], usable[i], (unsigned)i));
        free(blocks[i]);
    }
}

static void test_calloc_zeroes_used_memory(void)
{
    for (int i = 0; i < SIZES; i++)
        for (int round = 0; round < 20; round++) {
            unsigned char *block = calloc(OPAQUE(sizes[i]), 1);
            size_t set = 0;
            for (size_t k = 0; k < sizes[i]; k++) set += block[k];
            EXPECT(set == 0);
            memset(block, 0xff, malloc_usable_size(block));
            free(block);
        }
}

/* What libc allocates for its caller is freed by the caller. */
static void test_blocks_from_libc(void)
{
    char *line = NULL, *text = strdup("some text");
    size_t room = 0;
    FILE *file = fmemopen(text, strlen(text), "r");
    EXPECT(file && getline(&line, &room, file) == 9 && strcmp(line, "some text") == 0);
    if (file) fclose(file);
    free(line);
    EXPECT(asprintf(&line, "%0500d", 7) == 500);
    free(line);
    free(text);
    line = realpath("/proc/self/..", NULL);
    EXPECT(line && strcmp(line, "/proc") == 0);
    free(line);
}

/* C23's, which this glibc does not declare: found by name. */
static void test_sized_free(void)
{
    void (*free_sized)(void *, size_t) = (void (*)(void *, size_t))dlsym(RTLD_DEFAULT, "free_sized");
    void (*free_aligned_sized)(void *, size_t, size_t) =
        (void (*)(void *, size_t, size_t))dlsym(RTLD_DEFAULT, "free_aligned_sized");
    if (!free_sized || !free_aligned_sized) return;
    free_sized(malloc(OPAQUE((size_t)100)), 100);
    free_sized(NULL, 0);
    free_aligned_sized(aligned_alloc(64, OPAQUE((size_t)128)), 64, 128);
}

int main(void)
{
    test_size_zero();
    test_realloc_to_zero();
    test_alignment();
    test_realloc_of_aligned();
    test_realloc_keeps_contents();
    test_usable_size();
    test_calloc_zeroes_used_memory();
    test_blocks_from_libc();
    test_sized_free();
    return expect_status();
}
