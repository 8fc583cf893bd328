/* SPDX-License-Identifier: Apache-2.0 */
#include "hoard/malloc_fast.h"

#include "arena/large.h"
#include "base/report.h"
#include "hoard/owner.h"
#include "hoard/reap_hooks.h"

static void free_block(struct superblock *sb, void *block, const char *call)
{
    if (block_looks_free(block) && heap_block_is_free(sb, block)) report_misuse(call, block, "freed twice");
    hoard_push(sb, block);
}

static NOINLINE void free_beside_chunks(struct arena *arena, void *block, const char *call)
{
    int saved = errno;
    if (owner_beside_chunks(arena, block, call) == OWNER_LARGE) {
        large_free(arena, block);
    } else {
        if (!heap_path_is_locked()) arena_learn(arena, block); /* the locked path makes its checks here */
        free_block(arena_slot(arena, block), block, call);
    }
    errno = saved;
}

void hoard_free_slow(void *block, const char *call)
{
    if (block == NULL) return;
    struct arena *arena = pagemap_find(block);
    void *chunk = owner_chunk(arena, block, NULL);
    if (chunk != NULL)
        reap_hooks->free_object(chunk, block, call);
    else
        free_beside_chunks(arena, block, call);
}
