/* SPDX-License-Identifier: Apache-2.0 */
/* Every error that C17, C23 and POSIX know for the calls of malloc's family, as a table: what is asked, what
 * the answer and errno must be. Whatever fails leaves the block that it was given as it was; what is given is
 * aligned as was asked. And what programs rarely do with blocks. */
#include "support/expect.h"

#include <dlfcn.h>
#include <malloc.h>
#include <sys/resource.h>

enum { BEFORE = 1234 }; /* errno, so that one that is left alone shows */

enum call { MALLOC, CALLOC, REALLOC, REALLOC_NEW, REALLOCARRAY, ALIGNED, POSIX, MEMALIGN, VALLOC, PVALLOC };

/* By a block: there is one, and errno does not matter. NO_... : NULL and errno. BY_RETURN: posix_memalign's
 * way, errno untouched. */
enum answer { A_BLOCK, NO_MEMORY, NO_SENSE, NO_MEMORY_BY_RETURN, NO_SENSE_BY_RETURN };

#define EACH_SIZE(call, first, answer)                                                                       \
    {call, first, SIZE_MAX, answer}, {call, first, SIZE_MAX - 15, answer},                                   \
        {call, first, SIZE_MAX - 4096, answer}, {call, first, (size_t)PTRDIFF_MAX + 1, answer},              \
        {call, first, PTRDIFF_MAX, answer}, {call, first, (size_t)PTRDIFF_MAX - 4096, answer},               \
    {                                                                                                        \
        call, first, (size_t)1 << 47, answer                                                                 \
    }
#define EACH_ALIGNMENT(call, answer)                                                                         \
    {call, 0, 64, answer}, {call, 3, 64, answer}, {call, 24, 64, answer}, {call, 48, 64, answer},            \
        {call, 65535, 64, answer}, {call, (size_t)3 << 40, 64, answer},                                      \
    {                                                                                                        \
        call, SIZE_MAX, 64, answer                                                                           \
    }

#define EACH_POWER(call)                                                                                     \
    {call, 8, 24, A_BLOCK}, {call, 64, 5000, A_BLOCK}, {call, 4096, 1, A_BLOCK},                             \
        {call, 1 << 16, 100000, A_BLOCK}, {call, 1 << 20, 100, A_BLOCK},                                     \
    {                                                                                                        \
        call, 8 << 20, 5 << 20, A_BLOCK                                                                      \
    }

static const struct row {
    enum call call;
    size_t a, b; /* as in the call: n and size, or alignment and size; b alone where it takes one */
    enum answer answer;
} rows[] = {
    /* C17 7.22.3 with 6.5.6: no object is larger than PTRDIFF_MAX; POSIX: ENOMEM. */
    EACH_SIZE(MALLOC, 0, NO_MEMORY),
    EACH_SIZE(CALLOC, 1, NO_MEMORY),
    EACH_SIZE(REALLOC, 0, NO_MEMORY),
    EACH_SIZE(REALLOC_NEW, 0, NO_MEMORY),
    EACH_SIZE(REALLOCARRAY, 1, NO_MEMORY),
    EACH_SIZE(ALIGNED, 4096, NO_MEMORY),
    EACH_SIZE(POSIX, 4096, NO_MEMORY_BY_RETURN),
    EACH_SIZE(MEMALIGN, 4096, NO_MEMORY),
    EACH_SIZE(VALLOC, 0, NO_MEMORY),
    EACH_SIZE(PVALLOC, 0, NO_MEMORY),
    /* n * size that does not fit, whatever is left of it: 0, 16, or much. */
    {CALLOC, (size_t)1 << 32, (size_t)1 << 32, NO_MEMORY},
    {CALLOC, ((size_t)1 << 60) + 1, 16, NO_MEMORY},
    {CALLOC, SIZE_MAX / 2, 3, NO_MEMORY},
    {CALLOC, 3, SIZE_MAX / 2, NO_MEMORY},
    {REALLOCARRAY, (size_t)1 << 32, (size_t)1 << 32, NO_MEMORY},
    {REALLOCARRAY, ((size_t)1 << 60) + 1, 16, NO_MEMORY},
    {REALLOCARRAY, SIZE_MAX / 4, 5, NO_MEMORY},
    /* C17 7.22.3.1 with DR 460: an alignment that is no power of two fails; glibc from 2.38 says EINVAL. */
    EACH_ALIGNMENT(ALIGNED, NO_SENSE),
    EACH_ALIGNMENT(POSIX, NO_SENSE_BY_RETURN),
    /* POSIX: a multiple of sizeof(void *) too. */
    {POSIX, 1, 64, NO_SENSE_BY_RETURN},
    {POSIX, 2, 64, NO_SENSE_BY_RETURN},
    {POSIX, 4, 64, NO_SENSE_BY_RETURN},
    {ALIGNED, 1, 64, A_BLOCK},
    {ALIGNED, 4, 64, A_BLOCK},
    /* An alignment can be right and too much. */
    {ALIGNED, (size_t)1 << 62, 64, NO_MEMORY},
    {ALIGNED, (size_t)1 << 63, 64, NO_MEMORY},
    {POSIX, (size_t)1 << 62, 64, NO_MEMORY_BY_RETURN},
    {POSIX, (size_t)1 << 63, 1, NO_MEMORY_BY_RETURN},
    {MEMALIGN, (size_t)1 << 62, 64, NO_MEMORY},
    {MEMALIGN, (size_t)1 << 63, 64, NO_MEMORY},
    {MEMALIGN, ((size_t)1 << 62) + 1, 64, NO_MEMORY},
    {MEMALIGN, ((size_t)1 << 63) + 1, 64, NO_SENSE}, /* rounds up, but not to this */
    EACH_POWER(ALIGNED),
    EACH_POWER(POSIX),
    EACH_POWER(MEMALIGN),
    {VALLOC, 0, 10, A_BLOCK},
    {PVALLOC, 0, 4097, A_BLOCK},
    {MEMALIGN, 0, 64, A_BLOCK},
    {MEMALIGN, 24, 64, A_BLOCK},
    /* C17: not a multiple of the alignment is no error since DR 460. */
    {ALIGNED, 4096, 1, A_BLOCK},
    /* Size 0: a pointer that can be freed. C17 leaves realloc(p, 0) open, C23 says not to ask. */
    {MALLOC, 0, 0, A_BLOCK},
    {CALLOC, 0, SIZE_MAX, A_BLOCK},
    {CALLOC, SIZE_MAX, 0, A_BLOCK},
    {REALLOC, 0, 0, A_BLOCK},
    {REALLOC_NEW, 0, 0, A_BLOCK},
    {REALLOCARRAY, SIZE_MAX, 0, A_BLOCK},
    {ALIGNED, 64, 0, A_BLOCK},
    {POSIX, 64, 0, A_BLOCK},
    {VALLOC, 0, 0, A_BLOCK},
    {PVALLOC, 0, 0, A_BLOCK},
};

