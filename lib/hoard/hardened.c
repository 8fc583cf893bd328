/* SPDX-License-Identifier: Apache-2.0 */
#include "hoard/hardened.h"

#include "arena/large.h"
#include "base/kernel.h"
#include "base/options.h"
#include "base/parse.h"
#include "base/report.h"
#include "base/sanitizer.h"
#include "hoard/chunk_provider.h"
#include "hoard/malloc_fast.h"
#include "hoard/user_memory.h"
#include "os/pages.h"

#include <string.h>
#include <sys/random.h>
#include <sys/single_threaded.h>

enum {
    SEAL = sizeof(uint64_t),
    LEAST = 2 * BLOCK_UNIT, /* bytes of the smallest block: the heap writes to a free one's first 16 */
    CANARY = sizeof(uint64_t),
    LOOKED = 64, /* bytes behind an object that are zero, but for the canary */
    POOL = 16,
    POOL_BYTES = 4096, /* of a class: fresh blocks, and their bytes */
    SMALL = 1024,      /* bytes of a block that waits with the small ones */
    RANDOM = 64,
    RING = 1024, /* small blocks that wait */
    BIG = 16,
    BIG_BYTES = 256 * 1024, /* blocks above SMALL that wait, and their bytes */
    SPANS = 8,
    SPAN_BYTES = 4 * 1024 * 1024, /* large objects that wait, and the bytes of one */
    CLEARED = 4 * SUPERBLOCK,     /* bytes that are cleared sooner than page faults bring them again */
    GUARDED_LEAST = 16 * 1024,    /* harden=2: objects above this are large */
    SHARDS = 16,
};

static const char behind[] = "memory behind it was written to", before[] = "memory before it was written to",
                  freed_twice[] = "freed twice", unknown[] = "freed before, or never allocated",
                  freed[] = "used after it was freed";

typedef _Atomic(char *) place;

/* The places of the threads with one heap id, and mostly of one thread. */
struct shard {
    place pool[CLASSES][POOL];
    place random[RANDOM], ring[RING], big[BIG], spans[SPANS];
    _Atomic size_t big_bytes;
    uint64_t seed; /* changes of two threads may be lost, here and in the turns */
    unsigned turn, big_turn, span_turn;
};
static SPARSE struct shard shards[SHARDS];

unsigned hardened_level;
static uint64_t secret;
static _Atomic(ptrdiff_t) fences_left; /* harden=2: see fence */

/* A fence makes two mappings, and the program has half of those that the kernel allows for itself. */
static size_t fences_allowed(void)
{
    char text[32];
    const char *at = text;
    size_t mappings = 65530; /* the kernel's own number */
    size_t size = kernel_read_file("/proc/sys/vm/max_map_count", text, sizeof text);
    parse_number(&at, text + size, PTRDIFF_MAX, &mappings);
    return mappings / 4;
}

/* Watched blocks have a tool's own checks, which are better. */
void hardened_start(void)
{
    if (options.harden == 0 || sanitizer_running()) return;
    if (KERNEL(SYS_getrandom, &secret, sizeof secret, GRND_NONBLOCK) != sizeof secret)
        secret = superblock_cookie;
    superblock_clears = true;
    hardened_level = options.harden;
    if (hardened_level > 1) fences_left = (ptrdiff_t)fences_allowed();
}

static ALWAYS_INLINE struct shard *my_shard(void) { return &shards[heap_path_id() % SHARDS]; }

/* A number that the program does not know (xorshift, of the secret). */
static ALWAYS_INLINE unsigned draw(struct shard *shard, unsigned below)
{
    uint64_t x = __atomic_load_n(&shard->seed, __ATOMIC_RELAXED);
    if (x == 0) x = secret | 1;
    x ^= x << 13, x ^= x >> 7, x ^= x << 17;
    __atomic_store_n(&shard->seed, x, __ATOMIC_RELAXED);
    return (unsigned)((x >> 32) * below >> 32);
}

static unsigned next_turn(unsigned *turn)
{
    unsigned now = __atomic_load_n(turn, __ATOMIC_RELAXED);
    __atomic_store_n(turn, now + 1, __ATOMIC_RELAXED);
    return now;
}

/* Atomic where there are several threads. */
static ALWAYS_INLINE char *exchange(place *at, char *block)
{
    if (!__libc_single_threaded) return atomic_exchange_explicit(at, block, memory_order_acq_rel);
    char *old = atomic_load_explicit(at, memory_order_relaxed);
    atomic_store_explicit(at, block, memory_order_relaxed);
    return old;
}

