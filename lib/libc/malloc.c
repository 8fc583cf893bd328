/* SPDX-License-Identifier: Apache-2.0 */
/* malloc.c: the names of libc's allocator. */

/* malloc ends in jumps to its slow paths: so they have its return address. Below -O2 GCC makes calls. */
#ifndef __clang__
#pragma GCC optimize("O2")
#endif
#include "arena/large.h"
#include "hoard.h"
#include "hoard/init.h"
#include "hoard/malloc_fast.h"
#include "hoard/redirect.h"
#include "reap.h"

#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

/* libc's header declares none of these; C23 7.24.3 has the first two. */
void free_sized(void *block, size_t size);
void free_aligned_sized(void *block, size_t alignment, size_t size);
void cfree(void *block);

/* A libreap that comes before this library looks for this name: see redirect.h. */
extern const char reap_malloc_is_here[];
const char reap_malloc_is_here[] = REAP_VERSION;
extern const char redirect_has_malloc[sizeof REAP_VERSION]
    __attribute__((alias("reap_malloc_is_here"), visibility("hidden")));

void own_free(void *block) __attribute__((alias("free"), visibility("hidden"), leaf, nothrow));

/* False where the program has a malloc of its own. Another address of free alone does not tell: in a
 * program at a fixed address it is an entry of its PLT, whoever defines free. */
static bool malloc_is_ours(void)
{
    if (LIKELY(UNKNOWN(free) == own_free)) return true;
    void *block = malloc(1);
    bool is_ours = block == NULL || pagemap_find(block) != NULL;
    free(block);
    return is_ours;
}

/* The constructor runs before those of all other libraries (-z initfirst), so that our fork handlers enclose
 * theirs: the prepare handler that was registered last runs first. */
__attribute__((constructor)) static void malloc_start(void)
{
    redirect_on = true; /* the hoard may start now */
    redirect_on = malloc_is_ours();
    hoard_start_late();
}

#define CALLER __builtin_return_address(0)

#ifndef __clang__
static NOINLINE void *malloc_of_caller(size_t size) { return hoard_malloc_slow(size, CALLER); }
static NOINLINE void *malloc_medium(size_t size) { return hoard_medium_with(size, malloc_of_caller); }

/* malloc, to be inlined in calls that end with it: Lua allocates by realloc alone. */
static ALWAYS_INLINE void *malloc_here(size_t size)
{
    return hoard_malloc_with(size, malloc_of_caller, malloc_medium);
}
#else
/* clang makes calls of them below -O2, and nothing in a source changes that. */
static ALWAYS_INLINE void *malloc_here(size_t size)
{
    if (UNLIKELY(redirect_reap != NULL)) return hoard_malloc_any(size, CALLER);
    return hoard_malloc_with(size, hoard_malloc_heap, hoard_malloc_medium);
}
#endif

void *malloc(size_t size) { return malloc_here(size); }

void free(void *block) { hoard_free_fast(block, "free"); }

void cfree(void *block) { hoard_free_fast(block, "cfree"); }

void free_sized(void *block, size_t size) { hoard_free_sized_fast(block, size, "free_sized"); }

void free_aligned_sized(void *block, size_t alignment, size_t size)
{
    (void)alignment;
    hoard_free_sized_fast(block, size, "free_aligned_sized");
}

void *calloc(size_t n, size_t size) { return hoard_calloc_any(n, size, CALLER); }

void *realloc(void *block, size_t size)
{
    return block == NULL ? malloc_here(size) : hoard_realloc_any(block, size, "realloc");
}

void *reallocarray(void *block, size_t n, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(n, size, &bytes)) return no_memory();
    if (UNLIKELY(!redirect_on)) return realloc(block, bytes);
    if (UNLIKELY(block == NULL)) return hoard_malloc_any(bytes, CALLER);
    return hoard_realloc_any(block, bytes, "reallocarray");
}

void *aligned_alloc(size_t alignment, size_t size)
{
    if (is_power_of_two(alignment)) return hoard_aligned(alignment, size, CALLER);
    errno = EINVAL;
    return NULL;
}

int posix_memalign(void **block, size_t alignment, size_t size)
{
    return hoard_posix_memalign_any(block, alignment, size, CALLER);
}

