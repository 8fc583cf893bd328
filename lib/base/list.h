/* SPDX-License-Identifier: Apache-2.0 */
/* list.h: doubly linked lists with a one-word head.
 *
 *     head -> node -> node -> NULL
 *             each node knows the word that points to it: removal needs no head
 *
 * A node that is all zero is on no list. Threads: the owner's lock protects head and nodes.
 */
#ifndef LIST_H
#define LIST_H

#include "base/base.h"

struct list_node {
    struct list_node *next;
    struct list_node **at; /* the word that points here; NULL: the node is on no list */
};

struct list {
    struct list_node *first;
};

#define LIST_ENTRY(node, type, member) ((type *)((char *)(node)-offsetof(type, member)))

static inline bool list_is_empty(const struct list *list) { return list->first == NULL; }

static inline bool list_holds(const struct list_node *node) { return node->at != NULL; }

static inline void list_push(struct list *list, struct list_node *node)
{
    ASSERT(!list_holds(node) && node->next == NULL);
    ASSERT(list->first == NULL || list->first->at == &list->first);
    node->next = list->first;
    node->at = &list->first;
    if (node->next != NULL) node->next->at = &node->next;
    list->first = node;
}

static inline void list_remove(struct list_node *node)
{
    ASSERT(list_holds(node) && *node->at == node);
    ASSERT(node->next == NULL || node->next->at == &node->next);
    *node->at = node->next;
    if (node->next != NULL) node->next->at = node->at;
    node->next = NULL;
    node->at = NULL;
}

static inline struct list_node *list_pop(struct list *list)
{
    struct list_node *node = list->first;
    if (node != NULL) list_remove(node);
    return node;
}

#endif
