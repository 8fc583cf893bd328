/* malloc.c: the libc names, nothing else.   (floor 6) */
#include "dispatch.h"
#include "hoard.h"
#include "pages.h"

#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

/* libc's own header declares neither; C23 7.24.3. */
void free_sized(void *block, size_t size);
void free_aligned_sized(void *block, size_t alignment, size_t size);
void cfree(void *block);

/* Runs before the constructors of all other libraries (-z initfirst), so that our fork handlers
 * enclose theirs: prepare handlers run last registered first. */
__attribute__((constructor)) static void malloc_start(void) { dispatch_start_late(); }

void *malloc(size_t size) { return dispatch_malloc(size); }

void free(void *block) { dispatch_free(block, "free"); }

void cfree(void *block) { dispatch_free(block, "cfree"); }

void free_sized(void *block, size_t size)
{
    (void)size;
    dispatch_free(block, "free_sized");
}

void free_aligned_sized(void *block, size_t alignment, size_t size)
{
    (void)alignment, (void)size;
    dispatch_free(block, "free_aligned_sized");
}

void *calloc(size_t n, size_t size) { return dispatch_calloc(n, size); }

void *realloc(void *block, size_t size) { return dispatch_realloc(block, size, "realloc"); }

void *reallocarray(void *block, size_t n, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(n, size, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    return dispatch_realloc(block, bytes, "reallocarray");
}

void *aligned_alloc(size_t alignment, size_t size) { return hoard_aligned_alloc(alignment, size); }

int posix_memalign(void **block, size_t alignment, size_t size)
{
    return hoard_posix_memalign(block, alignment, size);
}

/* memalign rounds other alignments up to a power of two, as glibc does. */
void *memalign(size_t alignment, size_t size)
{
    size_t power = BLOCK_UNIT;
    while (power < alignment && power <= SIZE_LIMIT / 2) power *= 2;
    if (power >= alignment) return dispatch_aligned(power, size);
    errno = EINVAL;
    return NULL;
}

static size_t system_page(void) { return (size_t)sysconf(_SC_PAGESIZE); }

void *valloc(size_t size) { return dispatch_aligned(system_page(), size); }

void *pvalloc(size_t size)
{
    size_t page = system_page(), rounded = align_up(size, page);
    if (rounded < size) {
        errno = ENOMEM;
        return NULL;
    }
    return dispatch_aligned(page, rounded);
}

size_t malloc_usable_size(void *block) { return dispatch_usable_size(block, "malloc_usable_size"); }

int malloc_trim(size_t keep) { return hoard_trim(keep); }

/* glibc's parameters have no counterpart here; 0 is its answer to one that it does not know. */
int mallopt(int parameter, int value)
{
    (void)parameter, (void)value;
    return 0;
}

void malloc_stats(void) { hoard_report(stderr); }

struct mallinfo2 mallinfo2(void)
{
    struct hoard_stats s;
    hoard_stats(&s);
    return (struct mallinfo2){
        .arena = s.held_bytes - s.large_bytes,
        .hblkhd = s.large_bytes,
        .usmblks = s.peak_held_bytes,
        .uordblks = s.live_bytes - s.large_bytes,
        .fordblks = s.held_bytes > s.live_bytes ? s.held_bytes - s.live_bytes : 0,
        .keepcost = 0,
    };
}

struct mallinfo mallinfo(void)
{
    struct mallinfo2 m = mallinfo2();
    return (struct mallinfo){
        .arena = (int)m.arena,
        .hblkhd = (int)m.hblkhd,
        .usmblks = (int)m.usmblks,
        .uordblks = (int)m.uordblks,
        .fordblks = (int)m.fordblks,
    };
}

int malloc_info(int options, FILE *out)
{
    if (options != 0) return EINVAL;
    struct hoard_stats s;
    hoard_stats(&s);
    int n = fprintf(out,
                    "<malloc version=\"reap-1\">\n"
                    "<system type=\"current\" size=\"%zu\"/>\n<system type=\"max\" size=\"%zu\"/>\n"
                    "<live size=\"%zu\" large=\"%zu\"/>\n"
                    "<heaps count=\"%zu\" superblocks=\"%zu\" global=\"%zu\" path=\"%s\"/>\n</malloc>\n",
                    s.held_bytes, s.peak_held_bytes, s.live_bytes, s.large_bytes, s.heaps, s.superblocks,
                    s.global_superblocks, s.path);
    return n < 0 ? -1 : 0;
}

/* A vfork child runs on its parent's memory, but not under its parent's restartable sequences; a forked one
 * has memory of its own. */
pid_t vfork(void) { return fork(); }
