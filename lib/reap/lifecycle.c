/* SPDX-License-Identifier: Apache-2.0 */
/* lifecycle.c: the calls that create, clear, rewind, adopt and destroy reaps. */
#include "reap.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>

#include "base/report.h"
#include "hoard/apart.h"
#include "hoard/init.h"
#include "hoard/redirect.h"
#include "reap/quota.h"
#include "reap/reap_alloc.h"
#include "reap/reap_depot.h"
#include "reap/reap_enter.h"
#include "reap/reap_mark.h"
#include "reap/reap_shared.h"
#include "reap/reap_stats.h"
#include "reap/reap_tree.h"
#include "reap/remote_free.h"
#include "reap/validate.h"
#include "region/region.h"

/* --- creating -------------------------------------------------------------------------------- */

static _Atomic(bool) started; /* pthread_once is a call even when there is nothing to do */

static void start_once(void)
{
    if (redirect_is_elsewhere())
        report_line("libreap comes before libreap-malloc, which does not know the objects of its reaps: "
                    "link libreap-malloc first, or alone");
    chunk_start(); /* before chunk_alloc, which would come too late: the options must be known */
    apart_start();
    program_find();
    reap_survey_start();
    reap_remote_start();
}

/* There are no reaps without a fork handler: a forked child would wait for threads that it does not have.
 * False: no memory for the handler (ENOMEM). */
static NOINLINE bool start(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, start_once);
    if (!hoard_handles_forks() || !chunk_map_start()) {
        errno = ENOMEM;
        return false;
    }
    atomic_store_explicit(&started, true, memory_order_release);
    return true;
}

/* A dead reap of a depot, for a parent whose children begin as its byte says. NULL: there is none. */
static ALWAYS_INLINE struct reap *dead_of_depot(const struct reap *parent)
{
    uint8_t votes = parent ? atomic_load_explicit(&parent->below.votes, memory_order_relaxed) : ROOT_VOTES;
    struct reap *reap = reap_depot_take(reap_step(votes));
    if (reap)
        atomic_store_explicit(&reap->below.votes, (uint8_t)reap_step_below(votes), memory_order_relaxed);
    return reap;
}

/* A dead reap for the next child or root: the cached child, if it has today's size, or a depot's; or NULL. */
static ALWAYS_INLINE struct reap *dead_one_for(struct reap *parent)
{
    struct reap *cached = parent ? reap_tree_take_cached(&parent->below) : NULL;
    if (cached && reap_first_chunk(cached)->size == reap_child_size(parent)) return cached;
    if (cached) reap_depot_keep(cached);
    return dead_of_depot(parent);
}

/* Creates a reap of a dead one that a fast path did not take, or of a new chunk. */
static NOINLINE void create_slow(void **handle, void **parent_handle)
{
    HELD struct reap *parent = NULL;
    if (parent_handle && *parent_handle) parent = reap_hold_lightly(parent_handle, "reapCreate");
    *handle = NULL;
    if (UNLIKELY(!atomic_load_explicit(&started, memory_order_acquire)) && !start()) return;
    struct reap *reap = dead_one_for(parent);
    reap = LIKELY(reap != NULL) ? reap_region_enliven(reap) : reap_region_create(parent);
    if (!reap) return;
    if (reap_tree_add(reap, parent) & REAP_LIMITED) reap_quota_begin(reap, parent);
    *handle = reap; /* last: the child of a fork may end what a handle of another thread names */
}

/* Ends the creation of a child whose parent has marks or limits, and is locked. */
static NOINLINE void begin_special(void **handle, struct reap *reap, struct reap *parent)
{
    unsigned flags = reap_tree_add_locked(&parent->below, reap);
    reap_tree_unlock_below(&parent->below);
    *handle = reap;
    if (flags & REAP_LIMITED) reap_quota_begin(reap, parent);
}

/* Makes a dead reap, which is as new, the newest one of a locked list. */
static ALWAYS_INLINE void begin(void **handle, struct reap_list *list, struct reap *reap, struct reap *parent)
{
    reap_region_enliven(reap)->parent = parent;
    if (UNLIKELY(parent && parent->flags & REAP_SPECIAL)) {
        begin_special(handle, reap, parent);
        return;
    }
    reap_tree_push(list, reap);
    reap_tree_unlock_below(list);
    *handle = reap;
}

