/* SPDX-License-Identifier: Apache-2.0 */
#include "hoard/guarded_map.h"

#include "base/lock.h"

static struct {
    struct lock lock;
    struct guarded_node *root;
    struct guarded_node *oldest, *youngest; /* of the dead pieces */
    size_t dead, kept;                      /* dead pieces, and their kept bytes */
} map = {.lock = LOCK_OF_RANK(RANK_GUARDED)};

static uint64_t priority(const struct guarded_node *node)
{
    return (uint64_t)node->start * 0x9e3779b97f4a7c15 ^ (uint64_t)node->start >> 17;
}

/* The link to the last piece that begins before an address; without such a piece, a link that is NULL. */
static struct guarded_node **before(uintptr_t address)
{
    struct guarded_node **link = &map.root, **found = NULL;
    while (*link) {
        if ((*link)->start < address) found = link;
        link = (*link)->start < address ? &(*link)->right : &(*link)->left;
    }
    return found ? found : link;
}

/* Splits a tree in two: the pieces that begin before an address, and the rest. */
static void split(struct guarded_node *tree, uintptr_t address, struct guarded_node **left,
                  struct guarded_node **right)
{
    ASSERT(lock_is_mine(&map.lock));
    while (tree) {
        if (tree->start < address) {
            *left = tree;
            left = &tree->right;
            tree = tree->right;
        } else {
            *right = tree;
            right = &tree->left;
            tree = tree->left;
        }
    }
    *left = *right = NULL;
}

/* Takes a node out. Its subtrees become one tree in its place. */
static void take_out(struct guarded_node **link)
{
    ASSERT(lock_is_mine(&map.lock) && *link);
    struct guarded_node *left = (*link)->left, *right = (*link)->right;
    while (left && right) {
        if (priority(left) > priority(right)) {
            *link = left;
            link = &left->right;
            left = left->right;
        } else {
            *link = right;
            link = &right->left;
            right = right->left;
        }
    }
    *link = left ? left : right;
}

static void insert(struct guarded_node *node)
{
    ASSERT(node->start <= node->end);
    struct guarded_node **link = &map.root;
    while (*link && priority(*link) >= priority(node))
        link = node->start < (*link)->start ? &(*link)->left : &(*link)->right;
    split(*link, node->start, &node->left, &node->right);
    *link = node;
    ASSERT(!node->left || (node->left->start < node->start && priority(node->left) <= priority(node)));
    ASSERT(!node->right || (node->right->start >= node->start && priority(node->right) <= priority(node)));
}

void guarded_map_add(struct guarded_node *node)
{
    struct guarded_node **link;
    lock_take(&map.lock);
    while (link = before(node->end), *link && (*link)->end > node->start) take_out(link);
    insert(node);
    lock_give(&map.lock);
}

void guarded_map_bury(struct guarded_node *node, size_t kept)
{
    ASSERT(!node->dead);
    lock_take(&map.lock);
    node->dead = true;
    node->kept = kept;
    node->next = NULL;
    if (map.youngest)
        map.youngest->next = node;
    else
        map.oldest = node;
    map.youngest = node;
    ASSERT((map.oldest != NULL) == (map.youngest != NULL));
    map.dead++;
    map.kept += kept;
    lock_give(&map.lock);
}

struct guarded_node *guarded_map_exhume(size_t count, size_t bytes)
{
    lock_take(&map.lock);
    struct guarded_node *node = map.dead > count || map.kept > bytes ? map.oldest : NULL;
    if (node) {
        ASSERT(node->dead && map.dead != 0 && map.kept >= node->kept);
        map.oldest = node->next;
        if (!map.oldest) map.youngest = NULL;
        map.dead--;
        map.kept -= node->kept;
        struct guarded_node **link = before(node->start + 1);
        if (*link == node) take_out(link); /* unless another took its place */
    }
    lock_give(&map.lock);
    return node;
}

static void *find(const void *pointer, bool dead, size_t *size)
{
    uintptr_t address = (uintptr_t)pointer;
    void *chunk = NULL;
    if (address == UINTPTR_MAX) return NULL;
    lock_take(&map.lock);
    const struct guarded_node *node = *before(address + 1);
    if (node && address < node->end && node->dead == dead) {
        chunk = node->chunk;
        if (size) *size = node->end - node->start;
    }
    lock_give(&map.lock);
    return chunk;
}

void *guarded_map_find(const void *pointer, size_t *size) { return find(pointer, false, size); }
void *guarded_map_find_dead(const void *pointer) { return find(pointer, true, NULL); }

bool guarded_map_is_kept(const void *pointer)
{
    uintptr_t address = (uintptr_t)pointer;
    if (address == UINTPTR_MAX) return false;
    lock_take(&map.lock);
    const struct guarded_node *node = *before(address + 1);
    bool is_kept = node && address < node->end && node->dead && node->kept;
    lock_give(&map.lock);
    return is_kept;
}

void guarded_map_hold(void) { lock_take(&map.lock); }
void guarded_map_let_go(void) { lock_give(&map.lock); }

void guarded_map_fork_prepare(void) { lock_for_fork(&map.lock); }
void guarded_map_fork_parent(void) { lock_after_fork(&map.lock); }
void guarded_map_fork_child(void) { lock_reset(&map.lock); }
