/* SPDX-License-Identifier: Apache-2.0 */
/* reap_shard.h: the parts of a shared reap in which threads allocate without its lock.
 *
 * A shared reap has a shard for each heap id whose threads have used it. The first one allocates in the reap
 * itself, which is the *whole* reap; each other one has a bare reap (merge.h), with chunks of its own:
 *
 *     face ──> table | id 0 | id 1 | id 2 | ...
 *                       |      |
 *                       |      └──> | shard: holder | bare reap | ──> chunks
 *                       └─────────> | shard: holder |
 *                                        └──> the whole reap      ──> chunks
 *
 * A thread enters the shard of its id by a section (rseq.h), whose one store makes it the shard's holder.
 * Another store ends this. So the thread has the shard for itself, free lists and all, and neither takes a
 * lock nor makes an atomic instruction. Where there are no sections, a compare-and-swap is in their place.
 *
 * An object of another shard goes into an outbox of the thread's own shard. A full outbox goes onto the
 * remote list of the other shard's reap, by one atomic instruction for all its objects. The second word of
 * each says that the object is pending: so a second free is recognized at once. The other shard's slow path
 * frees them. When more than SHARD_PENDING bytes wait, the thread that has sent them takes that shard for a
 * moment, and frees them itself: so the memory goes back also when no thread has that id any more.
 *
 * A call that needs the whole reap (a clear, a mark, a walk, a limit) holds the lock, and *gathers*: it takes
 * all shards, empties the outboxes, frees what is pending, and moves all chunks to the whole reap. Now the
 * reap is as a reap without shards is, and the code for marks, walks and limits knows nothing of shards.
 * Where the call ends, the reap *scatters*: the shards are free again. It does not while it has a limit or a
 * mark, or while it is watched; then each call takes the lock. It waits for some calls too if the gathering
 * has interrupted other threads: so calls that gather cost each call beside them a small part of that. It
 * also waits while more than half of its memory is free: for what a scattered reap allocates, all shards but
 * one take new chunks, and objects in the chunks that were gathered only die.
 *
 * Vocabulary
 *     holder    the thread that has entered the shard, as the address of its lock_depth; or SHARD_TAKEN
 *     take      to become the holder of another id's shard, or of all shards
 *     home      the face's data of all shards
 *
 * Invariants
 *     - a shard, once made, stays until the reap ends; each table has the shards of those before it
 *     - while a reap is gathered all shards are taken, and all objects are in the whole reap
 * - a thread that has entered a shard waits for no thread that holds the reap's lock, or has another shard;
 *       it calls no function of the program
 *     - the chunks of a shard belong to its reap, until a gathering moves them
 *
 * Threads: enter, leave and what is in between, any; all else under the lock of the face.
 */
#ifndef REAP_SHARD_H
#define REAP_SHARD_H

#include "base/lock.h"
#include "heap/heap_path.h"
#include "region/merge.h"

enum {
    SHARD_TAKEN = 1,           /* a holder that is no thread */
    SHARD_PENDING = 128 * 1024 /* bytes that may wait on a shard's remote list */
};

enum { BOXES = 4 };

/* Objects of another shard that a shard's threads have freed, linked as on the remote list. */
struct outbox {
    struct reap *to;
    uintptr_t head;  /* the last one that came */
    uintptr_t *last; /* the first one */
    uint32_t count;
    uint32_t units;
};

struct reap_shard {
    _Atomic(uint64_t) holder;
    _Atomic(uint32_t) stopped; /* threads that are about to take it: meanwhile no thread may enter */
    uint16_t id;
    _Atomic(bool) forks; /* stopped by a fork */
    struct reap *reap;
    struct reap_shard *next; /* of the home's list */
    struct outbox boxes[BOXES];
};

struct shard_table {
    struct shard_home *home;
    struct shard_table *older;
    uint64_t n;
    _Atomic(struct reap_shard *) of[]; /* by id */
};
static_assert(offsetof(struct shard_table, of) == offsetof(struct shard_table, n) + sizeof(uint64_t) &&
                  offsetof(struct reap_shard, holder) == 0 &&
                  offsetof(struct reap_shard, stopped) == sizeof(uint64_t),
              "rseq_claim knows where these are");

struct shard_home {
    struct reap_shard *shards; /* all; the whole reap's is the last one */
    struct shard_table *table;
    size_t bytes;      /* of memory, with tables and shards */
    unsigned patience; /* calls until the reap scatters */
    unsigned delays;   /* how often it may still wait, for free memory to be used */
    bool gathered;
    _Alignas(64) struct reap_shard main; /* of the whole reap */
};

