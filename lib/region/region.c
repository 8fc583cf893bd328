/* SPDX-License-Identifier: Apache-2.0 */
/* region.c: a reap's first chunk, and with it how reaps are created, cleared and destroyed. */
#include "region/region.h"

#include <errno.h>
#include <string.h>

#include "hoard.h"
#include "hoard/user_memory.h"
#include "region/reap_free.h"

_Atomic(uint32_t) reap_seconds;

/* A small child that settles has the fewest votes; a greater one, one vote for less. */
#define STEP(n, smaller)                                                                                     \
    {                                                                                                        \
        .size = REAP_FIRST_SIZE << ((n)-1), .least = (smaller), .settled = (uint8_t)((n)-REAP_VOTE)          \
    }
const struct reap_step reap_steps[REAP_STEPS] = {
    {.size = REAP_SMALL_SIZE, .least = 0, .settled = (uint8_t)(REAP_VOTES_MIN * REAP_VOTE)},
    STEP(1, REAP_SMALL_SIZE - REAP_SMALL_HEAD),
    STEP(2, REAP_FIRST_SIZE - REAP_FIRST_HEAD),
    STEP(3, 2 * REAP_FIRST_SIZE - REAP_FIRST_HEAD),
};

/* Makes an empty chunk the hole; but where objects lie apart, only records come from chunks. */
static void open_hole(struct reap *reap, struct reap_chunk *chunk)
{
    reap_chunk_bump_in(reap, chunk, chunk->first, chunk->end_unit);
    reap_choose_mode(reap);
    if (LIKELY(!apart_on)) return;
    reap_free_leave_hole(reap);
    reap->flags |= REAP_WATCHED;
}

static void lay_out_first(struct reap *reap, struct reap_chunk *chunk, size_t size, bool is_users)
{
    reap_lay_out(chunk, reap, size, reap_head(size), is_users);
    reap->carved = size;
    open_hole(reap, chunk);
}

/* Clears a reap by lines: of more at once a compiler makes `rep stos`. */
static ALWAYS_INLINE void clear_lines(struct reap *reap)
{
    char *line = (char *)reap;
    memset(line, 0, 64);
    memset(line + 64, 0, 64);
    memset(line + 128, 0, 64);
    memset(line + 192, 0, offsetof(struct reap, own) + sizeof reap->own - 192);
    reap->self = reap;
    reap->tables = &reap_no_tables;
}

/* Makes a reap in its first chunk, but for its tags. */
static struct reap *begin_reap(struct reap_chunk *chunk, size_t size, bool is_users)
{
    ASSERT((uintptr_t)chunk % USER_MEMORY_ALIGN == 0 && size >= REAP_SMALL_SIZE);
    struct reap *reap = (struct reap *)((char *)chunk + REAP_HEADER);
    chunk->tag = 0;
    clear_lines(reap);
    lay_out_first(reap, chunk, size, is_users);
    reap->held = reap->peak = size;
    return reap;
}

struct reap *reap_region_renew(struct reap *reap, size_t size)
{
    struct reap_chunk *first = reap_first_chunk(reap);
    if (UNLIKELY(first->owner != reap || first->size != size || !first->is_mapped)) {
        chunk_free(first);
        return NULL;
    }
    clear_lines(reap);
    reap->carved = reap->held = reap->peak = size;
    open_hole(reap, first);
    return reap;
}

/* Makes the first chunk of a buffer's whole KiBs, from the first multiple of 1 KiB on. */
static_assert(REAP_BUFFER_MIN - 2 * USER_MEMORY_ALIGN > REAP_FIRST_HEAD + REAP_BUFFER_MIN / 64,
              "a reap and objects fit into the smallest buffer");
static struct reap_chunk *in_buffer(struct chunk_source *backing, size_t *size)
{
    uintptr_t start = ((uintptr_t)backing->buffer + USER_MEMORY_ALIGN - 1) & -(uintptr_t)USER_MEMORY_ALIGN;
    uintptr_t end = ((uintptr_t)backing->buffer + *size) & -(uintptr_t)USER_MEMORY_ALIGN;
    *size = end - start;
    backing->buffer = (void *)start;
    int error = user_memory_add(backing->buffer, *size);
    if (error == 0) return backing->buffer;
    errno = error == EEXIST ? EINVAL : error;
    return NULL;
}

