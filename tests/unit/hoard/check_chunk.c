/* SPDX-License-Identifier: Apache-2.0 */
/* check_chunk.c: memory for reaps: chunks, and the way from any pointer to its chunk. */
#include "support/check_backend.h"

#include "arena/arena.h"
#include "heap/heap.h"
#include "hoard/chunk_provider.h"
#include "os/pages.h"

enum { CHUNKS = 60, STEPS = 20000 };

static struct {
    char *at; /* NULL: none */
    size_t size;
} chunks[CHUNKS];

static void assert_found(unsigned i, uint64_t *random)
{
    char *at = chunks[i].at;
    for (unsigned n = 0; n < 5; n++) {
        size_t got = 0, offset = n == 0   ? 0
                                 : n == 1 ? chunks[i].size - 1
                                          : random_next(random) % chunks[i].size;
        ck_assert_ptr_eq(chunk_of(at + offset, &got), at);
        ck_assert_uint_eq(got, chunks[i].size);
    }
}

static void mark(unsigned i)
{
    memset(chunks[i].at, (int)i + 1, 64);
    chunks[i].at[chunks[i].size - 1] = (char)(i + 1);
}

static void assert_marked(unsigned i, size_t size)
{
    ck_assert(all_bytes(chunks[i].at, 64, (unsigned char)(i + 1)));
    if (size >= chunks[i].size) ck_assert_int_eq(chunks[i].at[chunks[i].size - 1], (char)(i + 1));
}

static size_t random_size(uint64_t *random)
{
    static const size_t limits[] = {2 * KIB, 8 * KIB, 32 * KIB, 32 * KIB, 300 * KIB, 300 * KIB, MIB, 6 * MIB};
    return 1 + random_next(random) % limits[random_below(random, 8)];
}

static void allocate(unsigned i, uint64_t *random)
{
    size_t size = random_size(random), got = 0;
    bool zeroed = true;
    char *at = chunk_alloc(size, &got, &zeroed);
    ck_assert_ptr_nonnull(at);
    ck_assert_uint_eq((uintptr_t)at % CHUNK_MIN, 0);
    ck_assert_uint_ge(got, size);
    ck_assert_uint_le(got, size <= KIB        ? KIB
                           : size <= 32 * KIB ? 2 * size + 8 * KIB
                                              : size + size / 4 + 64 * KIB);
    size_t wrong = 0;
    for (size_t b = 0; zeroed && b < got; b += 509) wrong += at[b] != 0;
    ck_assert_uint_eq(wrong, 0);
    chunks[i].at = at;
    chunks[i].size = got;
    mark(i);
}

static void resize(unsigned i, uint64_t *random)
{
    size_t want = random_size(random), got = 0, old = chunks[i].size;
    bool done = chunk_resize(chunks[i].at, want, &got);
    ck_assert_int_eq(done, got >= want);
    if (old <= 32 * KIB) ck_assert_uint_eq(got, old); /* blocks of a superblock stay as they are */
    size_t marked = chunks[i].size;
    chunks[i].size = got;
    if (got < marked)
        assert_marked(i, 0);
    else if (got == marked)
        assert_marked(i, got);
    mark(i);
}

TEST(chunks_agree_with_a_model, .times = PATHS)
{
    use_path(_i, NULL);
    uint64_t random = random_seed();
    for (unsigned step = 0, steps = steps_of(STEPS); step < steps; step++) {
        unsigned i = random_below(&random, CHUNKS), what = random_below(&random, 3);
        if (chunks[i].at == NULL) {
            allocate(i, &random);
        } else if (what == 0) {
            resize(i, &random);
        } else if (what == 1) {
            assert_marked(i, chunks[i].size);
            errno = 99;
            chunk_free(chunks[i].at);
            ck_assert_int_eq(errno, 99);
            chunks[i].at = NULL;
        }
        if (chunks[i].at != NULL) assert_found(i, &random);
    }
    for (unsigned i = 0; i < CHUNKS; i++)
        if (chunks[i].at != NULL) chunk_free(chunks[i].at);
    assert_all_comes_back();
}

TEST(what_is_no_chunk_is_in_none, .times = PATHS)
{
    use_path(_i, NULL);
    int on_stack;
    char *block = hoard_malloc(8192), *large = hoard_malloc(100000), *huge = hoard_malloc(5 * MIB);
    char *chunk = chunk_alloc(8192, NULL, NULL), *large_chunk = chunk_alloc(100000, NULL, NULL);
    char *mapping = chunk_alloc(40 * MIB + PAGE, NULL, NULL);
    size_t got;
    const void *strangers[] = {NULL,
                               &on_stack,
                               block,
                               block + 100,
                               large,
                               large + 70000,
                               huge,
                               huge + 4500000,
                               (void *)UINTPTR_MAX,
                               (void *)((uintptr_t)chunk | (uintptr_t)1 << 47)};
    for (size_t i = 0; i < sizeof strangers / sizeof strangers[0]; i++)
        ck_assert_ptr_null(chunk_of(strangers[i], &got));
    ck_assert_ptr_eq(chunk_of(large_chunk + 60000, NULL), large_chunk);
    ck_assert_ptr_eq(chunk_of(large_chunk + 70000, NULL), large_chunk);
    ck_assert_ptr_eq(chunk_of(large_chunk + 70000, &got), large_chunk);
    ck_assert_ptr_ne(chunk_of(large_chunk + got, NULL), large_chunk);
    ck_assert_ptr_ne(chunk_of(chunk + 8192, NULL), chunk);
    ck_assert_ptr_eq(chunk_of(mapping + 40 * MIB, NULL), mapping);
    ck_assert_ptr_null(chunk_of(mapping + 40 * MIB + PAGE, NULL)); /* in a unit of the map that it has */
    chunk_free(mapping);
    chunk_free(large_chunk);
    ck_assert_ptr_null(chunk_of(large_chunk, NULL));
    ck_assert_ptr_null(chunk_of(large_chunk + 70000, NULL));
    ck_assert_ptr_null(chunk_alloc(SIZE_MAX, NULL, NULL));
    ck_assert_int_eq(errno, ENOMEM);
    ck_assert_ptr_null(chunk_alloc((size_t)PTRDIFF_MAX, NULL, NULL));
}

/* Chunks and blocks for programs never share a superblock, also not one that served the other before. */
TEST(superblocks_change_their_kind, .times = PATHS)
{
    use_path(_i, NULL);
    static void *held[2000];
    for (unsigned round = 0; round < 6; round++) {
        bool for_chunks = round % 2 != 0;
        for (unsigned i = 0; i < 2000; i++) {
            held[i] = for_chunks ? chunk_alloc(8192, NULL, NULL) : hoard_malloc(4096);
            ck_assert_int_eq(chunk_of(held[i], NULL) != NULL, for_chunks);
        }
        for (unsigned i = 0; i < 2000; i++) {
            if (for_chunks)
                chunk_free(held[i]);
            else
                hoard_free(held[i]);
        }
    }
    ck_assert(heap_is_valid());
}

int main(void) { return run_tests((struct suite){0}); }
