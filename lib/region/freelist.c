/* SPDX-License-Identifier: Apache-2.0 */
/* freelist.c: a reap's free blocks by size: what is rare. */
#include "region/freelist.h"

NOINLINE void *reap_bin_emptied(struct reap *reap, struct reap_block *block, size_t size)
{
    ASSERT(reap->bins_used >> reap_bin(reap_units(size)) & 1);
    reap->bins_used &= ~((uint64_t)1 << reap_bin(reap_units(size)));
    ASSERT(reap_tables(reap)->bins[reap_bin(reap_units(size))] == NULL);
    if (!reap->bins_used) reap_region_mode(reap);
    return block;
}
