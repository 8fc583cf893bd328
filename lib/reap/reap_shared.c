/* SPDX-License-Identifier: Apache-2.0 */
/* reap_shared.c: reaps that any thread may use at any time. */
#include "reap/reap_shared.h"

#include <sched.h>

#include "base/report.h"
#include "hoard/malloc_fast.h"
#include "reap/reap_tree.h"

enum { PATIENCE = 50 }; /* rounds of a fork by a thread that holds a reap */
enum { ENTER_TRIES = 16 }; /* rounds to enter a shard, before the thread takes the whole reap */

static struct {
    struct lock lock;
    struct list list;
    _Atomic(bool) closed; /* the gate: a fork is under way */
} faces = {.lock = LOCK_OF_RANK(RANK_FACES)};

static const void *this_thread(void) { return &lock_depth; }

/* --- lives ----------------------------------------------------------------------------------- */

/* A tag is right while its face is on the list, and both change under the list's lock. */
static void enlist(struct reap_face *face)
{
    lock_take(&faces.lock);
    face->tag = reap_face_tag(face);
    list_push(&faces.list, &face->node);
    lock_give(&faces.lock);
}

static void delist(struct reap_face *face)
{
    lock_take(&faces.lock);
    face->tag = 0;
    list_remove(&face->node);
    atomic_store_explicit(&face->table, NULL, memory_order_relaxed); /* a fork goes through the shards */
    lock_give(&faces.lock);
}

void reap_shared_begin(struct reap *reap)
{
    struct reap_face *face = reap_chunk_record(reap, REAP_FACE); /* more than it needs, for its address */
    ASSERT((uintptr_t)face % USER_MEMORY_ALIGN == USER_MEMORY_ALIGN - REAP_FACE &&
           reap->tag == reap_tag(reap));
    assert(face == reap_face(reap));
    *face = (struct reap_face){.self = face,
                               .tables = reap->tables,
                               .reap = reap,
                               .lock = LOCK_OF_RANK(RANK_SHARED_REAP)};
    reap->tag = reap_shared_tag(reap);
    reap_first_chunk(reap)->shared = true;
    enlist(face);
}

static bool is_held(const struct reap_face *face)
{
    return atomic_load_explicit(&face->owner, memory_order_relaxed) == this_thread();
}

static void give(struct reap_face *face)
{
    ASSERT(is_held(face) && lock_is_mine(&face->lock));
    atomic_store_explicit(&face->owner, NULL, memory_order_relaxed);
    lock_give(&face->lock);
}

static void hold(struct reap_face *face);

/* Gathers the reap of a held face, if it is scattered. */
static void gather(const struct reap_face *face, bool ends)
{
    struct shard_table *table = reap_face_table(face);
    if (!shard_is_gathered(table)) shard_gather(table, ends);
}

/* Another thread may hold the reap for a moment, to look at it. So this waits for the lock first. When the
 * face is off the list, no thread comes any more. */
void reap_shared_end(struct reap *reap)
{
    struct reap_face *face = reap_face(reap);
    ASSERT(face->tag == reap_face_tag(face) && face->reap == reap);
    hold(face);
    gather(face, true);
    struct shard_table *table = reap_face_table(face);
    delist(face);
    if (table) shard_end(table);
    face->self = face; /* as in reap_region_destroy */
    face->depth = 0;
    give(face);
}

/* --- the lock -------------------------------------------------------------------------------- */

static bool is_closed(void) { return UNLIKELY(atomic_load_explicit(&faces.closed, memory_order_relaxed)); }

static COLD void wait_for_fork(void)
{
    while (is_closed()) {
        lock_take(&faces.lock); /* the forking thread has this lock most of the time */
        lock_give(&faces.lock);
        sched_yield();
    }
}

static void take(struct reap_face *face)
{
    bool outside = lock_depth == 0;
    lock_take(&face->lock);
    while (is_closed() && outside) {
        lock_give(&face->lock);
        wait_for_fork();
        lock_take(&face->lock);
    }
    atomic_store_explicit(&face->owner, this_thread(), memory_order_relaxed);
    ASSERT(lock_is_mine(&face->lock));
}

static void hold(struct reap_face *face)
{
    if (!is_held(face)) take(face);
    face->depth++;
    ASSERT(face->depth != 0 && is_held(face));
}

