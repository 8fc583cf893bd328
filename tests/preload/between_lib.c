/* SPDX-License-Identifier: Apache-2.0 */
/* A library that stands between all others and libc: each function that libreap-malloc calls of libc, but
 * those on strings and streams, allocates in each way before it calls libc's own. */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Blocks that outlive the call, of the first calls in particular, are freed by later ones. */
enum { KEPT = 64 };
static _Atomic(char *) kept[KEPT];
static atomic_uint turn;
atomic_ulong between_calls;

static void failed(const char *what)
{
    static const char line[] = "between: a block is not whole: ";
    if (write(2, line, sizeof line - 1) < 0 || write(2, what, strlen(what)) < 0 || write(2, "\n", 1) < 0)
        abort();
    abort();
}

static void check(const char *block, size_t size, const char *what)
{
    if (block == NULL || malloc_usable_size((void *)block) < size || block[0] != 'a' ||
        block[size - 1] != 'z')
        failed(what);
}

static char *fill(char *block, size_t size)
{
    if (block == NULL) failed("no memory");
    block[0] = 'a';
    block[size - 1] = 'z';
    return block;
}

static void allocate(void)
{
    int saved = errno;
    unsigned now = atomic_fetch_add(&turn, 1);
    size_t size = 24u << now % 9; /* to 6 KiB */
    char *block = fill(malloc(size), size), *zeroes = calloc(size, 1);
    if (zeroes == NULL || zeroes[0] != 0 || zeroes[size - 1] != 0) failed("calloc");
    void *aligned = NULL;
    if (posix_memalign(&aligned, 64, size) != 0 || (size_t)aligned % 64 != 0) failed("posix_memalign");
    check(block, size, "malloc");
    block = realloc(block, 3 * size);
    if (block == NULL || block[0] != 'a' || block[size - 1] != 'z') failed("realloc");
    free(block);
    free(zeroes);
    free(aligned);
    char *old = atomic_exchange(&kept[now % KEPT], fill(malloc(40), 40));
    if (old != NULL) check(old, 40, "kept");
    free(old);
    free(strdup("a text"));
    atomic_fetch_add(&between_calls, 1);
    errno = saved;
}

/* Before each call, as faketime does, also after the first. */
static void *next(const char *name)
{
    allocate();
    void *function = dlsym(RTLD_NEXT, name);
    allocate();
    return function;
}

#define CALL(name) ((__typeof__(&(name)))next(#name))
#define BETWEEN(type, name, parameters, arguments)                                                           \
    type name parameters { return CALL(name) arguments; }

BETWEEN(pid_t, getpid, (void), ())
BETWEEN(pid_t, gettid, (void), ())
BETWEEN(uid_t, geteuid, (void), ())
BETWEEN(int, sched_yield, (void), ())
BETWEEN(int, sched_getcpu, (void), ())
BETWEEN(ssize_t, getrandom, (void *to, size_t size, unsigned flags), (to, size, flags))
BETWEEN(unsigned long, getauxval, (unsigned long type), (type))
BETWEEN(long, sysconf, (int name), (name))
BETWEEN(int, clock_gettime, (clockid_t clock, struct timespec *now), (clock, now))
BETWEEN(int, clock_nanosleep,
        (clockid_t clock, int flags, const struct timespec *time, struct timespec *left),
        (clock, flags, time, left))
BETWEEN(int, fstat, (int fd, struct stat *is), (fd, is))
BETWEEN(int, lstat, (const char *path, struct stat *is), (path, is))
BETWEEN(void *, mmap, (void *hint, size_t size, int may, int flags, int fd, off_t at),
        (hint, size, may, flags, fd, at))
BETWEEN(int, munmap, (void *start, size_t size), (start, size))
BETWEEN(int, madvise, (void *start, size_t size, int advice), (start, size, advice))
BETWEEN(int, mprotect, (void *start, size_t size, int may), (start, size, may))
BETWEEN(int, dl_iterate_phdr, (int (*fn)(struct dl_phdr_info *, size_t, void *), void *arg), (fn, arg))
BETWEEN(int, _dl_find_object, (void *at, struct dl_find_object *found), (at, found))
BETWEEN(pid_t, fork, (void), ())
BETWEEN(int, pthread_attr_init, (pthread_attr_t * a), (a))
BETWEEN(int, pthread_attr_destroy, (pthread_attr_t * a), (a))
BETWEEN(int, pthread_attr_setdetachstate, (pthread_attr_t * a, int state), (a, state))
BETWEEN(int, pthread_attr_setstacksize, (pthread_attr_t * a, size_t size), (a, size))
BETWEEN(int, pthread_create, (pthread_t * thread, const pthread_attr_t *a, void *(*body)(void *), void *arg),
        (thread, a, body, arg))
BETWEEN(int, pthread_key_create, (pthread_key_t * key, void (*fn)(void *)), (key, fn))
BETWEEN(void *, pthread_getspecific, (pthread_key_t key), (key))
BETWEEN(int, pthread_setspecific, (pthread_key_t key, const void *value), (key, value))
BETWEEN(int, pthread_mutex_init, (pthread_mutex_t * m, const pthread_mutexattr_t *a), (m, a))
BETWEEN(int, pthread_mutex_trylock, (pthread_mutex_t * m), (m))
BETWEEN(int, pthread_mutex_unlock, (pthread_mutex_t * m), (m))
BETWEEN(int, pthread_mutex_consistent, (pthread_mutex_t * m), (m))
BETWEEN(int, pthread_mutexattr_init, (pthread_mutexattr_t * a), (a))
BETWEEN(int, pthread_mutexattr_destroy, (pthread_mutexattr_t * a), (a))
BETWEEN(int, pthread_mutexattr_setrobust, (pthread_mutexattr_t * a, int robust), (a, robust))
BETWEEN(int, pthread_once, (pthread_once_t * once, void (*fn)(void)), (once, fn))
BETWEEN(int, pthread_setcancelstate, (int state, int *old), (state, old))
BETWEEN(int, pthread_setname_np, (pthread_t thread, const char *name), (thread, name))
BETWEEN(int, pthread_sigmask, (int how, const sigset_t *set, sigset_t *old), (how, set, old))
BETWEEN(int, sigfillset, (sigset_t * set), (set))

int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void), void *library);
BETWEEN(int, __register_atfork,
        (void (*prepare)(void), void (*parent)(void), void (*child)(void), void *library),
        (prepare, parent, child, library))
int __cxa_atexit(void (*fn)(void *), void *arg, void *library);
BETWEEN(int, __cxa_atexit, (void (*fn)(void *), void *arg, void *library), (fn, arg, library))
int __cxa_thread_atexit_impl(void (*fn)(void *), void *arg, void *library);
BETWEEN(int, __cxa_thread_atexit_impl, (void (*fn)(void *), void *arg, void *library), (fn, arg, library))

void *mremap(void *start, size_t old_size, size_t size, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    void *place = va_arg(args, void *);
    va_end(args);
    return CALL(mremap)(start, old_size, size, flags, place);
}

long syscall(long number, ...)
{
    long a[6];
    va_list args;
    va_start(args, number);
    for (int i = 0; i < 6; i++) a[i] = va_arg(args, long);
    va_end(args);
    return CALL(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
