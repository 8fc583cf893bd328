/* SPDX-License-Identifier: Apache-2.0 */
#include "profile_sample.h"

#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <math.h>
#include <pthread.h>
#include <time.h>

#define REAP_OPTIONAL
#include "profile_own.h"
#include "profile_patch.h"
#include "reap.h"

__thread size_t profile_left;
__thread bool profile_busy;

/* The thread's period is that by which its next point was drawn, so that each sample has its own weight. */
static __thread size_t period __attribute__((tls_model("initial-exec")));
static __thread uint64_t chance __attribute__((tls_model("initial-exec")));
static size_t next_period = 1;

void profile_set_period(size_t bytes) { __atomic_store_n(&next_period, bytes, __ATOMIC_RELAXED); }

/* splitmix64 (Steele and others 2014), begun by the time and the thread. */
static uint64_t random_bits(void)
{
    static uint64_t threads;
    if (chance == 0) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        chance = (uint64_t)now.tv_nsec + ((uint64_t)now.tv_sec << 30);
        chance += __atomic_add_fetch(&threads, 1, __ATOMIC_RELAXED) * 0x2545f4914f6cdd1d;
    }
    uint64_t z = chance += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

/* The distance to the next point, of an exponential distribution; at least 1. */
static size_t draw(void)
{
    period = __atomic_load_n(&next_period, __ATOMIC_RELAXED);
    double u = (double)((random_bits() >> 11) + 1) * 0x1p-53; /* 0 < u <= 1 */
    return (size_t)(-log(u) * (double)period) + 1;
}

size_t profile_first_point(size_t bytes)
{
    if (profile_left == 0) profile_left = draw();
    if (bytes > PTRDIFF_MAX || profile_busy) return bytes;
    if (bytes < profile_left) {
        profile_left -= bytes;
        return bytes;
    }
    size_t before = profile_left - 1;
    profile_left = 0; /* drawn when the weight of this sample is known: see profile_note */
    return before;
}

/* --- objects --------------------------------------------------------------------------------- */

/* A reap that is cleared, rewound or destroyed takes its samples along, and those of the reaps below it. */
static void ended_with_reap(void *number)
{
    bool was_busy = profile_busy;
    profile_busy = true;
    profile_table_end((uintptr_t)number);
    profile_busy = was_busy;
}

/* errno stays, and nothing that this does is the program's. */
struct own_work {
    int error, state;
};
static struct own_work begin_own_work(void)
{
    struct own_work work = {.error = errno};
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &work.state);
    profile_busy = true;
    return work;
}
static void end_own_work(struct own_work work)
{
    profile_busy = false;
    pthread_setcancelstate(work.state, NULL);
    errno = work.error;
}

static const void *home_of(const void *address)
{
    Dl_info info;
    return dladdr(address, &info) ? info.dli_fbase : NULL;
}

bool profile_is_for_libc(const void *caller)
{
    if (!reapEntered || !reapEntered()) return false;
    const void *home = home_of(caller);
    return home == home_of(dlsym(RTLD_NEXT, "fopen")) || home == home_of(&_r_debug);
}

static void note(const void *object, size_t size, size_t window, size_t (*usable)(void *object))
{
    void *reap = NULL;
    struct profile_object sample = {.address = object, .size = size, .window = window, .period = period};
    bool in_reap = reapOf && reapOf(object, &reap) == 0;
    sample.taken = in_reap ? reapUsableSize(object) : usable((void *)(uintptr_t)object);
    const char *name = in_reap ? reapName(&reap) : reapCharged ? reapCharged() : NULL;
    sample.name = in_reap && !name ? "" : name;
    sample.reap = in_reap ? reap : NULL;
    uint64_t number = profile_table_add(&sample, profile_patch_new());
    if (number && in_reap && reapOnDestroy(&reap, ended_with_reap, (void *)(uintptr_t)number) != 0)
        profile_table_end(number);
}

void profile_note(const void *object, size_t size, size_t window, size_t (*usable)(void *object))
{
    if (!object || profile_busy) return;
    struct own_work work = begin_own_work();
    note(object, size, window, usable);
    end_own_work(work);
}

/* The reap's record of a sample goes with it, but where another thread frees the object: then at the reap's
 * end. */
void profile_forget_sampled(const void *object, bool is_owner)
{
    void *reap = NULL;
    if (profile_busy || !profile_table_may_have(object)) return;
    struct own_work work = begin_own_work();
    uint64_t number = profile_table_remove(object);
    if (number && reapOf && reapOf(object, &reap) == 0 && (is_owner || reapEntered() == reap))
        reapCancelOnDestroy(&reap, ended_with_reap, (void *)(uintptr_t)number);
    end_own_work(work);
}
