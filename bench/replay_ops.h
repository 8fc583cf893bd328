/* SPDX-License-Identifier: Apache-2.0 */
/* replay_ops.h: what replay.c does, made of a trace, for each of its threads.
 *
 * A process of its own reads the trace, into memory that both have: so the malloc that is measured has served
 * nobody before. An object, or a pool, has a number; a later one may get the same.
 *
 *     order     of one thread, as recorded. What concerns an object, or a pool, that another thread had last
 *               waits until that thread is as far. And no thread is more than a window ahead of any other
 */
#ifndef REPLAY_OPS_H
#define REPLAY_OPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { REPLAY_THREADS = 1024, REPLAY_WINDOW = 4096 };

enum replay_kind {
    REPLAY_NEW,
    REPLAY_FREE,
    REPLAY_READ, /* it ends with its pool */
    REPLAY_RESIZE,
    REPLAY_POOL,
    REPLAY_POOL_CLEAR,
    REPLAY_POOL_END
};

/* Of all threads, in the trace's order. after[]: what has to be done before, by its number, plus 1: of its
 * object, and of its pool. */
struct replay_op {
    uint64_t size;
    uint64_t after[2];
    uint32_t number; /* of the object, or of the pool */
    uint32_t pool;   /* 0: malloc's; of a pool its parent, 0: none */
    uint32_t next;   /* ops until the thread's next one, or past the last of all */
    uint16_t thread;
    uint8_t kind;
};

/* What a process of one replay has found. */
struct replay_round {
    uint64_t ns;
    long grown_kib;
    bool is_done;
};

struct replay {
    uint64_t n, room;
    struct replay_round round;
    int file; /* of this and of the ops: a process that has inherited it attaches to them */
    uint32_t n_objects, n_pools, n_threads;
    uint64_t most_bytes; /* that the trace has at once */
    uint64_t n_early;    /* objects that end after their last use */
    bool is_whole;
    uint64_t first[REPLAY_THREADS]; /* op of a thread */
    struct replay_op
        ops[]; /* and then, by window and thread, the least CPU time of all rounds, in nanoseconds */
};

static inline uint64_t *replay_least(struct replay *replay, uint64_t window, unsigned thread)
{
    return (uint64_t *)(replay->ops + replay->n) + window * replay->n_threads + thread;
}

/* The ops of a trace; NULL, with a line on standard error: there are none. keeps_pools: pools are, else each
 * of their objects is freed when its pool ends. early, or NULL: what reap-analyse --early has written,
 * objects to be freed after their last use, in the place of their end. */
struct replay *replay_load(const char *path, bool keeps_pools, const char *early);
struct replay *replay_attach(int file);

#endif