/* --- seals and canaries ---------------------------------------------------------------------- */

static ALWAYS_INLINE uint64_t seal_of(const char *block, size_t size)
{
    uint64_t x = ((uintptr_t)block ^ secret) * 0x9e3779b97f4a7c15u;
    return (x ^ x >> 32) ^ size;
}

static uint64_t dead_seal(const char *block) { return ~seal_of(block, 0); }

/* The size that a seal tells; more than any room if it is no live block's. */
static size_t size_in(uint64_t seal, const char *block) { return seal ^ seal_of(block, 0); }

static uint64_t *seal_at(const char *block, size_t room) { return (uint64_t *)(uintptr_t)(block + room); }

/* Never 0 in the first byte: a text that is a byte too long ends with one. */
static uint64_t canary_of(const char *block) { return seal_of(block, 0) | 1; }

static uint64_t load(const char *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof word);
    return word;
}

static void store(char *at, uint64_t word) { memcpy(at, &word, sizeof word); }

/* Returns true if the canary is whole, and behind it some bytes are zero still. `room` bytes can be read, and
 * a word more if it is the canary's. */
static ALWAYS_INLINE bool is_whole(const char *block, size_t size, size_t room)
{
    const char *at = block + size, *end = block + (room - size > LOOKED ? size + LOOKED : room);
    if (room == size) return true;
    uint64_t changed = load(at) ^ canary_of(block);
    if (room - size < CANARY) return changed << 8 * (CANARY - (room - size)) == 0;
    for (at += CANARY; at + CANARY < end; at += CANARY) changed |= load(at);
    return (changed | (at < end ? load(end - CANARY) >> 8 * (CANARY - (size_t)(end - at)) : 0)) == 0;
}

/* `at` and size are multiples of 8. */
static ALWAYS_INLINE bool is_zero(const char *at, size_t size)
{
    const uint64_t *word = (const uint64_t *)(const void *)at, *end = word + size / 8;
    uint64_t bits = 0;
    while (word < end) bits |= *word++;
    return bits == 0;
}

static COLD void written(const char *block) { superblock_written((void *)(uintptr_t)block); }

/* --- blocks of a class ----------------------------------------------------------------------- */

static size_t room_of(const struct superblock *sb) { return superblock_class(sb)->size - SEAL; }

static ALWAYS_INLINE void set_block(char *block, size_t size, size_t room)
{
    uint64_t canary = canary_of(block);
    size_t left = room - size;
    if (LIKELY(left >= CANARY))
        store(block + size, canary);
    else
        memcpy(block + size, &canary, left); /* others may look at the seal at any moment */
    __atomic_store_n(seal_at(block, room), seal_of(block, size), __ATOMIC_RELEASE);
}

static inline void give_block(char *block)
{
    struct arena *arena = pagemap_find(block);
    struct superblock *sb = arena_slot(arena, block);
    if (UNLIKELY((load(block) | load(block + SEAL)) != 0)) written(block);
    if (LIKELY(sb->kind == SLOT_BLOCKS)) {
        hoard_push(sb, block);
    } else {
        sb = arena_head(arena, block);
        hoard_push(sb, arena_stub_of(arena, sb, block));
    }
}

/* --- large objects --------------------------------------------------------------------------- */

/* In the descriptor's `pending`, which spans do not use: dead, or the size and 1, with a fence or without. */
enum { LARGE_DEAD = -1 };
#define LARGE_FENCED ((uint64_t)1 << 63)

static struct superblock *head_of(struct arena *arena, const void *object)
{
    return arena->mapping != 0 ? &arena->slots[0] : arena_slot(arena, object);
}

/* The bytes of a large object that anybody may touch. */
static size_t large_room(struct arena *arena, const char *object, size_t size)
{
    return hardened_level > 1 ? align_up(size != 0 ? size : 1, PAGE) : large_size(arena, object);
}

/* harden=2: a fence of pages behind a large object. false: there are as many as may be, or the OS refused. */
static bool fence(struct arena *arena, char *object, size_t size)
{
    size_t room = large_room(arena, object, size), bytes = large_size(arena, object);
    if (hardened_level < 2 || room == bytes) return false;
    if (atomic_fetch_sub(&fences_left, 1) > 0 && pages_protect(object + room, bytes - room, false))
        return true;
    atomic_fetch_add(&fences_left, 1);
    return false;
}

