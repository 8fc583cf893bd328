/* SPDX-License-Identifier: Apache-2.0 */
/* freelist.c: a reap's free blocks by size: the rare case of a list that becomes empty. */
#include "region/freelist.h"

NOINLINE void *reap_freelist_emptied(struct reap *reap, struct reap_block *block, size_t units)
{
    ASSERT(reap->freelists_used >> reap_freelist(units) & 1);
    reap->freelists_used &= ~((uint64_t)1 << reap_freelist(units));
    ASSERT(reap_tables_of(reap)->freelists[reap_freelist(units)] == NULL);
    if (!reap->freelists_used) reap_region_mode(reap);
    return block;
}