/* What is asked; *kept is a block of ours, and the new one if it was resized. The number that the call
 * returned, if it returns one. */
static int ask(const struct row *row, void **kept, void **out)
{
    size_t a = OPAQUE(row->a), b = OPAQUE(row->b);
    switch (row->call) {
    case MALLOC: *out = malloc(b); break;
    case CALLOC: *out = calloc(a, b); break;
    case REALLOC:
    case REALLOCARRAY:
        *out = row->call == REALLOC ? realloc(OPAQUE(*kept), b) : reallocarray(OPAQUE(*kept), a, b);
        if (*out) *kept = NULL;
        break;
    case REALLOC_NEW: *out = realloc(NULL, b); break;
    case ALIGNED: *out = aligned_alloc(a, b); break;
    case POSIX: return posix_memalign(out, a, b);
    case MEMALIGN: *out = memalign(a, b); break;
    case VALLOC: *out = valloc(b); break;
    case PVALLOC: *out = pvalloc(b); break;
    }
    return 0;
}

static int is_aligned(const struct row *row, const void *block)
{
    size_t alignment = 16;
    if (row->call == VALLOC || row->call == PVALLOC) alignment = (size_t)sysconf(_SC_PAGESIZE);
    if (row->call == ALIGNED || row->call == POSIX || row->call == MEMALIGN)
        while (alignment < row->a) alignment *= 2;
    return (uintptr_t)block % alignment == 0;
}

static int is_right(const struct row *row, void *before, void *out, int returned, int error)
{
    switch (row->answer) {
    case A_BLOCK: return returned == 0 && out && out != before && is_aligned(row, out);
    case NO_MEMORY: return !out && error == ENOMEM;
    case NO_SENSE: return !out && error == EINVAL;
    case NO_MEMORY_BY_RETURN: return out == before && returned == ENOMEM && error == BEFORE;
    case NO_SENSE_BY_RETURN: return out == before && returned == EINVAL && error == BEFORE;
    }
    return 0;
}

/* With a small block to resize, and with a large one, and with one that has a mapping of its own. */
static void test_rows(size_t kept_size)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        static char before;
        char *kept = malloc(OPAQUE(kept_size));
        void *block = kept, *out = &before;
        memset(kept, 'k', kept_size);
        size_t usable = malloc_usable_size(kept);
        errno = BEFORE;
        int returned = ask(&rows[i], &block, &out), error = errno;
        if (!is_right(&rows[i], &before, out, returned, error)) {
            fprintf(stderr, "row %zu, call %d(%#zx, %#zx): %p, returned %d, errno %d\n", i, rows[i].call,
                    rows[i].a, rows[i].b, out, returned, error);
            expect_failures++;
        }
        if (block) {
            EXPECT(kept[0] == 'k' && kept[kept_size - 1] == 'k' && malloc_usable_size(kept) == usable);
            free(kept);
        }
        if (out != &before) free(out);
    }
}

/* free is not to touch errno (POSIX 2024), whatever it does with the memory. */
CASE(test_free_keeps_errno)
{
    static const size_t sizes[] = {1, 100, 5000, 33000, 1 << 20, 5 << 20, 100 << 20};
    void *blocks[1000];
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        size_t n = sizes[i] < 10000 ? 1000 : 10;
        for (size_t k = 0; k < n; k++) blocks[k] = malloc(OPAQUE(sizes[i]));
        for (size_t k = 0; k < n; k++) {
            errno = BEFORE;
            size_t usable = malloc_usable_size(blocks[k]);
            free(blocks[k]);
            EXPECT(usable >= sizes[i] && errno == BEFORE);
        }
    }
    errno = BEFORE;
    free(NULL);
    EXPECT(errno == BEFORE);
}

CASE(test_parameters)
{
    EXPECT(mallopt(M_ARENA_MAX, 1) == 1 && mallopt(M_MMAP_THRESHOLD, 1 << 20) == 1);
    EXPECT(mallopt(M_PERTURB, 0x55) == 0 && mallopt(OPAQUE(12345), 1) == 0);
    errno = 0;
    EXPECT(malloc_info(OPAQUE(1), stderr) != 0 && errno == EINVAL);
}

/* realloc(p, 0) may free and give NULL, or give a block of size 0; either way nothing leaks. */
CASE(test_realloc_to_zero)
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

/* What libc allocates for its caller is freed by the caller. */
CASE(test_blocks_from_libc)
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
CASE(test_sized_free)
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
    test_rows(100);
    test_rows(100000);
    test_rows(9 << 20);
    return run_cases(NULL);
}
