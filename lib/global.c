#include "global.h"

#include "arena.h"
#include "bin.h"
#include "lines.h"
#include "lock.h"
#include "probe.h"

static struct {
    struct lock lock;
    struct bin bins[CLASSES];
    size_t superblocks;
} global;

_Atomic(struct superblock *) global_posted;

/* role.heap is HEAP_GLOBAL just while it is on a bin here; so it alone tells, under the lock. */
static void set_role(struct superblock *sb, unsigned heap, unsigned regroup_at)
{
    superblock_set_role(sb, (union superblock_role){.owner = OWNER_NONE,
                                                    .heap = (uint16_t)heap,
                                                    .regroup_at = (uint16_t)regroup_at,
                                                    .by_lines = lines_are_shared(sb->class)});
}

/* Files a quiet superblock that is on no list. The heap that takes it will be another's: free is what is in
 * whole lines. The last of its blocks may come back while others are held back, whose free then does not
 * see that it is the last: so the look at the end. */
static void file(struct superblock *sb)
{
    do {
        superblock_absorb(sb);
        if (superblock_group_of(sb, word_read(sb)) == GROUP_EMPTY) {
            set_role(sb, HEAP_NONE, 0);
            arena_give(sb, 1);
            return;
        }
        if (lines_are_shared(sb->class)) lines_hold_back(sb);
    } while (superblock_live(sb) == 0);
    unsigned group = superblock_group_of(sb, word_read(sb));
    set_role(sb, HEAP_GLOBAL, superblock_regroup_at(sb, group));
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

/* While one was on the list here it could not be posted to a heap that it went to: that is made up for. */
static void take_posted(void (*forward)(struct superblock *sb))
{
    struct superblock *next, *sb = atomic_exchange_explicit(&global_posted, NULL, memory_order_acquire);
    for (; sb != NULL; sb = next) {
        next = superblock_unpost(sb);
        if (sb->role.heap == HEAP_GLOBAL)
            refile(sb);
        else if (atomic_load(&sb->pending) != 0)
            forward(sb);
    }
}

void global_give(struct superblock *sb)
{
    PROBE(superblock_to_global, sb, sb->class, superblock_live(sb));
    lock_take(&global.lock);
    file(sb);
    lock_give(&global.lock);
}

struct superblock *global_take(unsigned class, void (*forward)(struct superblock *sb))
{
    lock_take(&global.lock);
    if (atomic_load_explicit(&global_posted, memory_order_relaxed) != NULL) take_posted(forward);
    struct superblock *sb = bin_fullest(&global.bins[class], 1);
    if (sb != NULL) {
        unfile(sb);
        set_role(sb, HEAP_NONE, 0);
        PROBE(superblock_from_global, sb, class, superblock_live(sb));
    }
    lock_give(&global.lock);
    return sb;
}

bool global_free(struct superblock *sb, void *block)
{
    lock_take(&global.lock);
    bool here = sb->role.heap == HEAP_GLOBAL;
    if (here && superblock_free_quiet(sb, block)) refile(sb);
    lock_give(&global.lock);
    return here;
}

void global_collect(void (*forward)(struct superblock *sb))
{
    lock_take(&global.lock);
    take_posted(forward);
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

bool global_has_free(struct superblock *sb, const void *block)
{
    lock_take(&global.lock);
    bool has = superblock_has_free(sb, block);
    lock_give(&global.lock);
    return has;
}

size_t global_superblocks(void) { return __atomic_load_n(&global.superblocks, __ATOMIC_RELAXED); }

void global_fork_prepare(void) { lock_for_fork(&global.lock); }

void global_fork_parent(void) { lock_after_fork(&global.lock); }

void global_fork_child(void) { lock_reset(&global.lock); }
