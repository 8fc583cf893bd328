/* SPDX-License-Identifier: Apache-2.0 */
/* reap_shared.c: reaps that any thread may use at any time. */
#include "reap/reap_shared.h"

#include <errno.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/report.h"
#include "hoard.h"
#include "reap/quota.h"
#include "reap/reap_alloc.h"
#include "reap/reap_tree.h"
#include "region/region.h"

enum {
    PATIENCE = 50, /* rounds of a fork by a thread that holds a reap */
    FEWEST = 8,    /* places for parts */
    SPINS = 100    /* rounds in which a thread waits for a part, before it takes the lock */
};

static struct {
    struct lock lock;
    struct list list;
    _Atomic(bool) gate; /* closed: a fork is under way */
} faces = {.lock = LOCK_OF_RANK(RANK_FACES)};

static const void *this_thread(void) { return &lock_depth; }

#define FOR_EACH_PART_OF(it, face)                                                                           \
    for (struct reap_part *it = &(face)->part; it != NULL; it = __atomic_load_n(&it->next, __ATOMIC_ACQUIRE))

/* --- the lock -------------------------------------------------------------------------------- */

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

static bool is_gate_closed(void) { return UNLIKELY(atomic_load_explicit(&faces.gate, memory_order_relaxed)); }

static COLD void wait_for_fork(void)
{
    while (is_gate_closed()) {
        lock_take(&faces.lock); /* the forking thread has this lock most of the time */
        lock_give(&faces.lock);
        sched_yield();
    }
}

static void hold(struct reap_face *face)
{
    if (!is_held(face)) {
        bool outside = lock_depth == 0;
        lock_take(&face->lock);
        while (is_gate_closed() && outside) {
            lock_give(&face->lock);
            wait_for_fork();
            lock_take(&face->lock);
        }
        atomic_store_explicit(&face->owner, this_thread(), memory_order_relaxed);
    }
    face->depth++;
    ASSERT(face->depth != 0 && lock_is_mine(&face->lock));
}

/* Gives back the lock after the last call that held the reap. An open mark bars the hidden children. */
static void let_go(struct reap_face *face)
{
    ASSERT(is_held(face) && face->depth != 0);
    if (--face->depth > 0) return;
    if (face->taken) {
        bool marked = face->reap->flags & REAP_MARKED;
        face->taken = false;
        FOR_EACH_PART_OF(part, face)
        {
            ASSERT(part->holder == PART_TAKEN);
            part->barred = marked && part != &face->part;
            atomic_store_explicit(&part->holder, 0, memory_order_release);
        }
    }
    give(face);
}

void reap_shared_let_go(const struct reap *reap) { let_go(reap_face(reap)); }

/* --- parts ------------------------------------------------------------------------------------ */

/* Sleeps, and is no cancellation point, as libc's call is: a thread that waits may hold the reap. */
static void nap(long ns)
{
    int saved = errno;
    struct timespec time = {.tv_nsec = ns};
    syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &time, NULL);
    errno = saved;
}

/* Waits for a moment, each time longer: the holder may be stopped, or of lower priority. */
static void pause_for_part(unsigned round)
{
    if (round < 4) {
        lock_pause();
    } else if (round < 32) {
        sched_yield();
    } else {
        nap(round < 64 ? 50 * 1000 : 1000 * 1000);
    }
}

/* Waits for a part to be left, and enters it as this or another holder. False: the reap is taken. */
static bool wait_for_part(struct reap_part *part, uint64_t holder)
{
    uint64_t none = 0;
    for (unsigned round = 0; !atomic_compare_exchange_strong(&part->holder, &none, holder); round++) {
        ASSERT(none != reap_part_me());
        if (none == PART_TAKEN) return false;
        pause_for_part(round);
        none = 0;
    }
    return true;
}

/* Tries for a while, as long as the holder is a thread that has entered the part. Then it takes the lock: so
 * nobody takes the reap while it waits. */
bool reap_part_enter(struct reap_part *part)
{
    struct reap_face *face = part->face;
    for (unsigned round = 0; round < SPINS; round++) {
        uint64_t holder = atomic_load_explicit(&part->holder, memory_order_relaxed);
        if (holder == 0 && reap_part_try(part)) return true;
        if (holder == PART_TAKEN || holder == PART_FORKS) break;
        lock_pause();
    }
    hold(face);
    if (!wait_for_part(part, reap_part_me())) return false;
    let_go(face);
    return true;
}

/* Holds the reap of a held face for this thread alone. */
static void take_parts(struct reap_face *face)
{
    if (face->taken || face->alone) return;
    FOR_EACH_PART_OF(part, face) wait_for_part(part, PART_TAKEN);
    face->taken = true;
    FOR_EACH_PART_OF(part, face)
    {
        reap_alloc_take_remote(part->reap);
        reap_quota_give_room(part->reap);
    }
}

