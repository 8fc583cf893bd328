/* SPDX-License-Identifier: Apache-2.0 */
#include "hoard/malloc_fast.h"

#include "arena/large.h"
#include "base/report.h"
#include "hoard/owner.h"
#include "hoard/reap_hooks.h"

static void free_block(struct arena *arena, void *block, const char *call)
{
    struct superblock *sb = arena_head(arena, block);
    void *stub = arena_stub(arena, sb, block);
    if (stub == NULL) report_misuse(call, block, "freed before, or never allocated"); /* its slot just went */
    if (block_looks_free(stub) && heap_block_is_free(sb, stub)) report_misuse(call, block, "freed twice");
    hoard_push(sb, stub);
}

static NOINLINE void free_beside_chunks(struct arena *arena, void *block, const char *call)
{
    int saved = errno;
    if (owner_beside_chunks(arena, block, call) == OWNER_LARGE) {
        large_free(arena, block);
    } else {
        if (!heap_path_is_locked()) arena_learn(arena, block); /* the locked path makes its checks here */
        free_block(arena, block, call);
    }
    errno = saved;
}

static NOINLINE void free_others(struct arena *arena, void *block, const char *call)
{
    if (block == NULL) return;
    void *chunk = owner_chunk(arena, block, NULL);
    if (chunk != NULL)
        reap_hooks->free_object(chunk, block, call);
    else
        free_beside_chunks(arena, block, call);
}

/* Wide blocks come first: no other path is theirs. */
void hoard_free_slow(void *block, const char *call)
{
    struct arena *arena = pagemap_find(block);
    struct superblock *sb = arena != NULL ? arena_wide(arena, block) : NULL;
    void *stub = sb != NULL ? arena_stub_of(arena, sb, block) : NULL;
    if (UNLIKELY(stub == NULL || block_may_be_free(stub)))
        free_others(arena, block, call);
    else
        hoard_push(sb, stub);
}

/* Lets the block wait until the CPU has its line. Returns the block whose free is due instead, or NULL. */
static void *wait(void *block, const char *call)
{
    __builtin_prefetch(block, 1);
    uint64_t place = heap_wait(block);
    void *due = heap_waiting_block(place);
    if (UNLIKELY(due == block)) report_misuse(call, block, "freed twice");
    return UNLIKELY((place & HEAP_BATCH_CLOSED) != 0) ? block : due;
}

/* The block has been checked to be a start; of one that waited, this is checked again. */
void hoard_free_elsewhere(struct superblock *sb, void *block, const char *call)
{
    bool is_start = true, cold = superblock_is_cold(sb);
    if (cold) {
        block = wait(block, call);
        if (block == NULL) return;
        sb = arena_guess(block);
        is_start = superblock_starts_at(sb, block);
    }
    if (UNLIKELY(!is_start || block_may_be_free(block)))
        hoard_free_slow(block, call);
    else if (cold)
        heap_free(sb, block);
    else
        heap_free_slow(sb, block);
}
