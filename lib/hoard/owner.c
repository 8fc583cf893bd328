/* SPDX-License-Identifier: Apache-2.0 */
#include "hoard/owner.h"

#include "arena/large.h"
#include "base/report.h"

/* The descriptor of a pointer's superblock or span; of a mapping it is the first. */
static const struct superblock *head_of(struct arena *arena, const void *pointer)
{
    return arena->mapping != 0 ? &arena->slots[0] : arena_head(arena, pointer);
}

void *owner_chunk_elsewhere(struct arena *arena, const void *pointer, size_t *got)
{
    ASSERT(arena != NULL);
    const struct superblock *slot = arena_slot(arena, pointer);
    bool is_first = slot->kind == SLOT_SPAN_CHUNK && arena->mapping == 0; /* large objects start there */
    if (is_first && got == NULL) return slot_start(slot);
    const struct superblock *head = head_of(arena, pointer);
    if (head->kind != SLOT_SPAN_CHUNK) return NULL;
    char *chunk = slot_start(head);
    size_t size = large_bytes(arena, head);
    if ((size_t)((const char *)pointer - chunk) >= size) return NULL;
    if (got != NULL) *got = size;
    return chunk;
}

enum owner owner_beside_chunks(struct arena *arena, const void *pointer, const char *call)
{
    if (arena == NULL) report_misuse(call, pointer, "not a pointer of this allocator");
    const struct superblock *head = head_of(arena, pointer);
    if (arena_stub(arena, head, pointer) != NULL) return OWNER_BLOCKS;
    if (head->kind == SLOT_FREE) report_misuse(call, pointer, "freed before, or never allocated");
    if (large_starts_at(arena, pointer)) return OWNER_LARGE;
    report_misuse(call, pointer, "not the start of a block");
}

enum owner owner_of(struct arena *arena, const void *pointer, const char *call, void **chunk)
{
    *chunk = owner_chunk(arena, pointer, NULL);
    return *chunk != NULL ? OWNER_CHUNK : owner_beside_chunks(arena, pointer, call);
}
