/* SPDX-License-Identifier: Apache-2.0 */
/* freelist.c: a reap's free blocks by size: what is rare. */
#include "region/freelist.h"

NOINLINE void *reap_freelist_emptied(struct reap *reap, struct reap_block *block, size_t size)
{
    reap->freelists_used &= ~((uint64_t)1 << reap_freelist(reap_units(size)));
    if (!reap->freelists_used) reap_region_mode(reap);
    return block;
}