struct reap_face *reap_shared_face(void *handle, const char *call)
{
    struct reap_face *face = handle;
    bool may_be = face && (uintptr_t)face % USER_MEMORY_ALIGN == USER_MEMORY_ALIGN - REAP_FACE;
    bool is_face = may_be && reap_is_readable(face) && face->tag == reap_face_tag(face);
    if (UNLIKELY(!is_face)) reap_misuse_handle(call, handle);
    ASSERT(reap_face(face->reap) == face && !face->bump && !face->end && !face->freelists_used);
    return face;
}

static struct reap *hold_whole(struct reap_face *face, bool ends)
{
    hold(face);
    gather(face, ends);
    return face->reap;
}

struct reap *reap_shared_hold(void *handle, const char *call)
{
    return hold_whole(reap_shared_face(handle, call), false);
}

struct reap *reap_shared_hold_last(void *handle, const char *call)
{
    return hold_whole(reap_shared_face(handle, call), true);
}

struct reap *reap_shared_hold_again(struct reap *reap) { return hold_whole(reap_face(reap), false); }

struct reap *reap_shared_hold_lightly(void *handle, const char *call)
{
    struct reap_face *face = reap_shared_face(handle, call);
    hold(face);
    return face->reap;
}

static bool try_to_hold(struct reap_face *face)
{
    if (!is_held(face)) {
        if (!lock_try(&face->lock)) return false;
        atomic_store_explicit(&face->owner, this_thread(), memory_order_relaxed);
    }
    face->depth++;
    return true;
}

bool reap_shared_try_listed(struct reap_face *face)
{
    ASSERT(face->tag == reap_face_tag(face));
    return try_to_hold(face);
}

enum reap_try reap_shared_try(struct reap_face *face)
{
    if (!lock_try(&faces.lock)) return REAP_BUSY;
    bool lives = face->tag == reap_face_tag(face), held = lives && try_to_hold(face);
    lock_give(&faces.lock);
    if (held) return REAP_HELD;
    return lives ? REAP_BUSY : REAP_DEAD;
}

void reap_shared_check(void *handle, const char *call) { (void)reap_shared_face(handle, call); }

void reap_shared_check_place(void **handle, const char *call)
{
    const struct reap_chunk *chunk = chunk_of(handle, NULL); /* reads no word of the program */
    if (!chunk || !reap_chunk_is_live(chunk) || chunk != reap_first_chunk(chunk->owner)) return;
    if ((void *)handle == reap_handle(chunk->owner))
        report_misuse(call, handle, "a reap, where the address of a handle is to be set");
}

void reap_shared_let_go(struct reap *reap)
{
    struct reap_face *face = reap_face(reap);
    ASSERT(is_held(face) && face->depth != 0);
    if (--face->depth > 0) return;
    shard_call_ends(reap_face_table(face), reap);
    give(face);
}

/* --- a tree ---------------------------------------------------------------------------------- */

static bool hold_one(struct reap *reap, unsigned depth, void *count)
{
    (void)depth;
    if (!reap_is_shared(reap)) return true;
    if (!reap_shared_try_listed(reap_face(reap))) return false;
    ++*(size_t *)count;
    return true;
}

/* Reaps that this thread does not hold may have come below those that it has let go of. */
static bool let_go_one(struct reap *reap, unsigned depth, void *count)
{
    (void)depth;
    if (!reap_is_shared(reap) || !is_held(reap_face(reap))) return true;
    reap_shared_let_go(reap);
    return --*(size_t *)count > 0;
}

void reap_shared_let_go_below(struct reap *top, size_t count)
{
    if (count == 0) return;
    reap_tree_lock(&top->below);
    reap_tree_walk(&top->below, let_go_one, &count);
    reap_tree_unlock(&top->below);
}

/* While all are held, no list of theirs changes. */
bool reap_shared_hold_below(struct reap *top, size_t *count)
{
    *count = 0;
    reap_tree_lock(&top->below);
    bool all = reap_tree_walk(&top->below, hold_one, count);
    reap_tree_unlock(&top->below);
    if (!all) {
        reap_shared_let_go_below(top, *count);
        return false;
    }
    for (struct reap *reap = top; *count > 0 && reap; reap = reap_tree_after(top, reap))
        if (reap != top && reap_is_shared(reap)) gather(reap_face(reap), false);
    return true;
}

/* --- shards ---------------------------------------------------------------------------------- */

/* Makes a shard for this thread's id, unless the reap is to be used by one thread at a time. False: it is,
 * for want of memory too. */
static bool add_shard(struct reap_face *face)
{
    struct shard_table *table = reap_face_table(face);
    if (table ? table->home->gathered : face->depth > 1 || !shard_is_possible(face->reap)) return false;
    table = shard_add(table, face->reap, face);
    if (table) atomic_store_explicit(&face->table, table, memory_order_release);
    return table != NULL;
}