/* A shard with a bare reap. */
struct shard_memory {
    _Alignas(64) struct reap_shard shard;
    struct reap_bare bare;
};

static inline uint64_t shard_me(void) { return (uintptr_t)&lock_depth; }

struct reap_shard *shard_enter_locked(const struct shard_table *table);

/* Enters this thread's shard of a table that there is. NULL: it has none, or the shard is taken. */
static ALWAYS_INLINE struct reap_shard *shard_enter_by_section(struct shard_table *table)
{
    ASSERT(table && !heap_path_is_locked());
    return rseq_claim(&table->n, shard_me());
}

/* The same by a section or not, of any table, or of NULL. */
static ALWAYS_INLINE struct reap_shard *shard_enter(struct shard_table *table)
{
    if (UNLIKELY(!table)) return NULL;
    return UNLIKELY(heap_path_is_locked()) ? shard_enter_locked(table) : shard_enter_by_section(table);
}

/* Returns true if the table, or NULL, has a shard of the id, or of HEAP_POLICY_NONE. */
static inline bool shard_is_there(const struct shard_table *table, unsigned id)
{
    return table && id < table->n && atomic_load_explicit(&table->of[id], memory_order_relaxed);
}

static inline void shard_leave(struct reap_shard *shard)
{
    ASSERT(shard->holder == shard_me());
    atomic_store_explicit(&shard->holder, 0, memory_order_release);
}

/* Puts a checked object of another shard's reap, of `units` units, into an outbox of an entered shard.
 * Returns the reap on whose list too much waits, or NULL. */
struct reap *shard_send(struct reap_shard *shard, struct reap *to, void *object, size_t units);

/* Returns true if a chunk is live. A thread that is in no shard, and does not hold the reap, may see the
 * chunk of a shared reap while a gathering moves it: then its owner and its tag do not fit each other for a
 * moment. */
bool shard_chunk_is_live(const struct reap_chunk *chunk);

/* The same without waiting: false while a gathering goes on. */
bool shard_chunk_is_known(const struct reap_chunk *chunk, bool *is_live);

/* --- under the lock of the face ---------------------------------------------------------------- */

/* Returns true if the threads of the reap may allocate in shards. */
bool shard_is_possible(const struct reap *whole);

/* Makes the shard of this thread's id, and the first table (NULL). Returns the table; NULL: no memory. errno
 * is kept. */
struct shard_table *shard_add(struct shard_table *table, struct reap *whole, void *face);

/* The first of all shards, or NULL. Any thread may go through the list while the reap lives. */
static inline struct reap_shard *shard_first(const struct shard_table *table)
{
    return table ? __atomic_load_n(&table->home->shards, __ATOMIC_ACQUIRE) : NULL;
}

/* Returns true if the reap is as one without shards is. */
static inline bool shard_is_gathered(const struct shard_table *table)
{
    return !table || table->home->gathered;
}

/* Gathers. `ends`: the reap is to end, so no other thread is in a call on it, and none needs to be
 * interrupted. */
void shard_gather(struct shard_table *table, bool ends);
void shard_scatter(struct shard_table *table);

/* Scatters, or waits for free memory to be used. */
void shard_try_scatter(struct shard_table *table);

/* Where a call ends, while the reap is gathered: scatters, if it may. */
static inline void shard_call_ends(struct shard_table *table, const struct reap *whole)
{
    if (!table || !table->home->gathered || !shard_is_possible(whole)) return;
    if (table->home->patience > 0)
        table->home->patience--;
    else
        shard_try_scatter(table);
}

/* Frees the pending objects of one shard's reap. */
void shard_drain(struct shard_table *table, const struct reap *reap);

/* Gives back the shards of a gathered reap that ends. */
void shard_end(struct shard_table *table);

/* Waits for a moment, as often as it is told. */
void shard_wait(unsigned round);

/* --- fork -------------------------------------------------------------------------------------- */

/* In the child no gathering goes on. */
void shard_fork_child_begins(void);

/* Stops all shards. After the next fence shard_all_are_free returns true once no thread is in one.
 * shard_go_on lets them go on. In the child shard_fork_child frees the shards that other threads had entered,
 * or were taking. */
void shard_stop_all(const struct shard_table *table);
bool shard_all_are_free(const struct shard_table *table);
void shard_go_on(const struct shard_table *table);
void shard_fork_child(const struct shard_table *table);

#endif