static void begin_part(struct reap_part *part, struct reap *reap, uintptr_t tag, struct reap_face *face)
{
    *part = (struct reap_part){.reap = reap, .face = face};
    reap_records(reap)->part = part;
    reap->tag = tag;
    reap_first_chunk(reap)->shared = true;
}

/* Makes a hidden child. NULL: no memory. */
static struct reap_part *new_part(struct reap_face *face)
{
    struct reap_part *part = hoard_aligned_alloc(_Alignof(struct reap_part), sizeof *part);
    struct reap *known = face->reap;
    struct reap *reap = part ? reap_region_create_from(reap_source(known), REAP_FIRST_SIZE) : NULL;
    if (!reap) {
        hoard_free(part);
        return NULL;
    }
    begin_part(part, reap, reap_hidden_tag(reap), face);
    reap->parent = known;
    if (known->flags & REAP_LIMITED) reap_quota_begin(reap, known);
    part->next = face->part.next;
    __atomic_store_n(&face->part.next, part, __ATOMIC_RELEASE);
    return part;
}

/* The first id gets the reap itself. While a mark is open no hidden child is made; nor while a fork is under
 * way, whose child is to find all parts. NULL: no memory. */
static struct reap_part *add_part(struct reap_face *face, unsigned id)
{
    reap_part_place *table = atomic_load_explicit(&face->table, memory_order_relaxed);
    struct reap_part *part = reap_part_of(face, id);
    if (part || face->taken || face->reap->flags & REAP_MARKED || is_gate_closed()) return part;
    bool is_first = !table;
    if (is_first && !(table = hoard_calloc(face->mask + 1, sizeof *table))) return NULL;
    part = is_first ? &face->part : new_part(face);
    atomic_store_explicit(&table[id], part, memory_order_release);
    atomic_store_explicit(&face->table, table, memory_order_release);
    return part;
}

struct reap_part *reap_part_for_malloc(struct reap_face *face)
{
    int saved = errno;
    unsigned id = heap_path_id_for_malloc() & (unsigned)face->mask;
    struct reap_part *part = reap_part_of(face, id);
    if (part || face->alone) return part ? part : &face->part;
    hold(face);
    part = add_part(face, id);
    let_go(face);
    errno = saved;
    return part ? part : &face->part;
}

size_t reap_shared_held_in_parts(const struct reap *reap)
{
    const struct reap_face *face = reap_face(reap);
    bool has_table = atomic_load_explicit(&face->table, memory_order_relaxed) != NULL;
    size_t bytes = has_table ? (face->mask + 1) * sizeof(reap_part_place) : 0;
    for (reap = reap_next_part(reap); reap; reap = reap_next_part(reap))
        bytes += sizeof(struct reap_part) + __atomic_load_n(&reap->held, __ATOMIC_RELAXED);
    return bytes;
}

/* --- calls ------------------------------------------------------------------------------------ */

static struct reap *hold_as(struct reap_face *face, bool whole)
{
    hold(face);
    if (whole) take_parts(face);
    return face->reap;
}

struct reap *reap_shared_hold(void *handle, const char *call, bool whole)
{
    return hold_as(handle_face(handle, call), whole);
}

struct reap *reap_shared_hold_again(const struct reap *reap) { return hold_as(reap_face(reap), true); }

struct reap_face *reap_face_of_others(const struct reap *reap)
{
    if (reap->tag != reap_shared_tag(reap) && reap->tag != reap_hidden_tag(reap)) return NULL;
    const struct reap_records *records = reap_records(reap);
    if (!chunk_is_readable(records, sizeof *records)) return NULL;
    const struct reap_part *part = records->part;
    struct reap_face *face = chunk_is_readable(part, sizeof *part) ? part->face : NULL;
    bool may_be = (uintptr_t)face % USER_MEMORY_ALIGN == USER_MEMORY_ALIGN - REAP_FACE;
    bool is_live = may_be && chunk_is_readable(face, sizeof *face) && face->tag == reap_face_tag(face);
    return is_live ? face : NULL;
}

/* --- lives ----------------------------------------------------------------------------------- */

