#include "global.h"

#include "arena.h"
#include "bin.h"
#include "lines.h"
#include "lock.h"

static struct {
    struct lock lock;
    struct bin bins[CLASSES];
    _Atomic(struct superblock *) posted;
    size_t superblocks;
} global;

/* Files a quiet superblock that is on no list. The heap that takes it will be another's: free is what is in
 * whole lines. */
static void file(struct superblock *sb)
{
    superblock_absorb(sb);
    bool is_empty = superblock_group_of(sb, word_read(sb)) == GROUP_EMPTY;
    if (!is_empty && lines_are_shared(sb->class)) lines_hold_back(sb);
    unsigned group = superblock_group_of(sb, word_read(sb));
    if (is_empty) {
        sb->role = (union superblock_role){.owner = OWNER_NONE, .heap = HEAP_GLOBAL};
        arena_give(sb, 1);
        return;
    }
    sb->role = (union superblock_role){.owner = OWNER_NONE,
                                       .heap = HEAP_GLOBAL,
                                       .regroup_at = (uint16_t)superblock_regroup_at(sb, group),
                                       .by_lines = lines_are_shared(sb->class)};
    bin_add(&global.bins[sb->class], sb, group);
    global.superblocks++;
}

static void unfile(struct superblock *sb)
{
    bin_remove(&global.bins[sb->class], sb);
    global.superblocks--;
}

static void refile(struct superblock *sb)
{
    unfile(sb);
    file(sb);
}

/* One that has left for a heap since it was posted is that heap's to collect: it has a free eighth
 * already, and its next refill looks. */
static void take_posted(void)
{
    struct superblock *next, *sb = atomic_exchange_explicit(&global.posted, NULL, memory_order_acquire);
    for (; sb != NULL; sb = next) {
        next = sb->posted_next;
        atomic_store_explicit(&sb->posted, 0, memory_order_relaxed);
        if (sb->role.heap == HEAP_GLOBAL && list_holds(&sb->link)) refile(sb);
    }
}

void global_give(struct superblock *sb)
{
    lock_take(&global.lock);
    file(sb);
    lock_give(&global.lock);
}

struct superblock *global_take(unsigned class)
{
    lock_take(&global.lock);
    if (atomic_load_explicit(&global.posted, memory_order_relaxed) != NULL) take_posted();
    struct superblock *sb = bin_fullest(&global.bins[class], 1);
    if (sb != NULL) unfile(sb);
    lock_give(&global.lock);
    return sb;
}

void global_post(struct superblock *sb)
{
    struct superblock *first = atomic_load_explicit(&global.posted, memory_order_relaxed);
    do sb->posted_next = first;
    while (!atomic_compare_exchange_weak_explicit(&global.posted, &first, sb, memory_order_release,
                                                  memory_order_relaxed));
}

bool global_free(struct superblock *sb, void *block)
{
    lock_take(&global.lock);
    bool here = sb->role.heap == HEAP_GLOBAL && list_holds(&sb->link);
    if (here && superblock_free_quiet(sb, block)) refile(sb);
    lock_give(&global.lock);
    return here;
}

void global_collect(void)
{
    lock_take(&global.lock);
    take_posted();
    for (unsigned class = 1; class < CLASSES; class ++)
        for (unsigned group = 0; group < GROUP_EMPTY; group++) {
            struct list_node *next, *node = global.bins[class].groups[group].first;
            for (; node != NULL; node = next) {
                next = node->next;
                struct superblock *sb = LIST_ENTRY(node, struct superblock, link);
                if (atomic_load_explicit(&sb->pending, memory_order_relaxed) != 0) refile(sb);
            }
        }
    lock_give(&global.lock);
}

size_t global_superblocks(void) { return __atomic_load_n(&global.superblocks, __ATOMIC_RELAXED); }

void global_fork_prepare(void) { lock_take(&global.lock); }

void global_fork_parent(void) { lock_give(&global.lock); }

void global_fork_child(void) { lock_reset(&global.lock); }