static void set_large(struct arena *arena, char *object, size_t size)
{
    size_t left = large_room(arena, object, size) - size;
    uint64_t canary = canary_of(object);
    memcpy(object + size, &canary, left < CANARY ? left : CANARY);
    uint64_t fenced = fence(arena, object, size) ? LARGE_FENCED : 0;
    atomic_store_explicit(&head_of(arena, object)->pending, (size + 1) | fenced, memory_order_release);
}

static size_t large_with(size_t size) { return size + (hardened_level > 1 ? (size_t)PAGE : (size_t)CANARY); }

/* Behind a canary may be what the object had before it shrank. */
static bool large_is_whole(const char *object, size_t size, size_t room)
{
    uint64_t canary = canary_of(object);
    return memcmp(object + size, &canary, room - size < CANARY ? room - size : CANARY) == 0;
}

static size_t large_size_in(uint64_t state, struct arena *arena, const char *object, const char *call)
{
    size_t size = (state & ~LARGE_FENCED) - 1;
    if (state == (uint64_t)LARGE_DEAD) report_misuse(call, object, freed_twice);
    if (state == 0 || size > large_size(arena, object)) report_misuse(call, object, unknown);
    if (!large_is_whole(object, size, large_room(arena, object, size))) report_misuse(call, object, behind);
    return size;
}

static bool purge_large(char *object, size_t bytes)
{
    return bytes > CLEARED && bytes <= ARENA_SPAN_MAX && pages_purge(object, bytes);
}

/* Where the OS does not make all of it accessible again, its addresses are lost. */
static void give_large(char *object)
{
    struct arena *arena = pagemap_find(object);
    size_t bytes = large_size(arena, object);
    if (hardened_level == 1 || bytes > ARENA_SPAN_MAX || pages_protect(object, bytes, true))
        large_free(arena, object);
    else
        pages_purge(object, bytes);
}

static void free_large(struct arena *arena, char *object, const char *call)
{
    uint64_t state = atomic_exchange(&head_of(arena, object)->pending, (uint64_t)LARGE_DEAD);
    size_t size = large_size_in(state, arena, object, call), bytes = large_size(arena, object);
    struct shard *shard = my_shard();
    if ((state & LARGE_FENCED) != 0) atomic_fetch_add(&fences_left, 1); /* all of it is alike from now on */
    if (bytes <= CLEARED) memset(object, 0, size);
    if (bytes <= CLEARED || (bytes <= SPAN_BYTES && purge_large(object, bytes))) {
        if (hardened_level > 1) pages_protect(object, bytes, false);
        object = exchange(&shard->spans[next_turn(&shard->span_turn) % SPANS], object);
    }
    if (object != NULL) give_large(object);
}

static void *resize_large(struct arena *arena, char *object, size_t have, size_t size)
{
    char *moved = object;
    if (hardened_level > 1 || size <= GUARDED_LEAST || size > SIZE_LIMIT - SUPERBLOCK) return NULL;
    if (!large_resize(arena, object, large_with(size)))
        moved = arena->mapping != 0 ? large_move(arena, object, large_with(size)) : NULL;
    if (moved == NULL) {
        set_large(arena, object, have);
        return NULL;
    }
    if (size > have) memset(moved + have, 0, size - have < CANARY ? size - have : CANARY);
    set_large(pagemap_find(moved), moved, size);
    return moved;
}

static void give_big(struct shard *shard, char *block)
{
    atomic_fetch_sub(&shard->big_bytes, room_of(arena_head(pagemap_find(block), block)) + SEAL);
    give_block(block);
}

/* Gives all waiting and fresh blocks of all threads back, since there is no memory. */
static COLD void give_waiting(void)
{
    for (struct shard *shard = shards; shard < shards + SHARDS; shard++) {
        for (place *at = shard->pool[0]; at < shard->spans; at++) {
            char *block = atomic_load_explicit(at, memory_order_relaxed) ? exchange(at, NULL) : NULL;
            if (block != NULL && at < shard->big) give_block(block);
            if (block != NULL && at >= shard->big) give_big(shard, block);
        }
        for (unsigned i = 0; i < SPANS; i++) {
            char *object = exchange(&shard->spans[i], NULL);
            if (object != NULL) give_large(object);
        }
    }
    heap_give_all();
    arena_purge(0);
}

