/* SPDX-License-Identifier: Apache-2.0 */
#include "hoard/owner.h"

#include "arena/large.h"
#include "base/report.h"
#include "heap/heap.h"
#include "hoard/apart_table.h"
#include "hoard/chunk_provider.h"
#include "hoard/user_memory.h"

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

/* The chunk that is a span or a mapping. */
static void *large_chunk(struct arena *arena, const void *pointer, size_t *got)
{
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

static ALWAYS_INLINE void *chunk_in(struct arena *arena, const void *pointer, size_t *got)
{
    void *lent = user_memory_find(pointer, got);
    if (UNLIKELY(lent != NULL) || arena == NULL) return lent;
    const struct superblock *sb = arena_slot(arena, pointer);
    if (UNLIKELY(sb->kind != SLOT_CHUNKS)) return large_chunk(arena, pointer, got);
    size_t size = superblock_class(sb)->size; /* a power of two */
    if (got != NULL) *got = size;
    return (void *)align_down((uintptr_t)pointer, size);
}

void *chunk_of(const void *pointer, size_t *got) { return chunk_in(pagemap_find(pointer), pointer, got); }

void *chunk_around(const void *pointer)
{
    void *chunk = chunk_of(pointer, NULL);
    return chunk != NULL ? chunk : apart_find_around(pointer);
}

struct owner owner_of(struct arena *arena, const void *pointer, const char *call, const char *freed)
{
    struct owner owner = {.kind = OWNER_CHUNK, .arena = arena, .at = chunk_in(arena, pointer, NULL)};
    if (owner.at != NULL) return owner;
    if (arena == NULL) report_misuse(call, pointer, "not a pointer of this allocator");
    owner.sb = head_of_pointer(arena, pointer);
    owner.at = arena_stub(arena, owner.sb, pointer);
    if (owner.at != NULL) {
        if (superblock_block_looks_free(owner.sb, owner.at) && heap_block_is_free(owner.sb, owner.at))
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
