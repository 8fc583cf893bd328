/* SPDX-License-Identifier: Apache-2.0 */
#include "hoard/owner.h"

#include "arena/large.h"
#include "base/report.h"
#include "heap/heap.h"
#include "hoard/reap_hooks.h"

const struct reap_hooks *reap_hooks;

void reap_hooks_set(const struct reap_hooks *client)
{
    __atomic_store_n(&reap_hooks, client, __ATOMIC_RELEASE);
}

/* The descriptor of a pointer's superblock or span; of a mapping it is the first. */
static struct superblock *head_of_pointer(struct arena *arena, const void *pointer)
{
    return arena->mapping != 0 ? &arena->slots[0] : arena_head(arena, pointer);
}

void *owner_chunk_elsewhere(struct arena *arena, const void *pointer, size_t *got)
{
    ASSERT(arena != NULL);
    const struct superblock *slot = arena_slot(arena, pointer);
    bool is_first = slot->kind == SLOT_SPAN_CHUNK && arena->mapping == 0; /* large objects start there */
    if (is_first && got == NULL) return slot_start(slot);
    const struct superblock *head = head_of_pointer(arena, pointer);
    if (head->kind != SLOT_SPAN_CHUNK) return NULL;
    char *chunk = slot_start(head);
    size_t size = large_bytes(arena, head);
    if ((size_t)((const char *)pointer - chunk) >= size) return NULL;
    if (got != NULL) *got = size;
    return chunk;
}

struct owner owner_of(struct arena *arena, const void *pointer, const char *call, const char *freed)
{
    struct owner owner = {.kind = OWNER_CHUNK, .arena = arena, .at = owner_chunk(arena, pointer, NULL)};
    if (owner.at != NULL) return owner;
    if (arena == NULL) report_misuse(call, pointer, "not a pointer of this allocator");
    owner.sb = head_of_pointer(arena, pointer);
    owner.at = arena_stub(arena, owner.sb, pointer);
    if (owner.at != NULL) {
        if (block_looks_free(owner.at) && heap_block_is_free(owner.sb, owner.at))
            report_misuse(call, pointer, freed);
        owner.kind = OWNER_BLOCKS;
        owner.size = superblock_class(owner.sb)->size;
    } else if (large_starts_at(arena, pointer)) {
        owner.kind = OWNER_LARGE;
        owner.size = large_size(arena, pointer);
    } else if (owner.sb->kind == SLOT_FREE) {
        report_misuse(call, pointer, "freed before, or never allocated");
    } else {
        report_misuse(call, pointer, "not the start of a block");
    }
    return owner;
}
