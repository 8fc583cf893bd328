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

bool bin_is_valid(const struct bin *bin, unsigned id, unsigned class, const struct superblock *active,
                  bool words, struct bin_sums *sums)
{
    for (unsigned group = 0; group < GROUP_EMPTY; group++) {
        const struct list_node *node = bin->groups[group].first;
        if ((node != NULL) != (bin->mask >> group & 1)) return false;
        for (; node != NULL; node = node->next) {
            const struct superblock *sb = LIST_ENTRY(node, struct superblock, link);
            union superblock_role role = superblock_role(sb);
            if (role.heap != id || sb->class != class || sb->group != group || sb == active) return false;
            if (id > HEAP_NONE && role.owner != OWNER_NONE) return false;
            if (words && !superblock_is_valid(sb)) return false;
            sums->slots += superblock_slots(sb);
            sums->eighths += group * superblock_slots(sb);
        }
    }
    return true;
}
