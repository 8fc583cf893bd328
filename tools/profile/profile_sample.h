/* SPDX-License-Identifier: Apache-2.0 */
/* profile_sample.h: which bytes are sampled, and the calls that the profile puts in the place of the
 * program's.
 *
 * Sample points lie on the bytes that a thread allocates as a Poisson process: one in `period` bytes, at
 * distances that know nothing of each other. A thread counts down the bytes to its next point. An object with
 * a point on it is sampled. Because such a process has no memory, any new range of bytes may be the next one
 * on a thread's line, also one that is never used to its end.
 *
 *     thread's line    | malloc 48 | malloc 200 | hole of a reap, 60 KiB ...      | malloc 16 |
 *                                                          ^ point                      ^ the next one
 *
 * Threads: the count is the thread's own.
 */
#ifndef PROFILE_SAMPLE_H
#define PROFILE_SAMPLE_H

#include "profile_table.h"

/* A call of the program's, and what it calls while the profile is on. */
struct profile_call {
    const char *name;
    void *instead;
    void **real;
    bool in_core; /* only where libreap or libreap-malloc defines it: others' come to malloc by themselves */
};
extern const struct profile_call profile_mallocs[], profile_reaps[]; /* up to one without a name */

/* Bytes to the thread's next point; 0 also means that it has none yet. */
extern __thread size_t profile_left __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* The mean number of bytes between two samples, for points that are drawn from now on. */
void profile_set_period(size_t bytes);

/* Takes a range of bytes onto the thread's line. Returns the bytes before its first point; `bytes` if there
 * is none, also where the thread does the profile's own work. */
size_t profile_first_point(size_t bytes);

/* Counts an object, if no point lies on it for certain. For fast paths: nothing is called. */
static inline bool profile_passes(size_t window)
{
    bool passes = __builtin_expect(window < profile_left, 1);
    if (passes) profile_left -= window;
    return passes;
}

/* Counts an object of at least one byte. Returns true if it is sampled. */
static inline bool profile_counts(size_t window)
{
    return !profile_passes(window) && profile_first_point(window) < window;
}

/* Notes a sampled object, which has just been allocated (NULL: it has not been), in a reap or by malloc,
 * where usable tells what it takes. Keeps errno. */
void profile_note(const void *object, size_t size, size_t window, size_t (*usable)(void *object));

/* Returns true if the thread has entered a reap, and the caller is libc: libreap-malloc must see who calls,
 * since such an object is not the reap's (reapEnter). It is not sampled. */
bool profile_is_for_libc(const void *caller);

/* Forgets an object that is about to be freed, if it was sampled. is_owner: this thread may use the object's
 * reap. Keeps errno. */
void profile_forget_sampled(const void *object, bool is_owner);
static inline void profile_forget(const void *object)
{
    if (__builtin_expect(profile_may_have(object), 0)) profile_forget_sampled(object, false);
}

#endif