/* Creates a child of an ordinary parent that keeps none: of a dead reap of a depot. */
static NOINLINE void create_of_depot(void **handle, void **parent_handle, struct reap *parent)
{
    struct reap *reap = dead_of_depot(parent);
    if (UNLIKELY(!reap)) {
        create_slow(handle, parent_handle);
        return;
    }
    reap_tree_lock_below(&parent->below);
    begin(handle, &parent->below, reap, parent);
}

/* Makes the cached reap of a list the newest one, if it has this size: if there is one, the library has
 * started. False: there is none, or the list is locked. */
static ALWAYS_INLINE bool create_again(void **handle, struct reap_list *list, struct reap *parent,
                                       size_t size)
{
    if (!reap_tree_try_lock(list)) return false;
    struct reap *reap = atomic_load_explicit(&list->cached, memory_order_relaxed);
    if (UNLIKELY(!reap || reap_first_chunk(reap)->size != size)) {
        reap_tree_unlock_below(list);
        return false;
    }
    reap_tree_set_cached(list, NULL);
    begin(handle, list, reap, parent);
    return true;
}

/* The way of a child or a root that is kept has no call before its end: so it saves no registers. */
static ALWAYS_INLINE void create_at(void **handle, void **parent_handle)
{
    struct reap *parent = parent_handle ? *parent_handle : NULL;
    if (handle_is_mapped(parent)) {
        if (!atomic_load_explicit(&parent->below.cached, memory_order_relaxed))
            create_of_depot(handle, parent_handle, parent);
        else if (!create_again(handle, &parent->below, parent, reap_child_size(parent)))
            create_slow(handle, parent_handle);
    } else if (parent || !reap_kept_root ||
               !create_again(handle, &reap_roots[reap_kept_root - 1].list, NULL, REAP_FIRST_SIZE)) {
        create_slow(handle, parent_handle);
    }
}

static NOINLINE void create_at_odd_place(void **handle, void **parent_handle)
{
    handle_check_place_in(handle, "reapCreate");
    create_at(handle, parent_handle);
}

ALIGNED void reapCreate(void **handle, void **parent_handle)
{
    REAP_NOT_NULL(handle, "reapCreate");
    if (handle_place_is_odd(handle))
        create_at_odd_place(handle, parent_handle);
    else
        create_at(handle, parent_handle);
}

reap_t *reapNew(reap_t *parent)
{
    void *handle;
    reapCreate(&handle, (void **)parent);
    return handle;
}

/* --- with options ---------------------------------------------------------------------------- */

static const size_t CHUNK_MAX = (size_t)1 << 30;

/* The greatest power of two up to `asked`, but at least a first chunk's size; 0 means the default. */
static size_t chunk_limit(size_t asked)
{
    if (asked == 0) return REAP_MAX_SIZE;
    return asked < REAP_FIRST_SIZE ? REAP_FIRST_SIZE : (size_t)1 << (63 - __builtin_clzll(asked));
}

static bool are_valid(const struct reap_options *options)
{
    if (!UNKNOWN(options) || options->size != sizeof *options || options->flags & ~REAP_SHARED) return false;
    if (!options->source.take != !options->source.give) return false;
    if (options->buffer && options->buffer_size < REAP_BUFFER_MIN) return false;
    if (options->buffer && options->buffer_size > UINTPTR_MAX - (uintptr_t)options->buffer) return false;
    if (options->buffer && options->buffer_size >> REAP_BUFFER_LOG > 0) return false;
    return options->first_chunk <= CHUNK_MAX && options->max_chunk <= CHUNK_MAX;
}

int reapCreateWith(void **handle, void **parent_handle, const struct reap_options *options)
{
    handle_check_place(handle, "reapCreateWith");
    HELD struct reap *parent = NULL;
    if (parent_handle && *parent_handle) parent = reap_hold_lightly(parent_handle, "reapCreateWith");
    *handle = NULL;
    if (UNLIKELY(!atomic_load_explicit(&started, memory_order_acquire)) && !start()) return -1;
    if (!are_valid(options)) {
        errno = EINVAL;
        return -1;
    }
    const struct chunk_source source = {.take = options->source.take,
                                        .give = options->source.give,
                                        .arg = options->source.arg,
                                        .buffer = options->buffer,
                                        .max_chunk = chunk_limit(options->max_chunk)};
    size_t first = options->first_chunk < REAP_FIRST_SIZE ? REAP_FIRST_SIZE : options->first_chunk;
    struct reap *reap = reap_region_create_from(&source, options->buffer ? options->buffer_size : first);
    if (!reap) return -1;
    if (options->flags & REAP_SHARED) reap_shared_begin(reap);
    if (reap_tree_add(reap, parent) & REAP_LIMITED) reap_quota_begin(reap, parent);
    *handle = reap_handle(reap);
    if (reapSetLimit(handle, options->limit) == 0 && reapSetName(handle, options->name) == 0) return 0;
    int saved = errno;
    reapDestroy(handle);
    errno = saved;
    return -1;
}

