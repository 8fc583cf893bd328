/* SPDX-License-Identifier: Apache-2.0 */
#include "hoard/malloc_fast.h"

#include "arena/large.h"
#include "base/report.h"
#include "heap/heap_reclaim.h"
#include "heap/heap_remote.h"
#include "hoard/hardened.h"
#include "hoard/owner.h"
#include "hoard/reap_hooks.h"

/* NULL; what lies in a chunk of a reap; a large object; a block of an arena that free has not seen lately, of
 * a superblock without an owner, or one that looks free, and maybe is. */
static NOINLINE void free_found(struct arena *arena, void *block, const char *call)
{
    if (block == NULL) return;
    int saved = errno;
    struct owner owner = owner_of(arena, block, call, "freed twice");
    switch (owner.kind) {
    case OWNER_CHUNK: reap_hooks->free_object(owner.at, block, call); break;
    case OWNER_LARGE:
        large_free(arena, block);
        heap_look_if_purged();
        break;
    case OWNER_BLOCKS:
        if (!heap_path_is_locked()) arena_learn(arena, block); /* the locked path makes its checks here */
        hoard_push(owner.sb, owner.at);
    }
    errno = saved;
}

/* Wide blocks come first: no other path is theirs. */
void hoard_free_slow(void *block, const char *call)
{
    struct arena *arena = pagemap_find(block);
    if (UNLIKELY(hardened_level != 0)) {
        hardened_free(arena, block, call);
        return;
    }
    struct superblock *sb = arena != NULL ? arena_wide(arena, block) : NULL;
    void *stub = sb != NULL ? arena_stub_of(arena, sb, block) : NULL;
    if (UNLIKELY(stub == NULL || block_may_be_free(stub)))
        free_found(arena, block, call);
    else if (heap_path_is_locked() || superblock_role(sb).owner != rseq_id() || !heap_keep(sb, stub))
        hoard_push(sb, stub);
}

void hoard_free_sized_slow(void *block, size_t size, const char *call)
{
    if (UNLIKELY(hardened_level != 0)) hardened_check_size(block, size, call);
    hoard_free_slow(block, call);
}

/* The block has been checked to be a start. */
void hoard_free_elsewhere(struct superblock *sb, void *block, const char *call)
{
    if (UNLIKELY(block_may_be_free(block)))
        hoard_free_slow(block, call);
    else
        heap_free_slow(sb, block);
}