/* hoard_large, of which this must not know. */
static void *take_large(size_t size, size_t alignment, bool *zeroed)
{
    if (UNLIKELY(arena_nears_limit(size))) heap_give_idle();
    void *object = large_alloc(size, alignment, false, zeroed);
    if (LIKELY(object != NULL)) return object;
    give_waiting();
    return large_alloc(size, alignment, false, zeroed);
}

static void *alloc_large(size_t alignment, size_t size)
{
    bool zeroed;
    if (size > SIZE_LIMIT - SUPERBLOCK) return no_memory();
    char *object = take_large(large_with(size), alignment, &zeroed);
    if (object == NULL) return NULL;
    if (!zeroed && !purge_large(object, align_up(size, PAGE))) memset(object, 0, size);
    set_large(pagemap_find(object), object, size);
    return object;
}

static unsigned pool_size(unsigned class)
{
    unsigned n = POOL_BYTES / sizeclasses[class].size;
    return n < POOL ? n : POOL;
}

/* Takes a block that was free before; or exchanges fresh ones for those in the pool, until that had one. */
static ALWAYS_INLINE char *take_block(unsigned class)
{
    size_t room = sizeclasses[class].size - SEAL;
    for (unsigned n = pool_size(class);;) {
        char *block = hoard_pop(class);
        if (UNLIKELY(block == NULL)) block = hoard_block_of(class, heap_malloc_slow(class));
        if (UNLIKELY(block == NULL)) return NULL;
        store(block, 0), store(block + SEAL, 0);
        if (LIKELY(*seal_at(block, room) != 0) || n == 0) return block;
        struct shard *shard = my_shard();
        block = exchange(&shard->pool[class][draw(shard, n)], block);
        if (block != NULL) return block;
    }
}

static ALWAYS_INLINE void *alloc_block(unsigned class, size_t size)
{
    char *block = take_block(class);
    if (UNLIKELY(block == NULL)) {
        give_waiting();
        block = take_block(class);
        if (block == NULL) return NULL;
    }
    size_t room = sizeclasses[class].size - SEAL;
    uint64_t seal = __atomic_load_n(seal_at(block, room), __ATOMIC_ACQUIRE);
    if (seal != 0 && (seal != dead_seal(block) || !is_zero(block + BLOCK_UNIT, room - BLOCK_UNIT)))
        written(block);
    set_block(block, size, room);
    return block;
}

static ALWAYS_INLINE size_t block_size_in(uint64_t seal, const char *block, size_t room, const char *call)
{
    size_t size = size_in(seal, block);
    if (seal == dead_seal(block)) report_misuse(call, block, freed_twice);
    if (seal == 0) report_misuse(call, block, unknown);
    if (size > room || !is_whole(block, size, room)) report_misuse(call, block, behind);
    return size;
}

/* Looks at the seal before a block, which is another one's. Its thread may change it meanwhile. */
static ALWAYS_INLINE void check_before(const struct superblock *sb, const char *block, const char *call)
{
    size_t room = room_of(sb);
    const char *other = block - room - SEAL;
    if (block == slot_start(sb)) return;
    uint64_t seal = __atomic_load_n(seal_at(other, room), __ATOMIC_ACQUIRE);
    if (seal != 0 && seal != dead_seal(other) && size_in(seal, other) > room)
        report_misuse(call, block, before);
}

static ALWAYS_INLINE void wait_small(struct shard *shard, char *block)
{
    block = exchange(&shard->random[draw(shard, RANDOM)], block);
    if (block == NULL) return;
    unsigned ring = hardened_level > 1 ? RING : RING / 4;
    block = exchange(&shard->ring[next_turn(&shard->turn) % ring], block);
    if (block != NULL) give_block(block);
}

static void wait_big(struct shard *shard, char *block, size_t bytes)
{
    atomic_fetch_add(&shard->big_bytes, bytes);
    for (unsigned i = 0; i < BIG && (block != NULL || shard->big_bytes > BIG_BYTES); i++) {
        char *old = exchange(&shard->big[next_turn(&shard->big_turn) % BIG], block);
        block = NULL;
        if (old != NULL) give_big(shard, old);
    }
}

/* Of two threads that free a block at once, one finds it dead. */
static ALWAYS_INLINE uint64_t bury(uint64_t *seal, uint64_t dead)
{
    if (!__libc_single_threaded) return __atomic_exchange_n(seal, dead, __ATOMIC_ACQ_REL);
    uint64_t old = *seal;
    *seal = dead;
    return old;
}