/* With heaps=roundrobin each call draws another id. So the shard that it looks for need not be the one that
 * it has made, not even at the next round: the rounds have an end. Where there is no shard, nobody is waited
 * for: with two ids, on one CPU, no round finds one. */
struct reap_shard *reap_shared_enter_slow(struct reap_face *face, struct reap **reap)
{
    for (unsigned round = 0;; round++) {
        struct shard_table *table = reap_face_table(face);
        struct reap_shard *shard = shard_enter(table);
        if (shard) {
            *reap = shard->reap;
            return shard;
        }
        bool was_there = shard_is_there(table, heap_path_id());
        hold(face);
        if (!add_shard(face) || round == ENTER_TRIES) break;
        reap_shared_let_go(face->reap);
        if (round > 0 && was_there) shard_wait(round);
    }
    gather(face, false);
    *reap = face->reap;
    return NULL;
}

size_t reap_shared_held_in_shards(const struct reap_face *face)
{
    size_t bytes = 0;
    const struct shard_table *table = reap_face_table(face);
    if (!table) return 0;
    for (const struct reap_shard *shard = shard_first(table); shard; shard = shard->next)
        if (shard->reap != face->reap) bytes += __atomic_load_n(&shard->reap->held, __ATOMIC_RELAXED);
    return bytes + __atomic_load_n(&table->home->bytes, __ATOMIC_RELAXED);
}

void reap_shared_drain(struct reap_face *face, const struct reap *reap)
{
    hold(face);
    if (!shard_is_gathered(reap_face_table(face))) shard_drain(reap_face_table(face), reap);
    reap_shared_let_go(face->reap);
}

/* --- fork ------------------------------------------------------------------------------------ */

#define FOR_EACH_FACE(face)                                                                                  \
    for (struct list_node *node_ = faces.list.first; node_ != NULL; node_ = node_->next)                     \
        for (struct reap_face *face = LIST_ENTRY(node_, struct reap_face, node); face; face = NULL)

/* Takes and gives back each lock once, but those that this thread holds. False: another thread holds one. */
static bool pass_all(void)
{
    FOR_EACH_FACE(face)
    {
        if (is_held(face)) continue;
        if (!lock_try(&face->lock)) return false;
        lock_give(&face->lock);
    }
    return true;
}

/* Waits until no thread is in a shard. Such a thread waits for no reap, and for no lock that fork has yet. */
static void stop_shards(void)
{
    bool any = false;
    FOR_EACH_FACE(face)
    {
        if (!reap_face_table(face)) continue;
        shard_stop_all(reap_face_table(face));
        any = true;
    }
    if (!any) return;
    heap_path_fence();
    FOR_EACH_FACE(face)
    {
        const struct shard_table *table = reap_face_table(face);
        for (unsigned round = 0; table && !shard_all_are_free(table); round++) shard_wait(round);
    }
}

/* Closes the gate and returns with the list's lock, for which threads at the gate wait. The fork of another
 * thread may have opened the gate just before this one got the lock: so each round closes it. */
void reap_shared_fork_prepare(void)
{
    bool patient = lock_depth == 0; /* otherwise it holds a reap, for which others may wait */
    for (unsigned round = 0;; round++) {
        lock_for_fork(&faces.lock);
        atomic_store_explicit(&faces.closed, true, memory_order_relaxed);
        if (pass_all() || (!patient && round == PATIENCE)) break;
        lock_after_fork(&faces.lock);
        sched_yield();
    }
    stop_shards();
}

/* There may have been no reap, and no prepare, when the fork began. */
void reap_shared_fork_parent(void)
{
    if (faces.lock.forker != this_thread()) return;
    FOR_EACH_FACE(face) if (reap_face_table(face)) shard_go_on(reap_face_table(face));
    atomic_store_explicit(&faces.closed, false, memory_order_relaxed);
    lock_after_fork(&faces.lock);
}

void reap_shared_fork_child(void)
{
    shard_fork_child_begins();
    FOR_EACH_FACE(face)
    {
        if (reap_face_table(face)) shard_fork_child(reap_face_table(face));
        if (is_held(face)) continue;
        lock_reset(&face->lock);
        atomic_store_explicit(&face->owner, NULL, memory_order_relaxed);
        face->depth = 0;
    }
    atomic_store_explicit(&faces.closed, false, memory_order_relaxed);
    lock_reset(&faces.lock);
}
