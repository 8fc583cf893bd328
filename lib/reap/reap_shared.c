/* SPDX-License-Identifier: Apache-2.0 */
/* reap_shared.c: reaps that any thread may use at any time. */
#include "reap/reap_shared.h"

#include <sched.h>

#include "base/report.h"
#include "hoard/malloc_fast.h"

enum { PATIENCE = 50 }; /* rounds of a fork that must not wait */

static struct {
    struct lock lock;
    struct list list;
    _Atomic(bool) closed; /* the gate: a fork is under way */
} faces = {.lock = LOCK_OF_RANK(RANK_FACES)};

static uintptr_t face_tag(const struct reap_face *face)
{
    return (uintptr_t)face ^ (uintptr_t)0xd6e8feb86659fd93;
}

static const void *this_thread(void) { return &lock_depth; }

/* --- lives ----------------------------------------------------------------------------------- */

void reap_shared_begin(struct reap *reap)
{
    struct reap_face *face = reap_chunk_record(reap, REAP_FACE);
    ASSERT((uintptr_t)face % USER_MEMORY_ALIGN == USER_MEMORY_ALIGN - REAP_FACE &&
           reap->tag == reap_tag(reap));
    assert(face == reap_face(reap));
    *face = (struct reap_face){.self = face,
                               .tables = reap->tables,
                               .tag = face_tag(face),
                               .reap = reap,
                               .lock = LOCK_OF_RANK(RANK_SHARED_REAP)};
    reap->tag = reap_shared_tag(reap);
    reap_first_chunk(reap)->shared = true;
    lock_take(&faces.lock);
    list_push(&faces.list, &face->node);
    lock_give(&faces.lock);
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

void reap_shared_end(struct reap *reap)
{
    struct reap_face *face = reap_face(reap);
    ASSERT(face->tag == face_tag(face) && face->reap == reap);
    lock_take(&faces.lock);
    list_remove(&face->node);
    lock_give(&faces.lock);
    face->tag = 0;
    face->self = face; /* as in reap_region_destroy */
    if (is_held(face)) give(face);
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

static struct reap_face *face_of(void *handle, const char *call)
{
    struct reap_face *face = handle;
    bool may_be = face && (uintptr_t)face % USER_MEMORY_ALIGN == USER_MEMORY_ALIGN - REAP_FACE;
    bool is_face = may_be && reap_is_readable(face) && face->tag == face_tag(face);
    if (UNLIKELY(!is_face)) reap_misuse_handle(call, handle);
    ASSERT(reap_face(face->reap) == face && !face->bump && !face->end && !face->freelists_used);
    return face;
}

struct reap *reap_shared_hold(void *handle, const char *call)
{
    struct reap_face *face = face_of(handle, call);
    hold(face);
    return face->reap;
}

enum reap_try reap_shared_try(struct reap_face *face)
{
    if (face->tag != face_tag(face)) return REAP_DEAD;
    if (!is_held(face)) {
        if (!lock_try(&face->lock)) return REAP_BUSY;
        atomic_store_explicit(&face->owner, this_thread(), memory_order_relaxed);
    }
    face->depth++;
    return REAP_HELD;
}

void reap_shared_check(void *handle, const char *call) { (void)face_of(handle, call); }

void reap_shared_check_place(void **handle, const char *call)
{
    const struct reap_chunk *chunk = chunk_of(handle, NULL); /* reads no word of the program */
    if (!chunk || !reap_chunk_is_live(chunk) || chunk != reap_first_chunk(chunk->owner)) return;
    if ((void *)handle == reap_handle(chunk->owner))
        report_misuse(call, handle, "a reap, where the address of a handle is to be set");
}

void reap_shared_hold_again(struct reap *reap) { hold(reap_face(reap)); }

void reap_shared_let_go(struct reap *reap)
{
    struct reap_face *face = reap_face(reap);
    ASSERT(is_held(face) && face->depth != 0);
    if (--face->depth == 0) give(face);
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

/* Closes the gate and returns with the list's lock, for which threads at the gate wait. */
void reap_shared_fork_prepare(void)
{
    bool patient = lock_depth == 0;
    atomic_store_explicit(&faces.closed, true, memory_order_relaxed);
    for (unsigned round = 0;; round++) {
        lock_for_fork(&faces.lock);
        bool have = faces.lock.forker == &lock_depth;
        if (!have || pass_all() || (!patient && round == PATIENCE)) return;
        lock_after_fork(&faces.lock);
        sched_yield();
    }
}

void reap_shared_fork_parent(void)
{
    atomic_store_explicit(&faces.closed, false, memory_order_relaxed);
    lock_after_fork(&faces.lock);
}

void reap_shared_fork_child(void)
{
    FOR_EACH_FACE(face)
    {
        if (is_held(face)) continue;
        lock_reset(&face->lock);
        atomic_store_explicit(&face->owner, NULL, memory_order_relaxed);
        face->depth = 0;
    }
    atomic_store_explicit(&faces.closed, false, memory_order_relaxed);
    lock_reset(&faces.lock);
}
