/* SPDX-License-Identifier: Apache-2.0 */
/* reap_shard.c: the parts of a shared reap in which threads allocate without its lock. */
#include "reap/reap_shard.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "hoard.h"
#include "reap/misuse.h"
#include "region/reap_free.h"

enum {
    FIRST_IDS = 8,   /* of the first table */
    PATIENCE = 64,   /* calls that take the lock after other threads were interrupted */
    DELAY = 1024, /* calls that take the lock while much of the memory is free */
    DELAYS = 64, /* so often after a gathering */
    SPARSE_MIN = 1024 * 1024, /* bytes; a smaller reap may have any part of them free */
    BOX = 32,        /* objects in an outbox */
    BOX_UNITS = 1024, /* units in an outbox */
    MANY_UNITS = 1 << 24 /* an object counts as this number at most */
};

/* At the end of a fork another thread may put a shard before the first one meanwhile. */
#define FOR_EACH_SHARD(shard, home)                                                                          \
    for (struct reap_shard *shard = __atomic_load_n(&(home)->shards, __ATOMIC_ACQUIRE); shard != NULL;       \
         shard = shard->next)

/* --- entering -------------------------------------------------------------------------------- */

struct reap_shard *shard_enter_locked(const struct shard_table *table)
{
    uint64_t none = 0;
    unsigned id = heap_path_id_for_malloc();
    struct reap_shard *shard = id < table->n ? atomic_load(&table->of[id]) : NULL;
    if (!shard || !atomic_compare_exchange_strong(&shard->holder, &none, shard_me())) return NULL;
    if (LIKELY(!atomic_load(&shard->stopped))) return shard;
    atomic_store(&shard->holder, 0);
    return NULL;
}

/* Sleeps. A thread that waits for a shard may hold the reap: so this must be no cancellation point, as libc's
 * own call is. */
static void nap(long ns)
{
    int saved = errno;
    struct timespec time = {.tv_nsec = ns};
    syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &time, NULL);
    errno = saved;
}

/* The holder may be a stopped thread, of lower priority too: so this ends in sleep. */
void shard_wait(unsigned round)
{
    if (round < 4) {
        lock_pause();
    } else if (round < 32) {
        sched_yield();
    } else {
        nap(round < 64 ? 50 * 1000 : 1000 * 1000);
    }
}

/* --- taking ---------------------------------------------------------------------------------- */

static bool is_taken(const struct reap_shard *shard)
{
    return atomic_load_explicit(&shard->holder, memory_order_relaxed) == SHARD_TAKEN;
}

/* Waits until a stopped shard is free, and takes it. */
static void take_stopped(struct reap_shard *shard)
{
    uint64_t holder = 0;
    for (unsigned round = 0; !atomic_compare_exchange_strong(&shard->holder, &holder, SHARD_TAKEN); round++) {
        ASSERT(holder != shard_me());
        shard_wait(round);
        holder = 0;
    }
    atomic_fetch_sub(&shard->stopped, 1);
}

/* Takes the shard of this thread's own id without stopping it. */
static bool take_own(struct reap_shard *shard)
{
    if (heap_path_is_locked() || rseq_id() != shard->id) return false;
    if (rseq_store(shard->id, &shard->holder, 0, SHARD_TAKEN) != RSEQ_DONE) return false;
    atomic_thread_fence(memory_order_acquire);
    return true;
}

/* Takes a shard that no thread has entered, and that none is about to enter. */
static bool take_quiet(struct reap_shard *shard)
{
    uint64_t none = 0;
    return atomic_compare_exchange_strong_explicit(&shard->holder, &none, SHARD_TAKEN, memory_order_acquire,
                                                   memory_order_relaxed);
}

static bool stop(struct reap_shard *shard, bool ends)
{
    if (ends ? take_quiet(shard) : take_own(shard)) return false;
    atomic_fetch_add(&shard->stopped, 1);
    return true;
}

static void take(struct reap_shard *shard)
{
    if (!stop(shard, false)) return;
    heap_path_fence();
    take_stopped(shard);
}

static void let_go(struct reap_shard *shard)
{
    ASSERT(is_taken(shard));
    atomic_store_explicit(&shard->holder, 0, memory_order_release);
}

/* True: that took a fence. */
static bool take_all(struct shard_home *home, bool ends)
{
    bool any = false;
    FOR_EACH_SHARD(shard, home) any |= stop(shard, ends);
    if (!any) return false;
    heap_path_fence();
    FOR_EACH_SHARD(shard, home) if (!is_taken(shard)) take_stopped(shard);
    return true;
}

/* --- what is freed in other shards ----------------------------------------------------------- */

/* Puts all objects of an outbox onto the remote list, and counts their units there: about, since another
 * thread may count at the same time. Returns the count. */
static unsigned deliver(struct outbox *box)
{
    struct reap *to = box->to;
    uintptr_t head = atomic_load_explicit(&to->remote, memory_order_relaxed);
    ASSERT(box->count != 0 && box->head != 0);
    do box->last[0] = head;
    while (!atomic_compare_exchange_weak_explicit(&to->remote, &head, box->head, memory_order_release,
                                                  memory_order_relaxed));
    unsigned before = head ? atomic_load_explicit(&to->turn, memory_order_relaxed) : 0;
    unsigned units = before + box->units;
    atomic_store_explicit(&to->turn, units, memory_order_relaxed);
    *box = (struct outbox){.to = to};
    return units;
}

