/* SPDX-License-Identifier: Apache-2.0 */
#include "heap/bin.h"

void bin_add(struct bin *bin, struct superblock *sb, unsigned group)
{
    assert(group < GROUP_EMPTY && !list_holds(&sb->link));
    list_push(&bin->groups[group], &sb->link);
    sb->group = (uint8_t)group;
    bin->mask |= 1u << group;
}

void bin_remove(struct bin *bin, struct superblock *sb)
{
    ASSERT(list_holds(&sb->link) && sb->group < GROUP_EMPTY && bin->mask >> sb->group & 1);
    list_remove(&sb->link);
    if (list_is_empty(&bin->groups[sb->group])) bin->mask &= ~(1u << sb->group);
}

static struct superblock *first_of(const struct bin *bin, unsigned group)
{
    ASSERT(!list_is_empty(&bin->groups[group]));
    return LIST_ENTRY(bin->groups[group].first, struct superblock, link);
}

struct superblock *bin_fullest(const struct bin *bin, unsigned least)
{
    ASSERT(least < GROUP_EMPTY);
    uint32_t worth = bin->mask >> least << least;
    return worth != 0 ? first_of(bin, (unsigned)__builtin_ctz(worth)) : NULL;
}

struct superblock *bin_emptiest(const struct bin *bin)
{
    return bin->mask != 0 ? first_of(bin, 31 - (unsigned)__builtin_clz(bin->mask)) : NULL;
}