/* --- functions ------------------------------------------------------------------------------- */

static void retire_cleanup(struct reap *reap, struct reap_cleanup *cleanup)
{
    ASSERT(cleanup != reap->spare_cleanups && cleanup != reap->cleanups);
    cleanup->next = reap->spare_cleanups;
    reap->spare_cleanups = cleanup;
}

int reapOnDestroy(void **handle, void (*fn)(void *arg), void *arg)
{
    REAP_NOT_NULL(fn, "reapOnDestroy");
    HELD struct reap *reap = reap_hold(handle, "reapOnDestroy");
    struct reap_cleanup *cleanup = reap->spare_cleanups;
    if (cleanup)
        reap->spare_cleanups = cleanup->next;
    else if (!(cleanup = reap_alloc_record(reap, sizeof *cleanup)))
        return -1;
    ASSERT(!reap->cleanups || reap->cleanups->depth <= reap_depth(reap));
    *cleanup = (struct reap_cleanup){.next = reap->cleanups, .fn = fn, .arg = arg, .depth = reap_depth(reap)};
    reap->cleanups = cleanup;
    return 0;
}

int reapCancelOnDestroy(void **handle, void (*fn)(void *arg), void *arg)
{
    HELD struct reap *reap = reap_hold_lightly(handle, "reapCancelOnDestroy");
    for (struct reap_cleanup **link = &reap->cleanups; *link; link = &(*link)->next) {
        struct reap_cleanup *cleanup = *link;
        if (cleanup->fn != fn || cleanup->arg != arg) continue;
        *link = cleanup->next;
        retire_cleanup(reap, cleanup);
        return 0;
    }
    errno = ENOENT;
    return -1;
}

/* --- going back and ending ------------------------------------------------------------------- */

static void check_going(struct reap *reap, const char *call)
{
    if (reap_tree_is_going(reap)) report_misuse(call, reap_handle(reap), "reap is being destroyed");
}

static void check_entered(struct reap *reap, const char *call)
{
    if (reap_is_entered(reap)) report_misuse(call, reap_handle(reap), "reap is entered");
}

/* Aborts when the reap must not be cleared or destroyed. */
static NOINLINE void check_end(struct reap *reap, const char *call)
{
    check_going(reap, call);
    check_entered(reap, call);
    reap_check_objects(reap, 0, call);
}

static ALWAYS_INLINE void check_may_end(struct reap *reap, const char *call)
{
    if (UNLIKELY(reap->flags & (REAP_ENDING | REAP_ENTERED | REAP_WATCHED))) check_end(reap, call);
}

/* Marks a reap as ending before functions run, its own or those of reaps below it. A reap without functions
 * and children needs no such mark: no code runs that could ask. */
static void set_going(struct reap *reap, unsigned depth)
{
    ASSERT(depth <= UINT16_MAX);
    reap->flags |= REAP_ENDING;
    reap->ending_in = process_generation;
    reap->going_to = (uint16_t)depth;
}

/* Takes a shared reap, and ends the limits of a reap. A function of the reap may have entered it without
 * leaving it: so this checks that again. */
static NOINLINE void end_special(struct reap *reap, const char *call)
{
    if (reap_is_shared(reap)) reap_shared_hold_again(reap);
    check_entered(reap, call);
    for (struct reap *part = reap_next_part(reap); part; part = reap_next_part(part))
        if (part->flags & REAP_LIMITED) reap_quota_end(part);
    if (reap->flags & REAP_LIMITED) reap_quota_end(reap);
    reap_quota_gone(reap);
}

