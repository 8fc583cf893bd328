/* SPDX-License-Identifier: Apache-2.0 */
/* remote_free.c: free() and realloc() of a reap's object, from any thread. */
#include "reap/remote_free.h"

#include "reap.h"

#include <errno.h>
#include <string.h>

#include "base/lock.h"
#include "base/report.h"
#include "hoard/apart.h"
#include "hoard/reap_hooks.h"
#include "hoard/redirect.h"
#include "reap/quota.h"
#include "reap/reap_alloc.h"
#include "reap/reap_depot.h"
#include "reap/reap_enter.h"
#include "reap/reap_shared.h"
#include "reap/reap_tree.h"
#include "reap/shared_use.h"
#include "region/reap_chunk.h"

/* Returns true if the object has room for three words, as far as one word of the bitmap tells. */
bool reap_remote_is_roomy(const struct reap_chunk *chunk, const void *object)
{
    if (chunk->kind != REAP_REGULAR) return false;
    size_t unit = reap_unit(object);
    uint64_t behind = __atomic_load_n(&chunk->starts[unit / 64], __ATOMIC_RELAXED) >> unit % 64 >> 1;
    return behind != 0 && !(behind & 1);
}

/* What was freed last, more or less (reap_point_out). Reaps share these lines by their addresses. */
enum { RECENT_LINES = 64 };
static SPARSE struct recent {
    _Alignas(64) _Atomic(void *) objects[REAP_AHEAD];
    _Atomic(unsigned) turn; /* the next place, modulo REAP_AHEAD */
} recents[RECENT_LINES];

static uintptr_t point_out(const struct reap *reap, uintptr_t *words)
{
    ASSERT((uintptr_t)words % REAP_UNIT == 0);
    struct recent *recent = &recents[((uintptr_t)reap / 1024 ^ (uintptr_t)reap / SUPERBLOCK) % RECENT_LINES];
    unsigned turn = atomic_load_explicit(&recent->turn, memory_order_relaxed);
    atomic_store_explicit(&recent->turn, turn + 1, memory_order_relaxed);
    return reap_point_out(&recent->objects[turn % REAP_AHEAD], words);
}

/* --- the size of an object ------------------------------------------------------------------- */

/* While an object lives, no bit between its start and its end is set, and that at its end stays. */
static size_t usable(const struct reap_chunk *chunk, const void *object)
{
    size_t unit = reap_unit(object), bytes = (reap_block_end(chunk, unit) - unit) * REAP_UNIT;
    reap_use_all(chunk, bytes);
    return bytes;
}

size_t reap_remote_usable_checked(const struct reap_chunk *chunk, const void *object, const char *call)
{
    bool is_live = chunk && reap_chunk_is_live(chunk) && chunk->shared && !chunk->apart;
    if (is_live && reap_is_object(chunk, object) && !reap_is_pending(object)) return usable(chunk, object);
    HELD struct reap *reap = reap_hold_owner(chunk, object, call);
    (void)reap;
    return usable(chunk, object);
}

/* --- pending objects ------------------------------------------------------------------------- */

/* Counts a pending object on the limits of its reap, which look for such objects before they refuse. */
static NOINLINE uintptr_t count(const struct reap_chunk *chunk, const void *object)
{
    return reap_quota_count(chunk->owner, usable(chunk, object)) ? REAP_LINK_COUNTED : 0;
}

static void push_pending(const struct reap_chunk *chunk, void *object, const char *call)
{
    ASSERT((uintptr_t)object % REAP_UNIT == 0);
    struct reap *reap = chunk->owner;
    uintptr_t *words = object;
    if (reap_is_freed(object)) report_misuse(call, object, "freed twice");
    reap_use_all(chunk, REAP_UNIT);
    words[1] = reap_pending(object);
    uintptr_t link = reap_remote_is_roomy(chunk, object) ? point_out(reap, words) : reap_link(words, false);
    if (UNLIKELY(__atomic_load_n(&reap->flags, __ATOMIC_ACQUIRE) & REAP_LIMITED))
        link |= count(chunk, object);
    reap_push_pending(reap, words, link);
}

/* --- the calls ------------------------------------------------------------------------------- */

/* Returns true if this thread has entered the reap of a chunk, or the reap is shared. */
static bool is_own(const struct reap_chunk *chunk) { return chunk->owner == redirect_reap || chunk->shared; }

static void free_as_own(struct reap_chunk *chunk, void *object, const char *call)
{
    ASSERT(is_own(chunk));
    int saved = errno;
    if (chunk->shared && reap_chunk_is_live(chunk)) {
        shared_free_any(reap_face(chunk->owner), object, call);
        errno = saved;
        return;
    }
    HELD struct reap *reap = reap_hold_owner(chunk, object, call);
    if (reap_is_freed(object)) report_misuse(call, object, "freed twice");
    reap_alloc_free(reap, chunk, object);
    errno = saved;
}

