/* SPDX-License-Identifier: Apache-2.0 */
#include "os/pages.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

static void *map(void *hint, size_t size)
{
    void *p = mmap(hint, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

/* --- ranges that the OS does not unmap -------------------------------------------------------- */

/* The kernel limits the number of mappings of a process (vm.max_map_count). At the limit it cannot cut one in
 * two, and munmap fails. Such a range is emptied at least, and serves again. So does a range that a sandbox
 * lets nobody unmap or empty. No lock: a thread has a piece for itself while it looks at it, and other
 * threads skip it. */
enum { STUCK_MAX = 256 };
enum piece_state { PIECE_NONE, PIECE_BUSY, PIECE_THERE };

static SPARSE struct piece {
    _Atomic enum piece_state state;
    bool is_dirty; /* it may not read as zero */
    char *start;
    size_t size; /* bytes */
} stuck[STUCK_MAX];

static _Atomic unsigned stuck_count;

static bool seize(struct piece *piece, enum piece_state state)
{
    if (atomic_load_explicit(&piece->state, memory_order_relaxed) != state) return false;
    return atomic_compare_exchange_strong(&piece->state, &state, PIECE_BUSY);
}

static void let_go(struct piece *piece)
{
    atomic_store(&piece->state, piece->size != 0 ? PIECE_THERE : PIECE_NONE);
}

static bool extend(struct piece *piece, char *start, size_t size, bool is_dirty)
{
    ASSERT(piece->state == PIECE_BUSY && piece->size != 0);
    bool is_behind = piece->start + piece->size == start;
    if (piece->is_dirty != is_dirty || (!is_behind && start + size != piece->start)) return false;
    if (!is_behind) piece->start = start;
    piece->size += size;
    return true;
}

/* Keeps a range. When the table is full it is lost: addresses, mostly without memory. */
static void stick(char *start, size_t size, bool is_dirty)
{
    ASSERT(size != 0);
    bool done = false;
    for (unsigned i = 0; i < STUCK_MAX && !done; i++) {
        if (!seize(&stuck[i], PIECE_THERE)) continue;
        done = extend(&stuck[i], start, size, is_dirty);
        let_go(&stuck[i]);
    }
    for (unsigned i = 0; i < STUCK_MAX && !done; i++) {
        if (!seize(&stuck[i], PIECE_NONE)) continue;
        stuck[i].is_dirty = is_dirty;
        stuck[i].start = start;
        stuck[i].size = size;
        atomic_fetch_add_explicit(&stuck_count, 1, memory_order_relaxed);
        let_go(&stuck[i]);
        done = true;
    }
}

/* Takes a range from a piece that this thread has seized. */
static char *take_from(struct piece *piece, size_t size, size_t alignment)
{
    ASSERT(piece->state == PIECE_BUSY);
    char *start = (char *)align_up((uintptr_t)piece->start, alignment);
    size_t before = (size_t)(start - piece->start), all = piece->size;
    if (start < piece->start || before > all || all - before < size) return NULL;
    ASSERT(((uintptr_t)start & (alignment - 1)) == 0);
    piece->size = before;
    if (before == 0) atomic_fetch_sub_explicit(&stuck_count, 1, memory_order_relaxed);
    if (all - before != size) stick(start + size, all - before - size, piece->is_dirty);
    return start;
}

static COLD char *take_stuck(size_t size, size_t alignment)
{
    char *start = NULL;
    bool is_dirty = false;
    for (unsigned i = 0; i < STUCK_MAX && start == NULL; i++) {
        if (!seize(&stuck[i], PIECE_THERE)) continue;
        is_dirty = stuck[i].is_dirty;
        start = take_from(&stuck[i], size, alignment);
        let_go(&stuck[i]);
    }
    if (start != NULL && is_dirty && madvise(start, size, MADV_DONTNEED) != 0) memset(start, 0, size);
    return start;
}

/* --- mappings --------------------------------------------------------------------------------- */

static void *map_aligned(size_t size, size_t alignment)
{
    ASSERT(is_power_of_two(alignment) && size % PAGE == 0 && alignment >= PAGE);
    /* The kernel mostly puts a mapping below the last one, where it is often aligned already. */
    char *start = map(NULL, size);
    if (start == NULL || ((uintptr_t)start & (alignment - 1)) == 0) return start;
    pages_unmap(start, size);

    if (size + alignment < size) return NULL;
    start = map(NULL, size + alignment);
    if (start == NULL) return NULL;
    char *aligned = (char *)align_up((uintptr_t)start, alignment);
    size_t before = (size_t)(aligned - start);
    if (before != 0) pages_unmap(start, before);
    pages_unmap(aligned + size, alignment - before);
    ASSERT(((uintptr_t)aligned & (alignment - 1)) == 0 && before < alignment);
    return aligned;
}

void *pages_map(size_t size, size_t alignment)
{
    bool any_stuck = atomic_load_explicit(&stuck_count, memory_order_relaxed) != 0;
    char *start = UNLIKELY(any_stuck) ? take_stuck(size, alignment) : NULL;
    if (start == NULL) start = map_aligned(size, alignment);
    if (start == NULL) errno = ENOMEM; /* not EAGAIN, as for locked memory, or a sandbox's error */
    return start;
}

void *pages_reserve(size_t size)
{
    ASSERT(size != 0 && size % PAGE == 0);
    void *p = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

bool pages_commit(void *start, size_t size)
{
    uintptr_t from = (uintptr_t)start & -(uintptr_t)PAGE, end = align_up((uintptr_t)start + size, PAGE);
    return mprotect((void *)from, end - from, PROT_READ | PROT_WRITE) == 0;
}

void pages_huge(void *start, size_t size, bool may)
{
    int saved = errno; /* a kernel without huge pages sets EINVAL */
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
    int saved = errno; /* a sandbox may refuse the clock: then the time is 0 */
    uint64_t before = cpu_clock();
    *(volatile char *)start = 0;
    uint64_t after = cpu_clock();
    errno = saved;
    return after - before;
}

bool pages_try_unmap(void *start, size_t size)
{
    ASSERT(start != NULL && (uintptr_t)start % PAGE == 0 && size % PAGE == 0);
    int saved = errno;
    bool done = munmap(start, size) == 0;
    errno = saved;
    return done;
}

void pages_unmap(void *start, size_t size)
{
    int saved = errno;
    if (!pages_try_unmap(start, size)) stick(start, size, madvise(start, size, MADV_DONTNEED) != 0);
    errno = saved;
}

bool pages_purge(void *start, size_t size)
{
    int saved = errno;
    bool done = madvise(start, size, MADV_DONTNEED) == 0;
    errno = saved;
    return done;
}

bool pages_protect(void *start, size_t size, bool may_touch)
{
    int saved = errno;
    bool done = mprotect(start, size, may_touch ? PROT_READ | PROT_WRITE : PROT_NONE) == 0;
    errno = saved;
    return done;
}

bool pages_move(void *start, size_t old_size, void *place, size_t new_size)
{
    ASSERT(start != place && (uintptr_t)place % PAGE == 0 && new_size % PAGE == 0);
    if (mremap(start, old_size, new_size, MREMAP_MAYMOVE | MREMAP_FIXED, place) == place) return true;
    if (errno == EPERM || errno == ENOSYS)
        pages_unmap(place, new_size); /* from a sandbox: the kernel did nothing */
    return false;
}

bool pages_resize(void *start, size_t old_size, size_t new_size)
{
    ASSERT((uintptr_t)start % PAGE == 0 && new_size % PAGE == 0);
    int saved = errno;
    bool done = mremap(start, old_size, new_size, 0) != MAP_FAILED;
    errno = saved;
    return done;
}

uint64_t pages_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}
