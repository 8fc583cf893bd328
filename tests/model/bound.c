/* SPDX-License-Identifier: Apache-2.0 */
#include "bound.h"

#include "arena/false_sharing.h"
#include "base/options.h"
#include "heap/global_heap.h"
#include "os/topology.h"

struct extremes extremes;

unsigned most_held_back(unsigned class)
{
    unsigned size = sizeclasses[class].size, most = 0;
    for (unsigned i = 0; i < LINE / BLOCK_UNIT;
         i++) { /* after as many blocks, blocks lie in lines as before */
        unsigned from = i * size / LINE * LINE, to = align_up((i + 1) * size, LINE);
        unsigned touching = (to + size - 1) / size - from / size;
        most = touching - 1 > most ? touching - 1 : most;
    }
    return most;
}

static double unposted(void) { return options.empty_fraction < 2 ? 1 / 8.0 : 1 / 4.0; }

/* What may be free without being recorded, of a superblock in a bin. By lines a free may be the one that all
 * blocks of its line were waiting for, so a sixteenth of frees sets free `share` of them. */
static double unseen(unsigned share)
{
    double noted = share > 1 ? share / 16.0 : 0;
    return 1 / 8.0 + (unposted() > noted ? unposted() : noted);
}

double bound_slope(unsigned classes, unsigned share)
{
    return classes * share / (1 - options.empty_fraction / 8.0 - unseen(share));
}

double bound_of(unsigned classes, unsigned slots, unsigned share, unsigned heaps, size_t live)
{
    double f = options.empty_fraction / 8.0;
    double many = 1 / (1 - f - unseen(share)), few = 1 / (1 - unseen(share));
    double by_f = many * classes * slots, by_slack = few * (options.slack + classes * slots);
    double batch = cpu.ids != 0 ? many * share / 8 * slots : 0;
    double heap = (by_f > by_slack ? by_f : by_slack) + batch;
    double caches = topology_caches_now() > 1 ? topology_caches_now() * (double)GLOBAL_HEAP_CACHE_MAX : 0;
    return bound_slope(classes, share) * (double)live + (classes * heaps * heap + caches) * SUPERBLOCK;
}

static void record(double *extreme, double value)
{
    if (value > *extreme) *extreme = value;
}

/* Pending blocks of a superblock that nobody else touches: those that may go. The others wait from now on, as
 * they would from the next look of the heap's. */
static unsigned releasable(struct superblock *sb)
{
    struct chain chain = superblock_take_pending(sb);
    if (chain.count != 0 && sb->role.sharing != SHARING_NONE) chain = false_sharing_release(sb, &chain);
    if (chain.count != 0) superblock_put_pending(sb, &chain);
    return chain.count;
}

static void look_at(struct superblock *sb)
{
    unsigned capacity = superblock_class(sb)->capacity, live = superblock_live(sb), may_go = releasable(sb);
    record(&extremes.unrecorded, word_free(word_read(sb)) * 8.0 / capacity - sb->group);
    double most = sb->role.sharing != SHARING_NONE ? (most_held_back(sb->class) + 1) / 16.0 : unposted();
    if (may_go > 1) record(&extremes.unposted, may_go / (most * capacity));
    if (sb->role.sharing != SHARING_NONE && live != 0)
        record(&extremes.held_back, (double)superblock_waiting(sb) / (most_held_back(sb->class) * live));
}

/* In slots: what is live, with what it holds back. */
static double live_share(const struct superblock *sb)
{
    double held = sb->role.sharing != SHARING_NONE ? most_held_back(sb->class) + 1 : 1;
    return held * superblock_live(sb) / superblock_class(sb)->capacity * superblock_slots(sb);
}

static void look_at_bins(const struct heap *heap, double *live, unsigned *share)
{
    for (unsigned class = 1; class < CLASSES; ++class)
        for (unsigned group = 0; group < GROUP_EMPTY && heap->bins[class].mask != 0; group++) {
            struct list_node *node = heap->bins[class].groups[group].first;
            for (; node != NULL; node = node->next) {
                struct superblock *sb = LIST_ENTRY(node, struct superblock, link);
                look_at(sb);
                *live += live_share(sb);
                if (sb->role.sharing != SHARING_NONE && most_held_back(class) >= *share)
                    *share = most_held_back(class) + 1;
            }
        }
}

static void look_at_heap(const struct heap *heap)
{
    double live = 0, f = options.empty_fraction / 8.0, slack = options.slack, a = heap->slots;
    unsigned active = 0, share = 1;
    for (unsigned class = 1; class < CLASSES; ++class)
        active += *heap_slot(heap, class) != 0 ? sizeclasses[class].slots : 0;
    look_at_bins(heap, &live, &share);
    double most = slack > f * a ? slack : f * a;
    double many = (live + active) / (1 - f - unseen(share));
    double few = (live + active + slack) / (1 - unseen(share));
    if (most > 0) record(&extremes.recorded, heap->free_eighths / 8.0 / most);
    record(&extremes.active, active);
    if (a > 0) record(&extremes.heap, a / (many > few ? many : few));
}

void extremes_look(void)
{
    struct heap *heap;
    for (unsigned id = 0; (heap = heap_next(id)) != NULL; id = heap->id + 1u) look_at_heap(heap);
    extremes.looks++;
}