/* memalign rounds other alignments up to a power of two, as glibc does. */
void *memalign(size_t alignment, size_t size)
{
    size_t power = BLOCK_UNIT;
    while (power < alignment && power <= SIZE_MAX / 2) power *= 2;
    if (power >= alignment) return hoard_aligned(power, size, CALLER);
    errno = EINVAL;
    return NULL;
}

static size_t system_page(void) { return (size_t)sysconf(_SC_PAGESIZE); }

void *valloc(size_t size) { return hoard_aligned(system_page(), size, CALLER); }

void *pvalloc(size_t size)
{
    size_t page = system_page(), rounded = align_up(size, page);
    return rounded < size ? no_memory() : hoard_aligned(page, rounded, CALLER);
}

size_t malloc_usable_size(void *block) { return hoard_usable_size_any(block, "malloc_usable_size"); }

int malloc_trim(size_t keep) { return hoard_trim(keep); }

/* mallopt accepts hints on time and room, since programs may insist on 1. It refuses parameters that would
 * change what a program sees (M_PERTURB, M_CHECK_ACTION). */
int mallopt(int parameter, int value)
{
    (void)value;
    switch (parameter) {
    case M_MXFAST:
    case M_TRIM_THRESHOLD:
    case M_TOP_PAD:
    case M_MMAP_THRESHOLD:
    case M_MMAP_MAX:
    case M_ARENA_TEST:
    case M_ARENA_MAX: return 1;
    default: return 0;
    }
}

void malloc_stats(void) { hoard_report(stderr); }

/* The figures come one after the other while threads allocate: a difference may be below 0. */
static size_t less(size_t all, size_t part) { return all > part ? all - part : 0; }

/* glibc's names: arena and hblkhd are the bytes from the OS for small and for large objects; uordblks and
 * fordblks are the used and the unused bytes of them; keepcost has the bytes that malloc_trim gives back
 * without a look into superblocks. */
struct mallinfo2 mallinfo2(void)
{
    struct hoard_stats s;
    hoard_stats(&s);
    return (struct mallinfo2){
        .arena = less(s.held_bytes, s.large_bytes),
        .hblks = large_totals().objects,
        .hblkhd = s.large_bytes,
        .usmblks = s.peak_held_bytes,
        .uordblks = less(s.live_bytes, s.large_bytes),
        .fordblks = less(s.held_bytes, s.live_bytes),
        .keepcost = arena_held().unused,
    };
}

/* A figure too large for an int is INT_MAX, where glibc's figures start again at 0. */
static int clamp(size_t n) { return n < INT_MAX ? (int)n : INT_MAX; }

struct mallinfo mallinfo(void)
{
    struct mallinfo2 m = mallinfo2();
    return (struct mallinfo){
        .arena = clamp(m.arena),
        .hblks = clamp(m.hblks),
        .hblkhd = clamp(m.hblkhd),
        .usmblks = clamp(m.usmblks),
        .uordblks = clamp(m.uordblks),
        .fordblks = clamp(m.fordblks),
        .keepcost = clamp(m.keepcost),
    };
}

/* For bad options the manual promises -1 and errno, and glibc returns the number: both can be seen. */
int malloc_info(int options, FILE *out)
{
    if (options != 0) {
        errno = EINVAL;
        return EINVAL;
    }
    struct hoard_stats s;
    hoard_stats(&s);
    int n = fprintf(out,
                    "<malloc version=\"reap-1\">\n"
                    "<system type=\"current\" size=\"%zu\"/>\n<system type=\"max\" size=\"%zu\"/>\n"
                    "<live size=\"%zu\" large=\"%zu\"/>\n<unused size=\"%zu\"/>\n"
                    "<heaps count=\"%zu\" superblocks=\"%zu\" global=\"%zu\" path=\"%s\"/>\n</malloc>\n",
                    s.held_bytes, s.peak_held_bytes, s.live_bytes, s.large_bytes, arena_held().unused,
                    s.heaps, s.superblocks, s.global_superblocks, s.path);
    return n < 0 ? -1 : 0;
}

/* A vfork child runs on its parent's memory, but not under its parent's restartable sequences. A forked one
 * has memory of its own. (libreap-malloc.7 says what programs see of that.) */
pid_t vfork(void) { return fork(); }
