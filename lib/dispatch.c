/* SPDX-License-Identifier: Apache-2.0 */
#include "dispatch.h"

#include "account.h"
#include "ambient.h"
#include "assign.h"
#include "chunk_client.h"
#include "large.h"
#include "lent.h"
#include "lock.h"
#include "options.h"
#include "purger.h"
#include "report.h"
#include "topology.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- start ----------------------------------------------------------------------------------- */

static _Atomic pid_t starter;            /* the process whose thread is in start */
static _Atomic(const void *) starter_is; /* this thread, by its lock_depth's address */
static _Atomic bool started;
static bool registered; /* the fork handlers */

static void fork_prepare(void)
{
    lock_fork_begin();
    if (chunk_client != NULL) chunk_client->fork_prepare();
    heap_fork_prepare();
    arena_fork_prepare();
    lent_fork_prepare();
}

static void fork_parent(void)
{
    lent_fork_parent();
    arena_fork_parent();
    heap_fork_parent();
    if (chunk_client != NULL) chunk_client->fork_parent();
    lock_fork_end();
}

/* Where this runs, all was done that start does before it registers it. */
static void fork_child(void)
{
    registered = true;
    atomic_store(&started, true);
    lent_fork_child();
    arena_fork_child();
    heap_fork_child();
    if (chunk_client != NULL) chunk_client->fork_child();
    lock_fork_end();
    atomic_store(&purger_is_due, options.purge_thread != 0);
}

/* Nothing here minds being done twice. */
static void start_all(void)
{
    options_read();
    sizeclass_init(options.class_steps);
    superblock_init();
    cpu_init(options.heaps == HEAPS_CPU, options.path == PATH_LOCKED || assign_needs_locks());
    topology_init(options.topology, options.heaps == HEAPS_CORE);
    assign_init();
    lock_configure(options.lock, cpu.count);
    if (cpu.ids != 0) sizeclass_open_fast();
}

/* ld.so calls a preloaded malloc before libc has run its own start-up code; then libreap-malloc's
 * constructor does the rest. */
static bool libc_is_up(void)
{
    extern char **environ;
    return environ != NULL;
}

static void report_at_exit(void)
{
    report_end();
    account_report(NULL);
}

/* libc may have no memory for the handlers; then the next slow path tries again. */
static void register_handlers(void)
{
    int saved = errno;
    registered = pthread_atfork(fork_prepare, fork_parent, fork_child) == 0;
    errno = saved;
}

static void start_late(void)
{
    register_handlers();
    atomic_store(&purger_is_due, options.purge_thread != 0 || !registered);
    if (!options.stats) return;
    report_keep_stderr();
    atexit(report_at_exit);
}

static void start_here(void)
{
    atomic_store(&starter_is, &lock_depth);
    start_all();
    if (libc_is_up()) start_late();
    atomic_store(&started, true);
}

/* No lock: a child whose parent was just starting in another thread has to start by itself, unless the fork
 * handlers were registered already and have run. Registering them may call malloc. */
static COLD void start(void)
{
    pid_t me = getpid(), other = 0;
    while (!atomic_load(&started)) {
        if (atomic_compare_exchange_strong(&starter, &other, me))
            start_here();
        else if (other == me && atomic_load(&starter_is) == &lock_depth)
            return;
        else if (other == me)
            sched_yield();
        if (other == me) other = 0;
    }
}

void dispatch_start(void)
{
    if (UNLIKELY(!atomic_load_explicit(&started, memory_order_acquire))) start();
}

void dispatch_start_late(void)
{
    dispatch_start();
    if (!registered) start_late();
}

/* --- malloc ---------------------------------------------------------------------------------- */

static void *no_memory(void)
{
    errno = ENOMEM;
    return NULL;
}

/* When the OS refuses: gives it what all heaps and arenas keep unused, for it to be asked once more. */
static COLD void make_room(void)
{
    heap_give_all();
    arena_purge(0); /* also what it unmaps without having been dirty makes room */
}

/* Near the limit on memory what is unused goes back first. Arenas see to theirs, heaps are above them; and a
 * block's slow path looks at other heaps anyway. */
static void make_room_near_limit(size_t more)
{
    if (UNLIKELY(arena_nears_limit(more))) heap_give_idle();
}

/* Registering allocates too, and does not come here again, since nothing is due meanwhile. */
static COLD void start_what_is_due(void)
{
    if (!registered && atomic_exchange(&purger_is_due, false)) {
        register_handlers();
        atomic_store(&purger_is_due, options.purge_thread != 0 || !registered);
    }
    if (registered && options.purge_thread != 0) purger_start();
}

/* Whatever memory is for, the first that is asked for starts the thread that gives unused memory back. */
static inline void start_purger(void)
{
    if (UNLIKELY(atomic_load_explicit(&purger_is_due, memory_order_relaxed))) start_what_is_due();
}

