/* SPDX-License-Identifier: Apache-2.0 */
/* server_search.h: what server.c serves: an index of words and documents, and a request for some words in
 * eleven stages, each of which allocates what the next ones need. The last one frees all of it.
 */
#ifndef SERVER_SEARCH_H
#define SERVER_SEARCH_H

#include <stdatomic.h>
#include <stdint.h>

enum { STAGES = 11 };

/* It begins with its size, as take writes it. */
struct request {
    uint64_t size, number, n_results, allocations;
    uint32_t state;
    int stage;
    struct request *next; /* in a queue */
    struct text *query, *page;
    struct word *words;
    struct match *matches;
    struct table *table;
    struct sorted *sorted;
};

/* What processes share, too. */
struct shared {
    _Atomic int next;
    _Atomic uint64_t sum, allocations;
};
extern struct shared *shared;

/* Before the first request: the index, and what is shared. Neither is malloc's. */
void search_begin(void);
extern void (*const search_stages[STAGES])(struct request *request);

#endif
