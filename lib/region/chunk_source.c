/* SPDX-License-Identifier: Apache-2.0 */
/* chunk_source.c: the source from which a reap made by reapCreateWith takes its chunks. */
#include "region/chunk_source.h"

#include <errno.h>

#include "base/report.h"
#include "hoard/chunk_provider.h"
#include "hoard/redirect.h"
#include "hoard/user_memory.h"

/* Calls the user's function. Its mallocs must not come from the reap that needs the chunk. */
static void *call_take(const struct chunk_source *backing, size_t size)
{
    ASSERT(backing->take && size != 0);
    struct redirect_pause pause = redirect_pause();
    void *chunk = backing->take(size, backing->arg);
    redirect_resume(pause);
    return chunk;
}

static void call_give(const struct chunk_source *backing, void *chunk, size_t size)
{
    ASSERT(backing->give);
    struct redirect_pause pause = redirect_pause();
    backing->give(chunk, size, backing->arg);
    redirect_resume(pause);
}

static void *take_from_source(const struct chunk_source *backing, size_t size, size_t *got)
{
    size = (size + REAP_SOURCE_ALIGN - 1) & -(size_t)REAP_SOURCE_ALIGN;
    void *chunk = size <= PTRDIFF_MAX ? call_take(backing, size) : NULL;
    if (!chunk) return no_memory();
    if ((uintptr_t)chunk % REAP_SOURCE_ALIGN)
        report_misuse("reapCreateWith", chunk, "the source's memory is not aligned to 4096");
    *got = size;
    ASSERT(size % REAP_SOURCE_ALIGN == 0);
    int error = user_memory_add(chunk, size);
    if (error == 0) return chunk;
    if (error == EEXIST) report_misuse("reapCreateWith", chunk, "the source's memory is a reap's already");
    call_give(backing, chunk, size);
    errno = error;
    return NULL;
}

void *chunk_source_take(const struct chunk_source *backing, size_t size, size_t *got, bool *zeroed)
{
    if (chunk_source_is_hoard(backing)) return chunk_alloc(size, got, zeroed);
    if (zeroed) *zeroed = false;
    return backing->take ? take_from_source(backing, size, got) : no_memory();
}

void chunk_source_give(const struct chunk_source *backing, void *chunk, size_t size)
{
    ASSERT(!chunk_source_is_hoard(backing));
    user_memory_remove(chunk);
    if (chunk != backing->buffer) call_give(backing, chunk, size);
}