void reap_shared_begin(struct reap *reap)
{
    struct reap_face *face =
        reap_chunk_record(reap, reap_first_chunk(reap), REAP_FACE); /* more than it needs, for its address */
    ASSERT((uintptr_t)face % USER_MEMORY_ALIGN == USER_MEMORY_ALIGN - REAP_FACE &&
           reap->tag == reap_tag(reap));
    size_t places = FEWEST;
    while (places < cpu.count) places *= 2;
    *face = (struct reap_face){.self = face,
                               .mask = places - 1,
                               .tables = reap->tables,
                               .reap = reap,
                               .lock = LOCK_OF_RANK(RANK_SHARED_REAP),
                               .alone = apart_on || reap_is_users(reap)};
    begin_part(&face->part, reap, reap_shared_tag(reap), face);
    if (face->alone) face->part.holder = PART_TAKEN;
    lock_take(&faces.lock); /* a tag is right while its face is on the list */
    face->tag = reap_face_tag(face);
    list_push(&faces.list, &face->node);
    lock_give(&faces.lock);
}

/* When the face is off the list, no thread comes any more, not even to look. */
void reap_shared_end(struct reap *reap)
{
    struct reap_face *face = reap_face(reap);
    ASSERT(face->tag == reap_face_tag(face) && face->reap == reap && reap_shared_is_taken(reap));
    lock_take(&faces.lock);
    face->tag = 0;
    list_remove(&face->node);
    lock_give(&faces.lock);
    for (struct reap_part *next, *part = face->part.next; part; part = next) {
        next = part->next;
        ASSERT(!(part->reap->flags & REAP_LIMITED) || reap_share(part->reap)->drawn == 0);
        reap_region_destroy(part->reap, false);
        reap_chunk_give_back(reap_first_chunk(part->reap));
        hoard_free(part);
    }
    hoard_free(face->table);
    face->table = NULL;
    face->self = face; /* as in reap_region_destroy */
    face->depth = 0;
    give(face);
}

/* --- a tree ---------------------------------------------------------------------------------- */

static bool hold_one(struct reap *reap, unsigned depth, void *arg)
{
    (void)depth;
    if (!reap_is_shared(reap)) return true;
    struct reap_face *face = reap_face(reap), **held = arg;
    if (!is_held(face)) {
        if (!lock_try(&face->lock)) return false;
        atomic_store_explicit(&face->owner, this_thread(), memory_order_relaxed);
    }
    face->depth++;
    face->next_held = *held;
    *held = face;
    return true;
}

void reap_shared_let_go_below(struct reap_face *held)
{
    for (struct reap_face *next; held; held = next) {
        next = held->next_held;
        let_go(held);
    }
}

bool reap_shared_hold_below(struct reap *top, struct reap_face **held)
{
    *held = NULL;
    reap_tree_lock(&top->below);
    bool all = reap_tree_walk(&top->below, hold_one, held);
    reap_tree_unlock(&top->below);
    if (!all) {
        reap_shared_let_go_below(*held);
        *held = NULL;
    }
    for (struct reap_face *face = *held; face; face = face->next_held) take_parts(face);
    return all;
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

/* Enters all parts. The holder of one waits for no reap, and for no lock that fork has yet. A reap that is
 * taken is this thread's, or that of a thread that waits for one of this thread's. */
static void enter_all_parts(void)
{
    FOR_EACH_FACE(face)
    FOR_EACH_PART_OF(part, face) wait_for_part(part, PART_FORKS);
}

static void leave_all_parts(void)
{
    FOR_EACH_FACE(face)
    FOR_EACH_PART_OF(part, face)
    {
        uint64_t holder = PART_FORKS;
        atomic_compare_exchange_strong(&part->holder, &holder, 0);
    }
}

/* Closes the gate and returns with the list's lock, for which threads at the gate wait. The fork of another
 * thread may have opened the gate just before this one got the lock: so each round closes it. */
void reap_shared_fork_prepare(void)
{
    bool patient = lock_depth == 0; /* otherwise it holds a reap, for which others may wait */
    if (lock_is_for_one_thread()) return;
    for (unsigned round = 0;; round++) {
        lock_for_fork(&faces.lock);
        atomic_store_explicit(&faces.gate, true, memory_order_relaxed);
        if (pass_all() || (!patient && round == PATIENCE)) break;
        lock_after_fork(&faces.lock);
        sched_yield();
    }
    enter_all_parts();
}

/* There may have been no reap, and no prepare, when the fork began. */
void reap_shared_fork_parent(void)
{
    if (faces.lock.forker != this_thread()) return;
    leave_all_parts();
    atomic_store_explicit(&faces.gate, false, memory_order_relaxed);
    lock_after_fork(&faces.lock);
}

void reap_shared_fork_child(void)
{
    leave_all_parts();
    FOR_EACH_FACE(face)
    {
        if (is_held(face)) continue;
        lock_reset(&face->lock);
        atomic_store_explicit(&face->owner, NULL, memory_order_relaxed);
        face->depth = 0;
        face->taken = false;
        FOR_EACH_PART_OF(part, face) if (!face->alone) part->holder = 0;
    }
    atomic_store_explicit(&faces.gate, false, memory_order_relaxed);
    lock_reset(&faces.lock);
}