/* Keeps the cached child of a reap that ends for whoever needs one next. */
static NOINLINE void hand_over_cached(struct reap *reap)
{
    struct reap *cached = reap_tree_take_cached(&reap->below);
    if (cached) reap_depot_keep(cached);
}

/* Keeps a dead reap: as its parent's cached child, if it can be that, else in a depot. */
static ALWAYS_INLINE void keep(struct reap *parent, struct reap *reap)
{
    bool is_kept = false;
    size_t size = reap_first_chunk(reap)->size;
    if (!parent->below.cached && size == REAP_SMALL_SIZE && size == reap_child_size(parent)) {
        reap_tree_lock(&parent->below);
        is_kept = reap_tree_keep(&parent->below, reap);
        reap_tree_unlock(&parent->below);
    }
    if (!is_kept) reap_depot_keep(reap);
}

/* Ends a reap that has no children any more, and keeps it for the next one. */
static void end_one(struct reap *reap, const char *call)
{
    ASSERT(!reap->below.first && !reap->cleanups);
    struct reap *parent = reap->parent;
    if (parent) reap_region_learn(reap);
    unsigned special = reap->flags & (REAP_LIMITED | REAP_SOURCED | REAP_WATCHED | REAP_ENTERED);
    if (UNLIKELY(special != 0)) end_special(reap, call);
    reap_tree_remove(reap);
    if (reap->below.cached) hand_over_cached(reap);
    if (UNLIKELY(special != 0) && reap_is_shared(reap)) reap_shared_end(reap);
    struct reap_chunk *first = reap_first_chunk(reap);
    bool is_kept = reap_region_destroy(reap, parent && reap_tree_may_keep(parent));
    ASSERT(!reap_chunk_is_live(first) && reap->tag == 0);
    if (is_kept)
        keep(parent, reap);
    else
        reap_chunk_give_back(first);
}

/* Returns true if a reap has nothing to end, and only bumped in its first chunk, of so many bytes. */
static ALWAYS_INLINE bool is_bumped(const struct reap *reap, size_t size)
{
    uintptr_t more = (uintptr_t)reap->below.first | (uintptr_t)reap->cleanups | reap_states(reap);
    return reap_region_only_bumped(reap, size, more);
}

/* Does the same with such a reap, under one lock, after its vote if it has a parent, and keeps it as the
 * list's cached one, if it has the next child's size. any_vote: also if its vote leaves the step. False: that
 * is not so, or the list is locked, and nothing has changed. */
static ALWAYS_INLINE bool end_bumped(struct reap_list *list, struct reap *parent, struct reap *reap,
                                     size_t size, bool any_vote, void **handle)
{
    ASSERT_SOUND(reap);
    if (!reap_tree_try_lock(list)) return false;
    if (parent && UNLIKELY(!reap_region_vote(reap, parent))) {
        if (!any_vote) {
            reap_tree_unlock_below(list);
            return false;
        }
        reap_region_learn(reap);
    }
    bool may_stay = !parent || (size == REAP_SMALL_SIZE && (!any_vote || size == reap_child_size(parent)));
    *handle = NULL;
    reap_tree_unlink(list, reap);
    reap_region_restart(reap, size);
    reap_region_put_to_rest(reap);
    bool is_kept = may_stay && reap_tree_keep(list, reap);
    reap_tree_unlock_below(list);
    if (UNLIKELY(!is_kept)) reap_depot_keep(reap);
    return true;
}

/* Does so with a root. None's children tell how big another's begin. */
static ALWAYS_INLINE bool end_root(struct reap *reap, void **handle)
{
    unsigned number = reap_root_number(reap);
    if (!is_bumped(reap, REAP_FIRST_SIZE)) return false;
    reap_kept_root = (uint8_t)(number + 1);
    atomic_store_explicit(&reap->below.votes, 0, memory_order_relaxed);
    return end_bumped(&reap_roots[number].list, NULL, reap, REAP_FIRST_SIZE, false, handle);
}

/* Does so with a root, and with a child of at most a root's size whose vote leaves its parent's step. */
static ALWAYS_INLINE bool end_small(struct reap *reap, void **handle)
{
    struct reap *parent = reap->parent;
    if (UNLIKELY(reap->below.cached)) return false;
    if (!parent) return end_root(reap, handle);
    size_t size = reap_first_chunk(reap)->size;
    if (UNLIKELY(size != REAP_SMALL_SIZE && size != REAP_FIRST_SIZE)) return false;
    if (UNLIKELY(!reap_tree_may_keep(parent)) || !is_bumped(reap, size)) return false;
    return end_bumped(&parent->below, parent, reap, size, false, handle);
}