struct reap *reap_region_create_from(const struct chunk_source *asked, size_t size)
{
    struct chunk_source backing = *asked;
    struct reap_chunk *chunk =
        backing.buffer ? in_buffer(&backing, &size) : chunk_source_take(&backing, size, &size, NULL);
    if (!chunk) return NULL;
    struct reap *reap = begin_reap(chunk, size, chunk_source_is_users(&backing));
    reap->flags |= REAP_SOURCED;
    reap_records(reap)->source = backing;
    return reap_region_enliven(reap);
}

struct reap *reap_region_create(const struct reap *parent)
{
    size_t size = parent ? reap_child_size(parent) : REAP_FIRST_SIZE;
    struct reap_chunk *chunk = chunk_alloc(size, &size, NULL);
    if (!chunk) return NULL;
    struct reap *reap = begin_reap(chunk, size, false);
    uint8_t votes = parent ? atomic_load_explicit(&parent->below.votes, memory_order_relaxed) : 0;
    atomic_init(&reap->below.votes, (uint8_t)reap_step_below(votes));
    return reap_region_enliven(reap);
}

uint8_t reap_region_votes_after(const struct reap *reap, uint8_t state)
{
    ASSERT(reap->parent);
    const struct reap_chunk *first = reap_first_chunk(reap);
    unsigned step = reap_step(state), below = reap_step(reap->below.votes);
    int votes = (int8_t)(state & -REAP_VOTE) / REAP_VOTE;
    if (first->size != reap_size_of_step(step)) return state; /* it began before the last step */
    bool outgrown = reap->peak > first->size;
    bool less = step == 0 || (reap->current == first && reap_region_fits(reap, reap_size_of_step(step - 1)));
    bool right = !outgrown && !less; /* then votes end at -1: so a few great children change nothing */
    votes = right && votes >= -1 ? -1 : votes + (less && !outgrown ? -1 : 1);
    if (votes > 0) {
        if (outgrown && step < REAP_FIRST_STEPS) step++;
        votes = 0;
    } else if (step > 0 && less && !outgrown && votes <= REAP_VOTES_SHRINK) {
        step--; /* of several steps at once votes go below that */
    } else if (votes < REAP_VOTES_MIN) {
        votes = REAP_VOTES_MIN;
    }
    ASSERT(step <= REAP_FIRST_STEPS && votes <= 0 && votes >= REAP_VOTES_MIN);
    return (uint8_t)(votes * REAP_VOTE + (int)(below * REAP_BELOW + step));
}

/* Clears the tag of a chunk that is on no list, and gives it back. */
static void give_back(struct reap_chunk *chunk)
{
    chunk->tag = 0;
    if (chunk->kind == REAP_REGULAR) entry_clear(chunk);
    reap_chunk_give_back(chunk);
}

static void give_back_all(struct reap_chunk *chunk)
{
    while (chunk) {
        struct reap_chunk *next = chunk->next;
        give_back(chunk);
        chunk = next;
    }
}

/* Empties the remote list of a reap that ends or is cleared: pending objects go with all others. It clears
 * their marks, because their memory may become an object again, which must not look pending. */
static void drop_pending(struct reap *reap)
{
    if (LIKELY(!atomic_load_explicit(&reap->remote, memory_order_relaxed))) return;
    uintptr_t link = atomic_exchange_explicit(&reap->remote, 0, memory_order_acquire);
    for (uintptr_t *words; (words = reap_link_object(link)); link = words[0]) {
        if (words[1] != reap_pending(words)) break; /* this object was pushed twice, and comes again */
        words[1] = 0;
    }
}

/* Ends all that a reap has beside its first chunk. */
static NOINLINE void end_rest(struct reap *reap)
{
    drop_pending(reap);
    reap_chunk_adopt(reap);
    give_back_all(reap->chunks);
    give_back_all(reap_spares(reap));
    if (reap_tables_are_apart(reap)) hoard_free(reap->own);
    entry_clear(reap_first_chunk(reap));
    reap_chunk_bump_nowhere(reap);
    reap->tables = &reap_no_tables;
}

