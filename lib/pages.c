#include "pages.h"

#include <errno.h>
#include <sys/mman.h>
#include <time.h>

static void *map(void *hint, size_t size)
{
    void *p = mmap(hint, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

void *pages_map(size_t size, size_t alignment)
{
    /* The kernel mostly puts a mapping below the last one: often aligned by itself. */
    char *start = map(NULL, size);
    if (start == NULL || ((uintptr_t)start & (alignment - 1)) == 0) return start;
    pages_unmap(start, size);

    if (size + alignment < size) {
        errno = ENOMEM;
        return NULL;
    }
    start = map(NULL, size + alignment);
    if (start == NULL) return NULL;
    char *aligned = (char *)align_up((uintptr_t)start, alignment);
    size_t before = (size_t)(aligned - start);
    if (before != 0) pages_unmap(start, before);
    pages_unmap(aligned + size, alignment - before);
    return aligned;
}

void pages_huge(void *start, size_t size, bool may)
{
    int saved = errno; /* a kernel without huge pages says EINVAL */
    madvise(start, size, may ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    errno = saved;
}

static uint64_t cpu_clock(void)
{
    struct timespec now = {0, 0};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

uint64_t pages_touch(void *start)
{
    int saved = errno; /* a sandbox may refuse the clock: then it stands still */
    uint64_t before = cpu_clock();
    *(volatile char *)start = 0;
    uint64_t after = cpu_clock();
    errno = saved;
    return after - before;
}

void pages_unmap(void *start, size_t size)
{
    int saved = errno;
    munmap(start, size);
    errno = saved;
}

bool pages_purge(void *start, size_t size)
{
    int saved = errno;
    bool done = madvise(start, size, MADV_DONTNEED) == 0;
    errno = saved;
    return done;
}

bool pages_move(void *start, size_t old_size, void *place, size_t new_size)
{
    return mremap(start, old_size, new_size, MREMAP_MAYMOVE | MREMAP_FIXED, place) == place;
}

bool pages_resize(void *start, size_t old_size, size_t new_size)
{
    int saved = errno;
    bool done = mremap(start, old_size, new_size, 0) != MAP_FAILED;
    errno = saved;
    return done;
}

/* --- metadata -------------------------------------------------------------------------------- */

enum { METADATA_STEP = 256 * 1024 }; /* bytes mapped at a time */

struct metadata {
    _Atomic size_t used; /* bytes, these too; beyond METADATA_STEP: nothing is left */
    _Alignas(64) char bytes[];
};

static _Atomic(struct metadata *) metadata;

/* The rest of the one before is lost. Of two threads that map one, the later gives its own back. */
static bool metadata_map(struct metadata *before)
{
    struct metadata *more = pages_map(METADATA_STEP, PAGE);
    if (more == NULL) return false;
    atomic_store_explicit(&more->used, sizeof *more, memory_order_relaxed);
    if (!atomic_compare_exchange_strong(&metadata, &before, more)) pages_unmap(more, METADATA_STEP);
    return true;
}

void *pages_metadata(size_t size)
{
    size = align_up(size, 64);
    if (size > METADATA_STEP - sizeof(struct metadata)) return pages_map(align_up(size, PAGE), PAGE);
    for (;;) {
        struct metadata *now = atomic_load_explicit(&metadata, memory_order_acquire);
        size_t at = now != NULL ? atomic_fetch_add(&now->used, size) : METADATA_STEP;
        if (at + size <= METADATA_STEP) return (char *)now + at;
        if (!metadata_map(now)) return NULL;
    }
}

uint64_t pages_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}