/* Does so with any reap without flags, which may keep a child, and votes. */
static bool end_keeping(struct reap *reap, void **handle)
{
    struct reap *parent = reap->parent;
    if (reap->below.cached && !reap->below.first) hand_over_cached(reap);
    if (!parent) return end_root(reap, handle);
    size_t size = reap_first_chunk(reap)->size;
    if (!reap_tree_may_keep(parent) || !is_bumped(reap, size)) return false;
    return end_bumped(&parent->below, parent, reap, size, true, handle);
}

/* Calls the latest function that was registered at this depth of marks or deeper. False: there is none. */
static bool run_latest(struct reap *reap, unsigned depth)
{
    struct reap_cleanup *cleanup = reap->cleanups;
    if (!cleanup || cleanup->depth < depth) return false;
    struct reap_cleanup call = *cleanup;
    ASSERT(call.fn != NULL);
    set_going(reap, depth);
    reap->cleanups = cleanup->next;
    retire_cleanup(reap, cleanup);
    call.fn(call.arg);
    return true;
}

/* Destroys the reaps below top and calls top's functions: those made since the mark of a depth, or all (0).
 * It walks and does not recurse, because trees may be deep. It reads the newest child anew each time, because
 * functions may create and destroy reaps. */
static void empty_tree(struct reap *top, unsigned depth, const char *call)
{
    struct reap *reap = top, *child;
    if (LIKELY(!reap_tree_has_children(reap) && !reap->cleanups)) return;
    for (;;) {
        while ((child = reap_tree_newest(reap, reap == top ? depth : 0)) != NULL) {
            ASSERT(child->parent == reap && child != top);
            check_may_end(child, call);
            set_going(reap, reap == top ? depth : 0);
            reap = child;
        }
        if (reap->cleanups && run_latest(reap, reap == top ? depth : 0)) continue;
        if (reap == top) return;
        struct reap *parent = reap->parent;
        ASSERT(parent && !reap->below.first);
        end_one(reap, call);
        reap = parent;
    }
}

static NOINLINE void rewind_any(void **handle, const reap_mark *mark)
{
    HELD struct reap *reap = reap_hold(handle, "reapRewind");
    reap_mark_check(reap, mark, "reapRewind");
    const reap_mark to = *mark; /* a function may free the mark's memory */
    check_going(reap, "reapRewind");
    if (UNLIKELY(reap->flags & REAP_WATCHED)) reap_check_objects(reap, to.depth, "reapRewind");
    empty_tree(reap, to.depth, "reapRewind");
    ASSERT(reap_tree_newest(reap, to.depth) == NULL || reap->flags & REAP_ENDING);
    reap_alloc_take_remote(reap);
    reap_mark_rewind(reap, &to);
    reap->flags &= (uint8_t)~REAP_ENDING;
}

void reapRewind(void **handle, const reap_mark *mark)
{
    if (UNLIKELY(!reap_mark_rewind_usual(handle, mark))) rewind_any(handle, mark);
}

static void clear_parts(struct reap *reap)
{
    for (struct reap *part = reap_next_part(reap); part; part = reap_next_part(part)) {
        reap_region_clear(part);
        if (part->flags & REAP_LIMITED) reap_quota_end(part);
    }
}

static ALWAYS_INLINE void clear(struct reap *reap, bool is_shared)
{
    ASSERT_SOUND(reap);
    check_may_end(reap, "reapFreeAll");
    if (UNLIKELY(reap_tree_has_children(reap) || reap->cleanups)) empty_tree(reap, 0, "reapFreeAll");
    if (UNLIKELY(reap->flags & REAP_MARKED)) reap_mark_forget_all(reap);
    reap_region_clear(reap);
    if (is_shared) clear_parts(reap);
    if (UNLIKELY(reap->flags & REAP_LIMITED)) reap_quota_end(reap);
    reap->flags &= (uint8_t)~REAP_ENDING;
    ASSERT(!(reap->flags & REAP_MARKED) && !reap->cleanups);
}

static NOINLINE void clear_shared(void **handle)
{
    HELD struct reap *reap = reap_hold(handle, "reapFreeAll");
    clear(reap, true);
}

