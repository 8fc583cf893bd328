/* SPDX-License-Identifier: Apache-2.0 */
/* gather: one look at all children of the server.
 *
 * All are asked at once, over their sockets, and have one second together. A child that does not answer is
 * shown as silent, with what the OS says of it. Only what comes from the very process that was meant counts.
 */
#ifndef MOD_REAP_GATHER_H
#define MOD_REAP_GATHER_H

#include "board.h"

enum child_state { CHILD_ANSWERS, CHILD_SILENT, CHILD_STOPPING };

struct child {
    pid_t pid;
    int generation;
    enum child_state state;
    apr_time_t since;
    int64_t rss, pss; /* below 0: unknown */
    int64_t outside;  /* RSS in no pool, at least; below 0: unknown */
    unsigned requests;
    long cpu; /* microseconds that its answer took */
    struct pool_sums pools;
    uint64_t omitted_pools, omitted_bytes;
    const char *backend; /* JSON, or NULL */
    /* The conversation. */
    struct board_slot *slot;
    int socket; /* below 0: over */
    struct text reply;
    size_t rows, rows_end; /* where the tree's rows are in the reply */
};

struct live_row {
    uint64_t bytes;
    const char *json;
};

struct look {
    struct child *children;
    size_t n;
    struct pool_sums pools;
    struct pool_tags tags;    /* named in JSON */
    struct pool_tags mallocs; /* what malloc holds; names are MODULE, a tab, and FOR, in JSON both */
    struct pool_tags hosts;   /* named in JSON: of each its requests, as pools, and their bytes */
    int64_t rss, pss;         /* of all children */
    bool is_pss_known;        /* of each of them */
    int64_t outside; /* in no pool, at least, with shared pages once if the PSS is known; below 0: unknown */
    unsigned requests; /* live, of all children */
    long cpu;          /* microseconds that all of it took */
    struct live_row *rows;
    size_t n_rows;
    size_t row_room;
};

/* False without memory. look_free in both cases. */
bool look_take(struct look *look);
void look_free(struct look *look);

/* The child tells the error log what it has (strike.h), in its own time. */
void gather_ask_to_tell(pid_t pid);

#endif
