/* SPDX-License-Identifier: Apache-2.0 */
#include "faults.h"

#include "base/lock.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define WRAP(type, name, ...)                                                                                \
    type __real_##name(__VA_ARGS__);                                                                         \
    type __wrap_##name(__VA_ARGS__);                                                                         \
    type __wrap_##name(__VA_ARGS__)

static const struct {
    const char *name;
    int error;
} kinds[FAULT_CALLS] = {
    [FAULT_MMAP] = {"mmap", ENOMEM},
    [FAULT_MUNMAP] = {"munmap", ENOMEM},
    [FAULT_MREMAP] = {"mremap", ENOMEM},
    [FAULT_MADVISE] = {"madvise", EINVAL},
    [FAULT_MEMBARRIER] = {"membarrier", EPERM},
    [FAULT_FUTEX] = {"futex", EINTR},
    [FAULT_AFFINITY] = {"sched_getaffinity", EINVAL},
    [FAULT_GETCPU] = {"sched_getcpu", ENOSYS},
    [FAULT_OPEN] = {"open", EMFILE},
    [FAULT_READ] = {"read", EIO},
    [FAULT_FCNTL] = {"fcntl", EMFILE},
    [FAULT_WRITE] = {"write", EIO},
    [FAULT_ATFORK] = {"pthread_atfork", ENOMEM},
    [FAULT_THREAD] = {"pthread_create", EAGAIN},
    [FAULT_FENCE] = {"a fence", ENOMEM},
};

const struct fault_plan faults_none;
static struct fault_plan plan;
static atomic_ulong asked, injected, with_lock[FAULT_CALLS];

const char *faults_name(enum fault_call call) { return kinds[call].name; }

void faults_plan(struct fault_plan next)
{
    plan = next;
    asked = 0;
    injected = 0;
    for (unsigned i = 0; i < FAULT_CALLS; i++) with_lock[i] = 0;
}

unsigned long faults_with_lock(enum fault_call call) { return with_lock[call]; }

unsigned long faults_injected(void) { return injected; }

unsigned long faults_asked(void) { return asked; }

static bool by_chance(unsigned one_in)
{
    static __thread uint64_t state;
    if (state == 0) state = (uintptr_t)&state * 0x9e3779b97f4a7c15u | 1;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (state >> 20) % one_in == 0;
}

static bool fails(enum fault_call call, size_t size)
{
    if (lock_held() > (call == FAULT_FUTEX)) with_lock[call]++;
    if ((plan.calls >> call & 1) == 0) return false;
    if (plan.most != 0 && (size < plan.least || size > plan.most)) return false;
    unsigned long n = asked++;
    bool now = plan.one_in != 0 ? by_chance(plan.one_in) : n >= plan.after && n - plan.after < plan.times;
    if (!now) return false;
    injected++;
    errno = plan.error != 0 ? plan.error : kinds[call].error;
    return true;
}

enum { LEFT_MAX = 4096, PAGE_SIZE = 4096, PAGES_AT_ONCE = 1024 };
static struct {
    char *start;
    size_t size;
} left[LEFT_MAX];
static atomic_uint left_count;

static void leave(void *start, size_t size)
{
    unsigned i = left_count < LEFT_MAX ? left_count++ : LEFT_MAX;
    if (i >= LEFT_MAX) return;
    left[i].start = start;
    left[i].size = size;
}

/* It was unmapped after all, and is another's. */
static void is_mapped(const char *start, size_t size)
{
    for (unsigned i = 0; i < left_count && i < LEFT_MAX; i++)
        if (left[i].start < start + size && start < left[i].start + left[i].size) left[i].size = 0;
}

static size_t resident_in(char *start, size_t size)
{
    static unsigned char pages[PAGES_AT_ONCE];
    size_t bytes = 0;
    for (size_t step; size != 0; start += step, size -= step) {
        step = size < sizeof pages * PAGE_SIZE ? size : sizeof pages * PAGE_SIZE;
        if (mincore(start, step, pages) != 0) { /* part of it was unmapped after all */
            if (step == PAGE_SIZE) continue;
            bytes += resident_in(start, step / 2 & -(size_t)PAGE_SIZE);
            step = step / 2 & -(size_t)PAGE_SIZE;
            continue;
        }
        for (size_t i = 0; i < step / PAGE_SIZE; i++) bytes += (pages[i] & 1) * (size_t)PAGE_SIZE;
    }
    return bytes;
}

size_t faults_left_resident(void)
{
    size_t bytes = 0;
    for (unsigned i = 0; i < left_count && i < LEFT_MAX; i++)
        bytes += resident_in(left[i].start, left[i].size);
    left_count = 0;
    return bytes;
}

WRAP(void *, mmap, void *hint, size_t size, int access, int flags, int fd, off_t offset)
{
    if (fails(FAULT_MMAP, size)) return MAP_FAILED;
    void *start = __real_mmap(hint, size, access, flags, fd, offset);
    if (start != MAP_FAILED) is_mapped(start, size);
    return start;
}

WRAP(int, munmap, void *start, size_t size)
{
    if (!fails(FAULT_MUNMAP, size)) return __real_munmap(start, size);
    leave(start, size);
    return -1;
}

/* With MREMAP_FIXED the place may be gone when it fails, and here it is, but for what only a sandbox says. */
void *__real_mremap(void *start, size_t old_size, size_t new_size, int flags, ...);
void *__wrap_mremap(void *start, size_t old_size, size_t new_size, int flags, ...);
void *__wrap_mremap(void *start, size_t old_size, size_t new_size, int flags, ...)
{
    void *place = NULL;
    if (flags & MREMAP_FIXED) {
        va_list args;
        va_start(args, flags);
        place = va_arg(args, void *);
        va_end(args);
    }
    if (!fails(FAULT_MREMAP, new_size)) return __real_mremap(start, old_size, new_size, flags, place);
    int error = errno;
    if (place && error != EPERM) __real_munmap(place, new_size);
    errno = error;
    return MAP_FAILED;
}

WRAP(int, madvise, void *start, size_t size, int advice)
{
    return fails(FAULT_MADVISE, size) ? -1 : __real_madvise(start, size, advice);
}

static bool call_fails(long number, long first)
{
    switch (number) {
    case SYS_membarrier:
        return fails(first == MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_RSEQ ? FAULT_MEMBARRIER : FAULT_FENCE,
                     0);
    case SYS_futex: return fails(FAULT_FUTEX, 0);
    case SYS_sched_getaffinity: return fails(FAULT_AFFINITY, 0);
    case SYS_getcpu: return fails(FAULT_GETCPU, 0);
    case SYS_openat: return fails(FAULT_OPEN, 0);
    case SYS_read: return fails(FAULT_READ, 0);
    case SYS_write: return fails(FAULT_WRITE, 0);
    case SYS_fcntl: return fails(FAULT_FCNTL, 0);
    default: return false;
    }
}

WRAP(long, kernel_call, long number, long a, long b, long c, long d, long e, long f)
{
    return call_fails(number, a) ? -1 : __real_kernel_call(number, a, b, c, d, e, f);
}

/* These return the error, and leave errno alone. */
WRAP(int, pthread_atfork, void (*prepare)(void), void (*parent)(void), void (*child)(void))
{
    return fails(FAULT_ATFORK, 0) ? errno : __real_pthread_atfork(prepare, parent, child);
}

WRAP(int, pthread_create, pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *),
     void *arg)
{
    return fails(FAULT_THREAD, 0) ? errno : __real_pthread_create(thread, attributes, body, arg);
}