static ALWAYS_INLINE void free_block(const struct superblock *sb, char *block, const char *call)
{
    size_t room = room_of(sb);
    uint64_t seal = bury(seal_at(block, room), dead_seal(block));
    size_t size = block_size_in(seal, block, room, call);
    check_before(sb, block, call);
    memset(block, 0, size + CANARY < room ? size + CANARY : room);
    struct shard *shard = my_shard();
    if (room < SMALL)
        wait_small(shard, block);
    else
        wait_big(shard, block, room + SEAL);
}

static bool resize_block(const struct superblock *sb, char *block, size_t have, size_t size)
{
    size_t room = room_of(sb);
    if (hardened_level > 1 || size > room || size < room / 2) return false;
    size_t from = size < have ? size : have;
    memset(block + from, 0, (have + CANARY < room ? have + CANARY : room) - from);
    set_block(block, size, room);
    return true;
}

/* --- the calls ------------------------------------------------------------------------------- */

void *hardened_alloc(size_t alignment, size_t size)
{
    size_t most = hardened_level > 1 ? GUARDED_LEAST : CLASS_SIZE_MAX - SEAL, with = size + SEAL;
    if (size > most) return alloc_large(alignment, size);
    if (with < LEAST) with = LEAST;
    unsigned class = alignment <= BLOCK_UNIT ? sizeclass_of(with) : sizeclass_aligned(alignment, with);
    return class != 0 ? alloc_block(class, size) : alloc_large(alignment, size);
}

static NOINLINE void free_others(struct arena *arena, void *block, const char *call)
{
    if (block == NULL) return;
    int saved = errno;
    struct owner owner = owner_of(arena, block, call, freed_twice);
    if (owner.kind == OWNER_CHUNK)
        reap_hooks->free_object(owner.at, block, call);
    else if (owner.kind == OWNER_LARGE)
        free_large(arena, block, call);
    else
        free_block(owner.sb, block, call);
    errno = saved;
}

void hardened_free(struct arena *arena, void *block, const char *call)
{
    struct superblock *sb = arena != NULL ? arena_slot(arena, block) : NULL;
    bool may_be_lent = atomic_load_explicit(&user_memory_any, memory_order_relaxed) != 0;
    if (LIKELY(sb != NULL && !may_be_lent && superblock_starts_at(sb, block)))
        free_block(sb, block, call);
    else
        free_others(arena, block, call);
}

static size_t size_of(const struct owner *owner, const void *object, const char *call)
{
    if (owner->kind == OWNER_CHUNK) return reap_hooks->usable_size(owner->at, object, call);
    if (owner->kind == OWNER_LARGE)
        return large_size_in(atomic_load(&head_of(owner->arena, object)->pending), owner->arena, object,
                             call);
    size_t room = room_of(owner->sb);
    return block_size_in(__atomic_load_n(seal_at(object, room), __ATOMIC_ACQUIRE), object, room, call);
}

size_t hardened_usable(const void *block, const char *call)
{
    struct owner owner = owner_of(pagemap_find(block), block, call, freed);
    return size_of(&owner, block, call);
}

static void *move(void *block, size_t have, size_t size, const char *call)
{
    void *moved = hardened_alloc(BLOCK_UNIT, size);
    if (moved == NULL) return size > have ? NULL : block; /* shrinking never fails */
    if (have != 0) memcpy(moved, block, size < have ? size : have);
    hardened_free(pagemap_find(block), block, call);
    return moved;
}

void *hardened_resize(void *block, size_t size, const char *call)
{
    struct owner owner = owner_of(pagemap_find(block), block, call, freed);
    if (size > SIZE_LIMIT) return no_memory();
    if (owner.kind == OWNER_CHUNK) return reap_hooks->realloc_object(owner.at, block, size, call);
    size_t have = size_of(&owner, block, call);
    if (owner.kind == OWNER_LARGE) {
        void *resized = resize_large(owner.arena, block, have, size);
        if (resized != NULL) return resized;
    } else if (size != 0 && resize_block(owner.sb, block, have, size)) {
        return block;
    }
    return move(block, have, size, call);
}

void hardened_check_size(void *block, size_t size, const char *call)
{
    if (block == NULL || chunk_of(block, NULL) != NULL) return;
    if (hardened_usable(block, call) != size) report_misuse(call, block, "of another size");
}
