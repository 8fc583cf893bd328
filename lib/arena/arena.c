/* SPDX-License-Identifier: Apache-2.0 */
#include "arena/arena.h"

SPARSE struct arena_guesses arena_guesses;

/* Stale pointers come here, too, and those into slots that a thread has just claimed. */
struct superblock *arena_head_before(struct arena *arena, const void *pointer)
{
    const char *base = (const char *)align_down((uintptr_t)pointer, ARENA);
    for (unsigned i = 1; i < ARENA_SPAN_MAX / ARENA + 1; i++) {
        struct arena *before = pagemap_find(base - i * (size_t)ARENA);
        if (before == NULL || __atomic_load_n(&before->mapping, __ATOMIC_RELAXED) != 0 ||
            (int64_t)atomic_load(&before->used) >= 0)
            break;
        uint64_t heads = atomic_load(&before->heads);
        if (heads == 0) continue;
        struct superblock *head = &before->slots[63 - (unsigned)__builtin_clzll(heads)];
        bool is_span = head->kind == SLOT_SPAN || head->kind == SLOT_SPAN_CHUNK;
        size_t bytes = is_span ? arena_span(head) * (size_t)SUPERBLOCK : 0;
        const char *start = base - i * (size_t)ARENA + (head - before->slots) * (ptrdiff_t)SUPERBLOCK;
        if ((size_t)((const char *)pointer - start) < bytes) return head;
        break;
    }
    return arena_slot(arena, pointer);
}