static struct outbox *box_for(struct reap_shard *shard, const struct reap *to)
{
    return &shard->boxes[((uintptr_t)to / 64 ^ (uintptr_t)to / 4096) % BOXES];
}

/* Delivers what is in a box. Returns the reap on whose list too much waits, or NULL. */
static struct reap *deliver_all(struct outbox *box)
{
    if (box->count == 0) return NULL;
    return deliver(box) > SHARD_PENDING / REAP_UNIT ? box->to : NULL;
}

struct reap *shard_send(struct reap_shard *shard, struct reap *to, void *object, size_t units)
{
    struct outbox *box = box_for(shard, to);
    struct reap *due = NULL;
    uintptr_t *words = object;
    ASSERT(shard->holder == shard_me() && to != shard->reap && (uintptr_t)object % REAP_UNIT == 0);
    if (UNLIKELY(box->to != to)) {
        due = deliver_all(box);
        box->to = to;
    }
    words[0] = box->head;
    words[1] = reap_pending(object);
    if (!box->head) box->last = words;
    box->head = reap_link(object, false);
    box->units += units < MANY_UNITS ? (uint32_t)units : MANY_UNITS;
    if (++box->count < BOX && box->units < BOX_UNITS) return due;
    struct reap *full = deliver_all(box);
    return full ? full : due;
}

/* Frees a pending object. One that was pushed twice comes a second time, when it is free. */
static void free_pending(struct reap *reap, void *object)
{
    if (LIKELY(reap_free_fast(reap, object)) || reap_free_last(reap, object)) return;
    struct reap_chunk *chunk = reap_chunk_of_object(reap, object, "reapFree");
    size_t unit = reap_unit(chunk, object);
    if (chunk->kind == REAP_WHOLE) {
        reap_chunk_release(reap, chunk);
        reap_free_settle(reap);
    } else {
        reap_free_block(reap, chunk, unit, reap_block_end(reap, chunk, unit));
    }
}

/* Frees the pending objects of a taken shard. */
static void drain(struct reap *reap)
{
    uintptr_t link = atomic_exchange_explicit(&reap->remote, 0, memory_order_acquire);
    while (link) {
        uintptr_t *words = reap_link_object(link);
        link = words[0];
        words[1] = 0; /* not reap_pending() any more */
        free_pending(reap, words);
    }
}

void shard_drain(struct shard_table *table, const struct reap *reap)
{
    FOR_EACH_SHARD(shard, table->home)
    {
        if (shard->reap != reap) continue;
        take(shard);
        drain(shard->reap);
        let_go(shard);
        return;
    }
}

/* --- gathering ------------------------------------------------------------------------------- */

/* Gatherings that have begun, and those that go on, in all reaps. */
static _Atomic unsigned begun;
static _Atomic(uint32_t) going;

bool shard_chunk_is_known(const struct reap_chunk *chunk, bool *is_live)
{
    unsigned before = atomic_load(&begun);
    bool all_ended = atomic_load(&going) == 0;
    *is_live = reap_chunk_is_live(chunk);
    atomic_thread_fence(memory_order_acquire);
    return *is_live || (all_ended && atomic_load(&begun) == before);
}

bool shard_chunk_is_live(const struct reap_chunk *chunk)
{
    bool is_live;
    if (LIKELY(reap_chunk_is_live(chunk))) return true;
    for (unsigned round = 0; !shard_chunk_is_known(chunk, &is_live); round++) shard_wait(round);
    return is_live;
}

/* Moves all that other shards have to the whole reap. */
static void merge_all(struct shard_home *home)
{
    struct reap *whole = home->main.reap;
    atomic_fetch_add(&going, 1);
    atomic_fetch_add(&begun, 1);
    FOR_EACH_SHARD(shard, home) for (unsigned i = 0; i < BOXES; i++) deliver_all(&shard->boxes[i]);
    FOR_EACH_SHARD(shard, home)
    {
        drain(shard->reap);
        if (shard->reap != whole) reap_bare_merge(shard->reap, whole);
    }
    atomic_fetch_sub(&going, 1);
}

void shard_gather(struct shard_table *table, bool ends)
{
    struct shard_home *home = table->home;
    ASSERT(!home->gathered);
    home->patience = take_all(home, ends) ? PATIENCE : 0;
    home->delays = DELAYS;
    if (home->shards->next) merge_all(home);
    home->gathered = true;
}

void shard_scatter(struct shard_table *table)
{
    ASSERT(table->home->gathered);
    table->home->gathered = false;
    FOR_EACH_SHARD(shard, table->home) let_go(shard);
}

/* Returns true if more than half of the memory is free. With one shard the answer does not matter: that shard
 * uses it. */
static bool is_sparse(const struct shard_home *home)
{
    const struct reap *whole = home->main.reap;
    size_t held = whole->held - whole->spare_bytes;
    return home->shards->next && held >= SPARSE_MIN && held / 2 > reap_chunk_live_bytes(whole);
}

