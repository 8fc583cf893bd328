#include "pages.h"

#include "lock.h"

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

static struct {
    struct lock lock;
    char *next;
    char *end;
} metadata;

void *pages_metadata(size_t size)
{
    size = align_up(size, 64);
    lock_take(&metadata.lock);
    if (size > (size_t)(metadata.end - metadata.next)) {
        size_t step = align_up(size, METADATA_STEP);
        char *start = pages_map(step, PAGE);
        if (start == NULL) {
            lock_give(&metadata.lock);
            return NULL;
        }
        metadata.next = start;
        metadata.end = start + step;
    }
    void *p = metadata.next;
    metadata.next += size;
    lock_give(&metadata.lock);
    return p;
}

uint64_t pages_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

void pages_fork_prepare(void) { lock_for_fork(&metadata.lock); }

void pages_fork_parent(void) { lock_after_fork(&metadata.lock); }

void pages_fork_child(void) { lock_reset(&metadata.lock); }
