/* SPDX-License-Identifier: Apache-2.0 */
/* profile_table.h: what the heap profile has seen: stacks, and sampled objects that live.
 *
 * A sampled object stands for `scale` objects of its size: 1 / (1 - exp(-window / period)), where window are
 * the bytes in which a sample point might have fallen. So sums over samples are right on the average,
 * whatever the sizes are.
 *
 *     pages      how many samples live in pages of this number, read by each free without a lock
 *        |
 *     buckets -> sample -> sample        objects that live, by their addresses
 *                  |
 *     hashes  -> stack -> stack          frames, a name; sums of all samples, and of live ones
 *
 * The name of an object of a reap is the reap's; of one of malloc it is that of the reap that the thread
 * works for (reapCharge), behind PROFILE_MALLOC, or "".
 *
 * Invariants
 *     - A count of pages is that of the samples there; after the profile was stopped it is 0.
 *     - The sums of live objects of all stacks are those of the samples.
 *     - The memory is bounded: what finds no room is counted as `lost`, and is in no sum.
 *
 * Threads: any; one lock, which is held over no call of the allocator. fork takes it, so a child is whole.
 */
#ifndef PROFILE_TABLE_H
#define PROFILE_TABLE_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    PROFILE_BUCKETS = 1 << 18,
    PROFILE_SAMPLES = 1 << 17, /* that live at once */
    PROFILE_STACKS = 1 << 15,
    PROFILE_FRAMES = 1 << 20, /* of all stacks */
    PROFILE_DEPTH = 64,       /* frames of a stack; deeper ones lose their beginning */
    PROFILE_NAMES = 1024,
    PROFILE_CHARGES = 512, /* of these names, at most for malloc: there may be as many as URLs */
    PROFILE_NAME = 120     /* bytes that tell names of reaps apart */
};

#define PROFILE_MALLOC "malloc for "

/* A sum over objects: how many, their bytes as asked for, and those that they take. */
struct profile_sum {
    double objects, bytes, taken;
};

struct profile_stack {
    uint32_t next;  /* of the same hash */
    uint32_t first; /* its frames: return addresses, innermost first */
    uint16_t depth;
    uint16_t name;
    bool is_malloc; /* no reap has the objects */
    uint32_t hash;
    struct profile_sum all, live;
};

struct profile_figures {
    uint64_t samples, lost;
    uint32_t live, stacks;
};

/* An object that was just allocated. */
struct profile_object {
    const void *address;
    size_t size, taken, window, period;
    const char *name; /* of its reap, or of that which the thread works for; NULL: of none */
    const void *reap; /* NULL: no reap has it */
};

/* False: no memory. */
bool profile_table_make(void);

/* Forgets everything, and takes samples from now on; and takes none any more, with all sums as they are. */
void profile_table_start(void);
void profile_table_stop(void);

/* How many objects of its size a sampled object stands for. */
static inline double profile_table_scale(const struct profile_object *object)
{
    return -1 / expm1(-(double)object->window / (double)object->period);
}

/* Adds a sample, with the stack of the caller (loads: see profile_unwind). Returns its number, which is never
 * used again; 0: it is not there. */
uint64_t profile_table_add(const struct profile_object *object, uint64_t loads);

/* Takes a sample away, by its object or by its number. The first call returns its number, or 0. */
uint64_t profile_table_remove(const void *object);
void profile_table_end(uint64_t number);

void profile_table_count(uint64_t *bytes); /* profile_face.h */

/* Calls fn for each stack, with its frames and name, under the lock: fn must not allocate. */
void profile_table_walk(void (*fn)(const struct profile_stack *stack, void *const *frames, const char *name,
                                   void *arg),
                        void *arg);
struct profile_figures profile_table_figures(void);

/* Adds each live sample to the sum of its stack, by the number of the stack in that walk; or only those of
 * reaps for which wants is true, under the lock. */
void profile_table_sum(bool (*wants)(const void *reap), struct profile_sum sums[PROFILE_STACKS]);

/* Around a fork, also in the child. */
void profile_table_lock(void);
void profile_table_unlock(void);

/* One sample in 512 KiB is one in 128 pages, and a free reads one word for 64 of them. */
enum { PROFILE_PAGES = 1 << 16 };
extern uint32_t profile_pages[PROFILE_PAGES] __attribute__((visibility("hidden")));

static inline uint32_t *profile_page(const void *object)
{
    return &profile_pages[(uintptr_t)object / 4096 % PROFILE_PAGES];
}

/* Returns true if the object may be sampled. */
static inline bool profile_may_have(const void *object)
{
    return __atomic_load_n(profile_page(object), __ATOMIC_RELAXED) != 0;
}

/* The same by the object's bucket, which few share: only after profile_table_make. */
bool profile_table_may_have(const void *object);

#endif