void *dispatch_large(size_t size, size_t alignment, bool is_chunk, bool *zeroed)
{
    start_purger();
    if (size > SIZE_LIMIT) return no_memory();
    make_room_near_limit(size);
    void *object = large_alloc(size, alignment, is_chunk, zeroed);
    if (object != NULL) return object;
    make_room();
    return large_alloc(size, alignment, is_chunk, zeroed);
}

void *dispatch_block_slow(unsigned class)
{
    start_purger();
    void *block = heap_malloc_slow(class);
    if (block != NULL) return block;
    make_room();
    return heap_malloc_slow(class);
}

/* The fast path where no table says. */
static void *pop(size_t size)
{
    return LIKELY(size <= CLASS_SIZE_MAX) && cpu.ids != 0 ? heap_pop(sizeclass_of(size)) : NULL;
}

static void *from_reap(size_t alignment, size_t size)
{
    return chunk_client->alloc(ambient_reap, alignment, size);
}

static bool is_ambient(const void *caller) { return UNLIKELY(ambient_reap != NULL) && ambient_takes(caller); }

void *dispatch_malloc_slow(size_t size, const void *caller)
{
    dispatch_start();
    if (UNLIKELY(ambient_reap != NULL)) {
        if (ambient_takes(caller)) return from_reap(BLOCK_UNIT, size);
        void *block = pop(size);
        if (LIKELY(block != NULL)) return block;
    }
    if (size <= CLASS_SIZE_MAX) return dispatch_block_slow(sizeclass_of(size));
    return dispatch_large(size, BLOCK_UNIT, false, NULL);
}

void *dispatch_malloc_heap(size_t size) { return dispatch_malloc_slow(size, NULL); }

void *dispatch_malloc_medium(size_t size) { return dispatch_medium_with(size, dispatch_malloc_heap); }

void *dispatch_malloc_for(size_t size, const void *caller)
{
    bool is_heaps = size != 0 &&
                    dispatch_is_medium(size); /* or smaller; 0 is none of a heap's where a reap was entered */
    void *block = is_heaps ? heap_pop(sizeclass_of(size)) : NULL;
    return LIKELY(block != NULL) ? block : dispatch_malloc_slow(size, caller);
}

void *dispatch_calloc(size_t n, size_t size, const void *caller)
{
    size_t bytes;
    if (__builtin_mul_overflow(n, size, &bytes)) return no_memory();
    if (bytes <= CLASS_SIZE_MAX) {
        void *block = dispatch_malloc_for(bytes, caller);
        return block != NULL ? memset(block, 0, bytes) : NULL;
    }
    dispatch_start();
    bool zeroed = false;
    void *object =
        is_ambient(caller) ? from_reap(BLOCK_UNIT, bytes) : dispatch_large(bytes, BLOCK_UNIT, false, &zeroed);
    return object == NULL || zeroed ? object : memset(object, 0, bytes);
}

void *dispatch_aligned(size_t alignment, size_t size, const void *caller)
{
    if (alignment <= BLOCK_UNIT) return dispatch_malloc_for(size, caller);
    dispatch_start();
    if (is_ambient(caller)) return from_reap(alignment, size);
    unsigned class = sizeclass_aligned(alignment, size);
    return class != 0 ? dispatch_block(class) : dispatch_large(size, alignment, false, NULL);
}

int dispatch_posix_memalign(void **block, size_t alignment, size_t size, const void *caller)
{
    if (!is_power_of_two(alignment) || alignment % sizeof(void *) != 0) return EINVAL;
    int saved = errno;
    void *p = dispatch_aligned(alignment, size, caller);
    errno = saved;
    if (p == NULL) return ENOMEM;
    *block = p;
    return 0;
}

/* --- reaps ----------------------------------------------------------------------------------- */

const struct chunk_client *chunk_client;

void chunk_set_client(const struct chunk_client *client)
{
    __atomic_store_n(&chunk_client, client, __ATOMIC_RELEASE);
}

/* The descriptor of what a pointer lies in: of a mapping it is the first. */
static const struct superblock *head_of(struct arena *arena, const void *pointer)
{
    return arena->mapping != 0 ? &arena->slots[0] : arena_head(arena, pointer);
}

void *dispatch_chunk_elsewhere(struct arena *arena, const void *pointer, size_t *got)
{
    const struct superblock *head = head_of(arena, pointer);
    if (head->kind != SLOT_SPAN_CHUNK) return NULL;
    char *chunk = slot_start(head);
    size_t size = large_bytes(arena, head);
    if ((size_t)((const char *)pointer - chunk) >= size) return NULL;
    if (got != NULL) *got = size;
    return chunk;
}

/* --- whose is it? ---------------------------------------------------------------------------- */