void shard_try_scatter(struct shard_table *table)
{
    struct shard_home *home = table->home;
    if (home->delays > 0 && is_sparse(home)) {
        home->delays--;
        home->patience = DELAY;
    } else {
        shard_scatter(table);
    }
}

/* --- lives ----------------------------------------------------------------------------------- */

bool shard_is_possible(const struct reap *whole)
{
    if (whole->flags & (REAP_SPECIAL | REAP_ENDING) || reap_instrumented || guarded_on) return false;
    return !(whole->flags & REAP_SOURCED) || chunk_source_is_hoard(&whole->source);
}

/* Other threads may read the sum. */
static void count_bytes(struct shard_home *home, size_t size)
{
    __atomic_store_n(&home->bytes, home->bytes + size, __ATOMIC_RELAXED);
}

static struct shard_table *table_for(size_t id, struct shard_home *home, struct shard_table *older)
{
    size_t n = older ? older->n : FIRST_IDS;
    while (n <= id) n *= 2;
    size_t size = sizeof(struct shard_table) + n * sizeof(struct reap_shard *);
    struct shard_table *table = hoard_calloc(1, size);
    if (!table) return NULL;
    table->n = n;
    table->home = home;
    table->older = older;
    for (size_t i = 0; older && i < older->n; i++)
        atomic_init(&table->of[i], atomic_load_explicit(&older->of[i], memory_order_relaxed));
    home->table = table;
    count_bytes(home, size);
    return table;
}

static void enlist(struct shard_home *home, struct reap_shard *shard, unsigned id, struct reap *reap)
{
    shard->id = (uint16_t)id;
    shard->reap = reap;
    shard->next = home->shards;
    __atomic_store_n(&home->shards, shard, __ATOMIC_RELEASE);
    atomic_store_explicit(&home->table->of[id], shard, memory_order_release);
}

/* The first shard is that of the whole reap. */
static struct shard_table *begin(unsigned id, struct reap *whole)
{
    struct shard_home *home = hoard_aligned_alloc(64, sizeof *home);
    if (!home) return NULL;
    memset(home, 0, sizeof *home);
    count_bytes(home, sizeof *home);
    struct shard_table *table = table_for(id, home, NULL);
    if (table)
        enlist(home, &home->main, id, whole);
    else
        hoard_free(home);
    return table;
}

static struct shard_table *add(struct shard_table *table, unsigned id, struct reap *whole, void *face)
{
    struct shard_home *home = table->home;
    if (id < table->n && atomic_load_explicit(&table->of[id], memory_order_relaxed)) return table;
    struct shard_memory *memory = hoard_aligned_alloc(64, sizeof *memory);
    if (memory && id >= table->n) table = table_for(id, home, table);
    if (!memory || !table) {
        hoard_free(memory);
        return NULL;
    }
    memset(&memory->shard, 0, sizeof memory->shard);
    reap_bare_begin(&memory->bare, whole, face);
    if (home->gathered) atomic_store_explicit(&memory->shard.holder, SHARD_TAKEN, memory_order_relaxed);
    count_bytes(home, sizeof *memory);
    enlist(home, &memory->shard, id, &memory->bare.reap);
    return home->table;
}

struct shard_table *shard_add(struct shard_table *table, struct reap *whole, void *face)
{
    int saved = errno;
    unsigned id = heap_path_id_for_malloc();
    table = table ? add(table, id, whole, face) : begin(id, whole);
    errno = saved;
    return table;
}

void shard_end(struct shard_table *table)
{
    struct shard_home *home = table->home;
    ASSERT(home->gathered && home->table == table);
    for (struct reap_shard *next, *shard = home->shards; shard; shard = next) {
        next = shard->next;
        if (shard != &home->main) hoard_free(shard);
    }
    for (struct shard_table *older; table; table = older) {
        older = table->older;
        hoard_free(table);
    }
    hoard_free(home);
}

/* --- fork ------------------------------------------------------------------------------------ */

void shard_fork_child_begins(void) { going = 0; }

void shard_stop_all(const struct shard_table *table)
{
    FOR_EACH_SHARD(shard, table->home)
    {
        shard->forks = true;
        atomic_fetch_add(&shard->stopped, 1);
    }
}

bool shard_all_are_free(const struct shard_table *table)
{
    FOR_EACH_SHARD(shard, table->home)
    {
        if (atomic_load_explicit(&shard->holder, memory_order_acquire) > SHARD_TAKEN) return false;
    }
    return true;
}

void shard_go_on(const struct shard_table *table)
{
    FOR_EACH_SHARD(shard, table->home)
    {
        if (shard->forks) atomic_fetch_sub(&shard->stopped, 1);
        shard->forks = false;
    }
}

void shard_fork_child(const struct shard_table *table)
{
    FOR_EACH_SHARD(shard, table->home)
    {
        atomic_store(&shard->holder, table->home->gathered ? SHARD_TAKEN : 0);
        atomic_store(&shard->stopped, 0);
        shard->forks = false;
    }
}