/* The entries go first: the child of a fork may end the reap. */
bool reap_region_end_heap(struct reap *reap)
{
    struct reap_chunk *first = reap_first_chunk(reap);
    bool is_apart = reap_tables_are_apart(reap);
    uintptr_t more =
        (uintptr_t)reap->chunks | reap->spare_bytes | !first->lives | (reap->flags & REAP_UNMAPPED);
    more |= atomic_load_explicit(&reap->remote, memory_order_relaxed);
    more |= (uintptr_t)atomic_load_explicit(&reap->remote_chunks, memory_order_relaxed);
    if (more != 0 || reap->peak != first->size + (is_apart ? sizeof *reap->own : 0)) return false;
    entry_clear(first);
    first->lives = NULL;
    first->state = REAP_CHUNK_REGION;
    if (is_apart) hoard_free(reap->own);
    reap->held = reap->peak = first->size;
    reap->tables = &reap_no_tables;
    reap->own = NULL;
    bool has_end = reap->current && reap_unit(reap->bump_max) == first->end_unit;
    reap_chunk_bump_in(reap, first, has_end ? reap_unit(reap->bump) : first->end_unit, first->end_unit);
    first->dead = 0;
    reap->heap = false;
    reap_choose_mode(reap);
    return true;
}

bool reap_region_destroy(struct reap *reap, bool may_stay)
{
    ASSERT(reap->tag == reap_tag(reap) || reap->tag == reap_hidden_tag(reap) || reap_is_shared(reap));
    ASSERT(!reap->below.first && !reap->below.cached && !reap->cleanups);
    uint8_t votes = atomic_load_explicit(&reap->below.votes, memory_order_relaxed);
    struct reap_chunk *first = reap_first_chunk(reap);
    may_stay = may_stay && !(reap->flags & (REAP_WATCHED | REAP_SOURCED));
    if (reap->flags & REAP_UNMAPPED || !reap_region_only_bumped(reap, first->size, 0)) {
        end_rest(reap);
        if (may_stay) begin_reap(first, first->size, false);
    } else if (may_stay) {
        reap_region_restart(reap, first->size);
        reap->mark_at = NULL;
        reap->born = reap->flags = 0;
    }
    atomic_store_explicit(&reap->below.votes, votes, memory_order_relaxed);
    reap_region_put_to_rest(reap);
    return may_stay;
}

/* Sets `keep`, the bytes of spares for the next round, from the bytes of chunks that this round has used
 * beside the first one: a greater number at once, a smaller one by an eighth of the difference. */
static void update_keep(struct reap *reap)
{
    size_t used = 0;
    for (const struct reap_chunk *chunk = reap->chunks; chunk; chunk = chunk->next)
        if (chunk->kind == REAP_REGULAR) used += chunk->size;
    if (used > REAP_KEEP_MAX) used = REAP_KEEP_MAX;
    ASSERT(used <= REAP_KEEP_MAX && reap->keep <= REAP_KEEP_MAX);
    if (used >= reap->keep)
        reap->keep = (uint32_t)used;
    else
        reap->keep -= (reap->keep - (uint32_t)used + 7) / 8;
}

/* The current chunk, if options made it a big one, and the round has not used half of it; else NULL. */
static const struct reap_chunk *too_big(const struct reap *reap)
{
    const struct reap_chunk *chunk = reap->current;
    bool is = chunk && chunk->size > REAP_KEEP_MAX && (size_t)(reap->bump - (char *)chunk) < chunk->size / 2;
    return is ? chunk : NULL;
}

static void keep_or_give_back(struct reap *reap, struct reap_chunk *chunk, bool is_too_big)
{
    ASSERT(chunk != reap_first_chunk(reap) && chunk->owner == reap && reap->held >= chunk->size);
    if (chunk->kind != REAP_REGULAR || reap->spare_bytes >= reap->keep || is_too_big) {
        reap->held -= chunk->size;
        give_back(chunk);
        return;
    }
    entry_clear(chunk);
    chunk->kind = REAP_SPARE;
    chunk->lives = NULL;
    ASSERT(!chunk->is_users || reap->flags & REAP_SOURCED);
    chunk->next = reap->spares;
    reap->spares = chunk;
    reap->spare_bytes += (uint32_t)chunk->size;
}

void reap_region_trim(struct reap *reap, size_t keep)
{
    while (reap->spare_bytes > keep) {
        struct reap_chunk *chunk = reap->spares;
        reap->spares = chunk->next;
        reap->spare_bytes -= (uint32_t)chunk->size;
        reap->held -= chunk->size;
        give_back(chunk);
    }
    if (reap->keep > keep) reap->keep = (uint32_t)keep;
    reap_free_trim(reap);
}

