/* SPDX-License-Identifier: Apache-2.0 */
/* chunk_source.c: where a reap made by reapCreateWith has its chunks from. */
#include "region/chunk_source.h"

#include <errno.h>

#include "base/report.h"
#include "hoard/chunk_provider.h"
#include "hoard/redirect.h"
#include "hoard/user_memory.h"

static void *no_memory(void)
{
    errno = ENOMEM;
    return NULL;
}

/* The source's own mallocs are not to ask the reap that asks the source. */
static void *call_take(const struct reap_backing *backing, size_t size)
{
    ASSERT(backing->take && size != 0);
    struct ambient_pause pause = ambient_pause();
    void *chunk = backing->take(size, backing->arg);
    ambient_resume(pause);
    return chunk;
}

static void call_give(const struct reap_backing *backing, void *chunk, size_t size)
{
    ASSERT(backing->give);
    struct ambient_pause pause = ambient_pause();
    backing->give(chunk, size, backing->arg);
    ambient_resume(pause);
}

static void *take_from_source(const struct reap_backing *backing, size_t size, size_t *got)
{
    size = (size + REAP_SOURCE_ALIGN - 1) & -(size_t)REAP_SOURCE_ALIGN;
    void *chunk = size <= PTRDIFF_MAX ? call_take(backing, size) : NULL;
    if (!chunk) return no_memory();
    if ((uintptr_t)chunk % REAP_SOURCE_ALIGN)
        report_misuse("reapCreateWith", chunk, "the source's memory is not aligned to 4096");
    *got = size;
    ASSERT(size % REAP_SOURCE_ALIGN == 0);
    int error = lent_add(chunk, size);
    if (error == 0) return chunk;
    if (error == EINVAL) report_misuse("reapCreateWith", chunk, "the source's memory is a reap's already");
    call_give(backing, chunk, size);
    return no_memory();
}

void *reap_backing_take(const struct reap_backing *backing, size_t size, size_t *got, bool *zeroed)
{
    if (reap_backing_is_hoard(backing)) return chunk_alloc(size, got, zeroed);
    if (zeroed) *zeroed = false;
    return backing->take ? take_from_source(backing, size, got) : no_memory();
}

void reap_backing_give(const struct reap_backing *backing, void *chunk, size_t size)
{
    ASSERT(!reap_backing_is_hoard(backing));
    lent_remove(chunk);
    if (chunk != backing->buffer) call_give(backing, chunk, size);
}
