/* SPDX-License-Identifier: Apache-2.0 */
#include "os/pages.h"

#include "base/kernel.h"
#include "base/options.h"

#include <link.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>

static void *map_with(void *hint, size_t size, int may)
{
    void *p = LIBC(mmap, hint, size, may, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

static void *map(void *hint, size_t size) { return map_with(hint, size, PROT_READ | PROT_WRITE); }

/* Returns true if the call succeeded; errno stays. */
#define QUIETLY(call)                                                                                        \
    __extension__({                                                                                          \
        int saved_ = errno;                                                                                  \
        bool done_ = (call) == 0;                                                                            \
        errno = saved_;                                                                                      \
        done_;                                                                                               \
    })

/* --- ranges that the OS does not unmap -------------------------------------------------------- */

/* The kernel limits the number of mappings of a process (vm.max_map_count). At the limit it cannot cut one
 * in two, and munmap fails. Such a range is emptied at least, and serves again; so does one that a sandbox
 * lets nobody unmap. No lock: a thread claims a piece before it looks at it, and others skip it. */
enum { STUCK_MAX = 256 };
#define CLAIMED ((char *)1)

static SPARSE struct stuck {
    _Atomic(char *) start; /* NULL: no piece; CLAIMED: a thread reads or writes it */
    size_t size;           /* bytes */
    bool is_dirty;         /* it may not read as zero */
} stuck[STUCK_MAX];

static _Atomic unsigned stuck_count;

/* Keeps a range. When the table is full it is lost: addresses, mostly without memory. */
static void stick(char *start, size_t size, bool is_dirty)
{
    for (struct stuck *piece = stuck; size != 0 && piece < stuck + STUCK_MAX; piece++) {
        char *there = NULL;
        if (!atomic_compare_exchange_strong(&piece->start, &there, CLAIMED)) continue;
        piece->size = size;
        piece->is_dirty = is_dirty;
        atomic_fetch_add_explicit(&stuck_count, 1, memory_order_relaxed);
        atomic_store(&piece->start, start);
        return;
    }
}

static COLD char *take_stuck(size_t size, size_t alignment)
{
    for (struct stuck *piece = stuck; piece < stuck + STUCK_MAX; piece++) {
        char *start = atomic_load(&piece->start);
        if (start == NULL || start == CLAIMED) continue;
        if (!atomic_compare_exchange_strong(&piece->start, &start, CLAIMED)) continue;
        size_t before = align_up((uintptr_t)start, alignment) - (uintptr_t)start, all = piece->size;
        bool is_dirty = piece->is_dirty, fits = before <= all && all - before >= size;
        atomic_store(&piece->start, fits ? NULL : start);
        if (!fits) continue;
        atomic_fetch_sub_explicit(&stuck_count, 1, memory_order_relaxed);
        char *place = start + before;
        stick(start, before, is_dirty);
        stick(place + size, all - before - size, is_dirty);
        if (is_dirty && LIBC(madvise, place, size, MADV_DONTNEED) != 0) memset(place, 0, size);
        return place;
    }
    return NULL;
}

/* --- mappings --------------------------------------------------------------------------------- */

static void *map_aligned(size_t size, size_t alignment)
{
    ASSERT(is_power_of_two(alignment) && size % PAGE == 0 && alignment >= PAGE);
    /* The kernel mostly puts a mapping below the last one, where it is often aligned already. */
    char *start = map(NULL, size);
    if (start == NULL || ((uintptr_t)start & (alignment - 1)) == 0) return start;
    pages_unmap(start, size);

    /* What lies below is mostly free. The larger mapping after this may be more than a limit allows. */
    start = map((char *)((uintptr_t)start & -alignment), size);
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
    return map_with(NULL, size, PROT_NONE);
}

bool pages_commit(void *start, size_t size)
{
    uintptr_t from = (uintptr_t)start & -(uintptr_t)PAGE, end = align_up((uintptr_t)start + size, PAGE);
    return LIBC(mprotect, (void *)from, end - from, PROT_READ | PROT_WRITE) == 0;
}

void pages_name(void *start, size_t size, const char *name)
{
    static _Atomic bool refused;
    if (!options.names || atomic_load_explicit(&refused, memory_order_relaxed)) return;
    if (!QUIETLY(KERNEL(SYS_prctl, PR_SET_VMA, PR_SET_VMA_ANON_NAME, start, size, name)))
        atomic_store_explicit(&refused, true, memory_order_relaxed);
}

void *pages_map_table(size_t size)
{
    void *start = pages_map(size, PAGE);
    if (start != NULL) pages_name(start, size, PAGES_TABLES);
    return start;
}

void pages_huge(void *start, size_t size, bool may)
{
    QUIETLY(LIBC(madvise, start, size, may ? MADV_HUGEPAGE : MADV_NOHUGEPAGE)); /* there may be none */
}

static uint64_t cpu_clock(void)
{
    struct timespec now = {0, 0};
    KERNEL(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

uint64_t (*pages_cpu_clock)(void) = cpu_clock;

uint64_t pages_touch(void *start)
{
    int saved = errno; /* a sandbox may refuse the clock: then the time is 0 */
    uint64_t before = pages_cpu_clock();
    *(volatile char *)start = 0;
    uint64_t after = pages_cpu_clock();
    errno = saved;
    return after - before;
}

bool pages_try_unmap(void *start, size_t size)
{
    ASSERT(start != NULL && (uintptr_t)start % PAGE == 0 && size % PAGE == 0);
    return QUIETLY(LIBC(munmap, start, size));
}

void pages_unmap(void *start, size_t size)
{
    if (!pages_try_unmap(start, size)) stick(start, size, !pages_purge(start, size));
}

bool pages_purge(void *start, size_t size) { return QUIETLY(LIBC(madvise, start, size, MADV_DONTNEED)); }

bool pages_protect(void *start, size_t size, bool may_touch)
{
    return QUIETLY(LIBC(mprotect, start, size, may_touch ? PROT_READ | PROT_WRITE : PROT_NONE));
}

bool pages_move(void *start, size_t old_size, void *place, size_t new_size)
{
    ASSERT(start != place && (uintptr_t)place % PAGE == 0 && new_size % PAGE == 0);
    if (LIBC(mremap, start, old_size, new_size, MREMAP_MAYMOVE | MREMAP_FIXED, place) == place) return true;
    if (errno == EPERM || errno == ENOSYS)
        pages_unmap(place, new_size); /* from a sandbox: the kernel did nothing */
    return false;
}

/* From Linux 5.7 on; Valgrind refuses it. Of a locked range (mlockall) the kernel would unlock all of
 * the mapping around it; MADV_COLD, which does little else, tells whether it is one. */
void *pages_lift(void *start, size_t size)
{
    if (!QUIETLY(LIBC(madvise, start, PAGE, MADV_COLD))) return NULL;
    int saved = errno;
    void *place = LIBC(mremap, start, size, size, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL);
    errno = saved;
    return place != MAP_FAILED ? place : NULL;
}

bool pages_resize(void *start, size_t old_size, size_t new_size)
{
    ASSERT((uintptr_t)start % PAGE == 0 && new_size % PAGE == 0);
    return QUIETLY(LIBC(mremap, start, old_size, new_size, 0) == MAP_FAILED);
}

#ifdef __aarch64__
#define VDSO_CLOCK "__kernel_clock_gettime"
#else
#define VDSO_CLOCK "__vdso_clock_gettime"
#endif
static int (*vdso_clock)(clockid_t, struct timespec *); /* NULL: the kernel maps none */

void pages_find_clock(void)
{
    const char *image = (const char *)getauxval(AT_SYSINFO_EHDR);
    const ElfW(Ehdr) *file = (const void *)image;
    const ElfW(Shdr) *sections = image != NULL ? (const void *)(image + file->e_shoff) : NULL;
    for (unsigned i = 0; image != NULL && i < file->e_shnum; i++) {
        if (sections[i].sh_type != SHT_DYNSYM) continue;
        const char *names = image + sections[sections[i].sh_link].sh_offset;
        const ElfW(Sym) *symbol = (const void *)(image + sections[i].sh_offset);
        for (size_t n = sections[i].sh_size / sizeof *symbol; n > 0; n--, symbol++)
            if (strcmp(names + symbol->st_name, VDSO_CLOCK) == 0)
                vdso_clock = (int (*)(clockid_t, struct timespec *))(image + symbol->st_value);
    }
}

uint64_t pages_clock(void)
{
    struct timespec now = {0, 0};
    if (vdso_clock == NULL || vdso_clock(CLOCK_MONOTONIC_COARSE, &now) != 0)
        KERNEL(SYS_clock_gettime, CLOCK_MONOTONIC_COARSE, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}