static void *alloc_entered(void *entered, size_t alignment, size_t size)
{
    struct reap *reap = entered;
    ASSERT(entered == redirect_reap);
    USED struct reap_use use = {reap, NULL};
    if (UNLIKELY(reap_is_shared(reap))) use = reap_use_face(reap_face(reap));
    return reap_use_malloc(&use, alignment, size);
}

/* Frees an object of the entered reap, as most are, by a fast path. False: nothing was freed. */
static bool free_entered(void *object)
{
    struct reap *reap = redirect_reap;
    if (!reap || reap->flags & REAP_WATCHED || reap_is_shared(reap) || (uintptr_t)object % REAP_UNIT)
        return false;
    if (reap_is_pending(object)) return false;
    return reap_free_fast(reap, object) || reap_free_in_region(reap, object);
}

/* Frees an object from any thread: it reads of the reap only cache lines that seldom change. */
static void free_from_any(void *in, void *object, const char *call)
{
    struct reap_chunk *chunk = in;
    if (free_entered(object)) return;
    if (UNLIKELY(is_own(chunk))) {
        free_as_own(chunk, object, call);
        return;
    }
    if (UNLIKELY(!reap_chunk_is_live(chunk) || !reap_is_object(chunk, object)))
        reap_misuse_object(call, NULL, object);
    push_pending(chunk, object, call);
}

/* Makes a chunk with an object for the reap, which links it later. */
static struct reap_chunk *whole_object(struct reap *reap, size_t size)
{
    bool limited = __atomic_load_n(&reap->flags, __ATOMIC_RELAXED) & REAP_LIMITED;
    if (reap_is_users(reap)) return no_memory(); /* only its thread may call a source */
    size_t units = size > PTRDIFF_MAX ? PTRDIFF_MAX : reap_units(size), bytes = units * REAP_UNIT;
    if (limited && !reap_quota_draw(reap, bytes)) return NULL;
    ASSERT(bytes != 0);
    struct reap_chunk *whole = reap_chunk_whole(reap, REAP_UNIT, size, NULL);
    if (!whole && limited) reap_quota_undraw(reap, bytes);
    return whole;
}

static void *realloc_object(void *in, void *object, size_t size, const char *call)
{
    struct reap_chunk *chunk = in;
    if (UNLIKELY(chunk->shared) && reap_chunk_is_live(chunk))
        return shared_realloc(reap_face(chunk->owner), object, size, call);
    HELD struct reap *reap = reap_hold_owner(chunk, object, call);
    if (UNLIKELY(is_own(chunk))) return reap_alloc_resize(reap, chunk, object, size);
    size_t have = usable(chunk, object);
    if (size <= have) return object;
    struct reap_chunk *whole = whole_object(reap, size);
    if (!whole) return NULL;
    ASSERT(whole->owner == reap && (whole->end_unit - whole->first) * REAP_UNIT >= size);
    void *copy = reap_address(whole->first);
    memcpy(copy, object, have);
    struct reap_chunk *head = atomic_load_explicit(&reap->remote_chunks, memory_order_relaxed);
    do whole->next = head;
    while (!atomic_compare_exchange_weak_explicit(&reap->remote_chunks, &head, whole, memory_order_release,
                                                  memory_order_relaxed));
    push_pending(chunk, object, call);
    return copy;
}

int reapFreeAny(void *object)
{
    struct reap_chunk *chunk = object ? chunk_of(object, NULL) : NULL;
    if (chunk) {
        free_from_any(chunk, object, "reapFreeAny");
        return 0;
    }
    /* Within an object that lies apart, or freed and not given back: else it may be malloc's. */
    const struct reap_chunk *around = object ? apart_find_around(object) : NULL;
    if (UNLIKELY(around && (reap_chunk_is_live(around) || apart_waits(object))))
        reap_misuse_object("reapFreeAny", NULL, object);
    errno = ENOENT;
    return -1;
}

static size_t usable_size(void *chunk, const void *object, const char *call)
{
    return reap_remote_usable_checked(chunk, object, call);
}

void reap_remote_start(void)
{
    static const struct reap_hooks client = {.free_object = free_from_any,
                                             .realloc_object = realloc_object,
                                             .usable_size = usable_size,
                                             .alloc = alloc_entered,
                                             .trim = reap_depot_trim,
                                             .give_idle = reap_depot_give_idle,
                                             .kept = reap_depot_bytes,
                                             .fork_prepare = reap_shared_fork_prepare,
                                             .fork_parent = reap_shared_fork_parent,
                                             .fork_child = reap_shared_fork_child,
                                             .take_along = reap_enter_take_along};
    reap_hooks_set(&client);
}