static NOINLINE void free_all_slow(void **handle)
{
    struct reap *reap = *handle;
    if (!handle_is_plain(reap))
        clear_shared(handle);
    else if (reap->flags & REAP_LIMITED && reap_region_forget(reap, REAP_LIMITED | REAP_SOURCED))
        reap_quota_end(reap);
    else
        clear(reap, false);
}

/* Only the slow ways have a frame: the compiler must not go to each of them from several places, so it does
 * not see what the reap was. clear_shared sees that the argument is NULL. */
void reapFreeAll(void **handle)
{
    struct reap *reap = UNKNOWN(handle) ? *handle : NULL;
    if (handle_is_mapped(reap) && LIKELY(reap_region_forget(reap, REAP_SOURCED))) return;
    if (!handle_may_be_plain(UNKNOWN(reap)))
        clear_shared(handle);
    else
        free_all_slow(handle);
    __asm__ volatile(""); /* no tail call: stacks name the public function */
}

/* Returns true if an address lies in a reap, or in one below it. */
static bool is_within(const void *address, const struct reap *reap)
{
    const struct reap_chunk *chunk = chunk_around(address);
    if (!chunk || !reap_chunk_is_live(chunk)) return false;
    const struct reap *owner = reap_known(chunk->owner);
    if (owner == reap->parent || owner == reap) return owner == reap;
    reap_tree_adopt_begin();
    bool is = reap_tree_is_below(owner, reap);
    reap_tree_adopt_end();
    return is;
}

/* Destroys the reaps below, and calls the functions, which may still use the handle. Then clears the handle,
 * unless it lies in the reap or below it: there a child or a function may have taken its memory away. */
static NOINLINE void empty_whole(struct reap *reap, void **handle)
{
    bool goes = is_within(handle, reap);
    empty_tree(reap, 0, "reapDestroy");
    if (!goes) *handle = NULL;
}

/* Clears the handle before the reap goes, because the handle may lie in the reap itself. */
static NOINLINE void destroy_slow(void **handle)
{
    if (!*handle) return;
    struct reap *reap = reap_hold(handle, "reapDestroy");
    ASSERT_SOUND(reap);
    if (reap->heap && !reap->below.first && !reap->cleanups && !reap->flags && !reap->born)
        reap_region_end_heap(reap);
    if (reap_states(reap) == 0 && end_keeping(reap, handle)) return;
    check_may_end(reap, "reapDestroy");
    if (UNLIKELY(reap->below.first || reap->cleanups))
        empty_whole(reap, handle);
    else
        *handle = NULL;
    end_one(reap, "reapDestroy");
}

ALIGNED void reapDestroy(void **handle)
{
    REAP_NOT_NULL(handle, "reapDestroy");
    struct reap *reap = *handle;
    if (handle_is_mapped(reap) && LIKELY(end_small(reap, handle))) return;
    destroy_slow(handle);
    __asm__ volatile(""); /* no tail call: stacks name the public function */
}

/* --- to another parent ----------------------------------------------------------------------- */

/* Where other limits will be above the tree, all shared reaps in it must be held. Another thread that holds
 * one may wait for a lock of this one: so this one lets go of all, and tries again. */
int reapAdopt(void **handle, void **parent_handle)
{
    REAP_NOT_NULL(handle, "reapAdopt");
    for (;; sched_yield()) {
        HELD struct reap *reap = NULL, *parent = NULL;
        if (parent_handle && *parent_handle)
            reap_hold_both(handle, &reap, parent_handle, &parent, "reapAdopt");
        else
            reap = reap_hold(handle, "reapAdopt");
        check_going(reap, "reapAdopt");
        struct reap_face *held = NULL;
        bool changes = reap_quota_adopt_changes(reap, parent);
        if (changes && !reap_shared_hold_below(reap, &held)) continue;
        if (changes) reap_alloc_take_remote_below(reap);
        reap_tree_adopt_begin();
        bool cycle = parent && reap_tree_is_below(parent, reap);
        bool done = !cycle && (!changes || reap_quota_adopt(reap, parent));
        if (done) reap_tree_adopt(reap, parent);
        reap_tree_adopt_end();
        reap_shared_let_go_below(held);
        if (cycle) errno = EINVAL;
        return done ? 0 : -1;
    }
}