/* Keeps or gives back each chunk of the round, and then each spare that the round has not used. */
static void sort_out_chunks(struct reap *reap, const struct reap_chunk *too_big)
{
    struct reap_chunk *lists[] = {reap->chunks, reap_spares(reap)};
    if (!lists[0] && !lists[1]) return;
    ASSERT(reap->current == NULL || reap->current == reap_first_chunk(reap));
    reap->chunks = reap->spares = NULL;
    reap->spare_bytes = 0;
    for (size_t i = 0; i < 2; i++) {
        while (lists[i]) {
            struct reap_chunk *chunk = lists[i];
            lists[i] = chunk->next;
            bool unused = chunk->kind == REAP_SPARE;
            if (unused) chunk->kind = REAP_REGULAR;
            keep_or_give_back(reap, chunk, chunk == too_big || (unused && chunk->size > REAP_KEEP_MAX));
        }
    }
}

/* Takes the chunk of a name off its list: a first chunk in a buffer with a source may be too small. */
static struct reap_chunk *take_off_chunk_of_name(struct reap *reap)
{
    struct reap_chunk *chunk = chunk_of(reap->name, NULL), **link = &reap->chunks;
    while (*link != chunk) link = &(*link)->next;
    *link = chunk->next;
    return chunk;
}

static void move_name(struct reap *reap, void *to, size_t size)
{
    struct reap_name *name = memmove(to, reap_own_name(reap), size);
    reap->name = name->text;
}

/* Begins the next round in the name's chunk: a clear cannot fail, so it asks for no other chunk. */
static void begin_in_chunk_of_name(struct reap *reap, struct reap_chunk *chunk, size_t size)
{
    reap_free_leave_hole(reap);
    entry_clear(chunk);
    reap_chunk_start(reap, chunk);
    open_hole(reap, chunk);
    move_name(reap, reap_chunk_record(reap, chunk, size), size);
    ASSERT(reap->current == (apart_on ? NULL : chunk) && reap->name);
}

/* The bytes of the copy of a name that lies in a chunk. 0: there is none. */
static size_t size_of_name(const struct reap *reap)
{
    const struct reap_name *name = reap_own_name(reap);
    return name && name != reap_short_name(reap) ? sizeof *name + name->room : 0;
}

/* Makes the face a record again, at the place where it is. */
static void carve_face(struct reap *reap)
{
    if (reap_is_shared(reap)) reap_chunk_record(reap, reap_first_chunk(reap), REAP_FACE);
}

/* Clears a reap that has more than objects in its first chunk. */
static NOINLINE void clear_any(struct reap *reap)
{
    struct reap_chunk *first = reap_first_chunk(reap);
    drop_pending(reap);
    reap_chunk_adopt(reap);
    update_keep(reap);
    const struct reap_chunk *big = too_big(reap);
    if (reap_region_only_bumped(reap, first->size, 0)) reap_region_forget_records(reap, first, first->size);
    reap->cleanups = reap->spare_cleanups = NULL; /* before the hole is there: see Fork in reap_tree.h */
    entry_clear(first);
    reap->heap = false;
    reap->flags &= (uint8_t)~REAP_UNMAPPED;
    lay_out_first(reap, first, first->size, first->is_users);
    first->shared = reap_is_part(reap);
    reap->tables = &reap_no_tables;
    carve_face(reap);
    size_t size = size_of_name(reap);
    void *place = size ? reap_chunk_record(reap, first, size) : NULL;
    struct reap_chunk *names = size && !place ? take_off_chunk_of_name(reap) : NULL;
    if (place) move_name(reap, place, size);
    sort_out_chunks(reap, big);
    if (names) begin_in_chunk_of_name(reap, names, size);
}

ALIGNED void reap_region_clear(struct reap *reap)
{
    ASSERT(!reap->below.first && !(reap->flags & REAP_MARKED));
    size_t size = reap_first_chunk(reap)->size;
    if (reap->heap) reap_region_end_heap(reap);
    if (size_of_name(reap) || reap->flags & (REAP_WATCHED | REAP_UNMAPPED) ||
        !reap_region_only_bumped(reap, size, 0)) {
        clear_any(reap);
        return;
    }
    if (LIKELY(size == REAP_FIRST_SIZE))
        reap_region_restart(reap, REAP_FIRST_SIZE);
    else
        reap_region_restart(reap, size);
    if (UNLIKELY(reap->flags & REAP_SOURCED)) carve_face(reap);
}