/* What a pointer that a program hands back turns out to be. */
enum owner { OWNER_BLOCKS, OWNER_LARGE, OWNER_CHUNK };

/* The same of what is in no chunk. */
static enum owner owner_beside_chunks(struct arena *arena, const void *pointer, const char *call)
{
    if (arena == NULL) report_misuse(call, pointer, "not a pointer of this allocator");
    const struct superblock *head = head_of(arena, pointer);
    if (head->kind == SLOT_BLOCKS && superblock_starts_at(head, pointer)) return OWNER_BLOCKS;
    if (head->kind == SLOT_FREE) report_misuse(call, pointer, "freed before, or never allocated");
    if (large_starts_at(arena, pointer)) return OWNER_LARGE;
    report_misuse(call, pointer, "not the start of a block");
}

static enum owner owner_of(struct arena *arena, const void *pointer, const char *call, void **chunk)
{
    *chunk = dispatch_chunk_of(arena, pointer, NULL);
    return *chunk != NULL ? OWNER_CHUNK : owner_beside_chunks(arena, pointer, call);
}

/* --- free ------------------------------------------------------------------------------------ */

static void free_block(struct superblock *sb, void *block, const char *call)
{
    if (block_looks_free(block) && heap_block_is_free(sb, block)) report_misuse(call, block, "freed twice");
    if (cpu.ids != 0)
        heap_free(sb, block);
    else
        heap_free_slow(sb, block);
}

static NOINLINE void free_beside_chunks(struct arena *arena, void *block, const char *call)
{
    int saved = errno;
    if (owner_beside_chunks(arena, block, call) == OWNER_LARGE) {
        large_free(arena, block);
    } else {
        if (cpu.ids != 0) arena_learn(arena, block); /* the locked path has its checks here */
        free_block(arena_slot(arena, block), block, call);
    }
    errno = saved;
}

void dispatch_free_slow(void *block, const char *call)
{
    if (block == NULL) return;
    struct arena *arena = map_find(block);
    void *chunk = dispatch_chunk_of(arena, block, NULL);
    if (chunk != NULL)
        chunk_client->free_object(chunk, block, call);
    else
        free_beside_chunks(arena, block, call);
}

size_t dispatch_usable_size(const void *block, const char *call)
{
    if (block == NULL) return 0;
    void *chunk;
    struct arena *arena = map_find(block);
    switch (owner_of(arena, block, call, &chunk)) {
    case OWNER_BLOCKS:
        if (block_looks_free(block)) break;
        return superblock_class(arena_slot(arena, block))->size;
    case OWNER_LARGE:
        return large_size(arena, block);
    case OWNER_CHUNK:
        return chunk_client->usable_size(chunk, block, call);
    }
    if (heap_block_is_free(arena_slot(arena, block), (void *)(uintptr_t)block))
        report_misuse(call, block, "used after it was freed");
    return superblock_class(arena_slot(arena, block))->size;
}

/* --- realloc --------------------------------------------------------------------------------- */

/* Stays where it is unless more than half would be wasted. */
static bool fits(size_t size, size_t usable) { return size <= usable && size >= usable / 2; }

/* A new block, a copy, and the old one freed. */
static void *replace(void *block, size_t usable, size_t size, const char *call)
{
    void *moved = dispatch_malloc(size);
    if (moved == NULL) return NULL;
    memcpy(moved, block, size < usable ? size : usable);
    dispatch_free(block, call);
    return moved;
}

static void *realloc_block(void *block, size_t size, size_t usable, const char *call)
{
    if (fits(size, usable) || (size <= CLASS_SIZE_MAX && sizeclasses[sizeclass_of(size)].size == usable))
        return block;
    void *moved = replace(block, usable, size, call);
    return moved != NULL || size > usable ? moved : block; /* shrinking does not fail */
}

static void *realloc_large(struct arena *arena, void *object, size_t size, const char *call)
{
    size_t now = large_size(arena, object);
    if (size > now) make_room_near_limit(size - now);
    if (large_resize(arena, object, size)) return object;
    void *moved = large_move(arena, object, size);
    return moved != NULL ? moved : realloc_block(object, size, large_size(arena, object), call);
}

void *dispatch_realloc(void *block, size_t size, const char *call)
{
    if (block == NULL) return dispatch_malloc(size);
    struct arena *arena = map_find(block);
    void *chunk;
    enum owner owner = owner_of(arena, block, call, &chunk);
    if (size > SIZE_LIMIT) return no_memory();
    switch (owner) {
    case OWNER_LARGE:
        return realloc_large(arena, block, size, call);
    case OWNER_CHUNK:
        return chunk_client->realloc_object(chunk, block, size, call);
    case OWNER_BLOCKS:
        break;
    }
    return realloc_block(block, size, dispatch_usable_size(block, call), call);
}
