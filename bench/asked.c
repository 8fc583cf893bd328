/* SPDX-License-Identifier: Apache-2.0 */
/* asked.c, preloaded: glibc's malloc, and how much a program asks it for. At the end of each process one line
 * on standard error: the most bytes asked for at once, the allocations, and the frees.
 *
 *     | what was asked for ... | unused ... | the size asked for |
 *                                           ^ the last 8 usable bytes
 *
 * So nothing precedes an object, and any alignment holds.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

extern void *__libc_malloc(size_t), *__libc_realloc(void *, size_t), *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);
EXPORT void *malloc(size_t), *calloc(size_t, size_t), *realloc(void *, size_t), *memalign(size_t, size_t);
EXPORT void *aligned_alloc(size_t, size_t), free(void *);
EXPORT int posix_memalign(void **, size_t, size_t);
EXPORT size_t malloc_usable_size(void *);

static _Atomic long now, most, allocations, frees;
static int standard_error = 2;

static size_t usable_size(void *block)
{
    static size_t (*real)(void *);
    if (real == NULL) *(void **)&real = dlsym(RTLD_NEXT, "malloc_usable_size");
    return real(block);
}

static size_t *size_of(void *block) { return (size_t *)((char *)block + usable_size(block)) - 1; }

/* A size near SIZE_MAX is left as it is: glibc refuses it. */
static size_t with_size(size_t size) { return size < PTRDIFF_MAX ? size + sizeof(size_t) : size; }

static void *noted(void *block, size_t size)
{
    if (block == NULL) return NULL;
    *size_of(block) = size;
    long sum = atomic_fetch_add(&now, (long)size) + (long)size, before = atomic_load(&most);
    while (sum > before && !atomic_compare_exchange_weak(&most, &before, sum)) {
    }
    atomic_fetch_add(&allocations, 1);
    return block;
}

static void forget(size_t size)
{
    atomic_fetch_sub(&now, (long)size);
    atomic_fetch_add(&frees, 1);
}

void *malloc(size_t size) { return noted(__libc_malloc(with_size(size)), size); }

void *calloc(size_t n, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(n, size, &bytes)) bytes = SIZE_MAX;
    char *block = malloc(bytes);
    for (size_t i = 0; block != NULL && i < bytes; i++) block[i] = 0;
    return block;
}

void *realloc(void *block, size_t size)
{
    size_t before = block != NULL ? *size_of(block) : 0;
    if (block != NULL && size == 0) {
        free(block);
        return NULL;
    }
    void *moved = __libc_realloc(block, with_size(size));
    if (moved == NULL) return NULL;
    if (block != NULL) forget(before);
    return noted(moved, size);
}

void free(void *block)
{
    if (block == NULL) return;
    forget(*size_of(block));
    __libc_free(block);
}

void *memalign(size_t alignment, size_t size)
{
    return noted(__libc_memalign(alignment, with_size(size)), size);
}

void *aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }

int posix_memalign(void **block, size_t alignment, size_t size)
{
    void *made = memalign(alignment, size);
    if (made == NULL) return ENOMEM;
    *block = made;
    return 0;
}

size_t malloc_usable_size(void *block) { return block != NULL ? *size_of(block) : 0; }

/* Programs close standard error before they end. */
__attribute__((constructor)) static void keep_standard_error(void)
{
    int kept = fcntl(2, F_DUPFD_CLOEXEC, 500);
    if (kept >= 0) standard_error = kept;
}

__attribute__((destructor)) static void report(void)
{
    dprintf(standard_error, "asked: most %ld bytes, allocations %ld, frees %ld\n", atomic_load(&most),
            atomic_load(&allocations), atomic_load(&frees));
}
