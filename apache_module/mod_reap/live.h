/* SPDX-License-Identifier: Apache-2.0 */
/* live: the requests and connections that this child serves now.
 *
 * An entry is made in the pool of its request or connection, and leaves the list in a pre-cleanup of that
 * pool: whoever holds the list's lock finds the pool and its strings whole. Entries are few, so the list is
 * walked. A request's entry also keeps what the limits found out about it: its own thread alone writes there.
 */
#ifndef MOD_REAP_LIVE_H
#define MOD_REAP_LIVE_H

#include "board.h"

struct live {
    struct live *next, **ref;
    apr_pool_t *pool;
    bool is_request; /* else a connection */
    bool is_listed;  /* a virtual host without ReapStatus keeps its requests to itself */
    const char *method, *uri, *host, *client, *protocol;
    apr_time_t since;
    size_t peak;                  /* the most bytes seen, of the pool and those below it */
    size_t noted;                 /* its bytes in the sum that the child has noted */
    bool is_over;                 /* it has been logged, and its pool is about to go */
    request_rec *top;             /* the request, before its redirects */
    size_t looked;                /* the bytes that the limits counted at their last look, ... */
    size_t own_peak;              /* ... and the most that the request's own pool had by then, ... */
    unsigned calm;                /* ... and how many writes may pass until the next one */
    bool is_logged;               /* beyond a limit, and the log has it */
    bool is_ended;                /* beyond a limit, and ended for it */
    bool is_cut_off;              /* its connection is marked as aborted, and is not */
    int denied;                   /* the status of the error page that it got; 0: none */
    size_t ended_with;            /* what it held then */
    size_t hard;                  /* ReapLimitHard, as its reap has it; 0: none */
    struct board_request *served; /* on the board; NULL: not noted */
    size_t refused;               /* the bytes that this limit refused since the last look; 0: none */
};

/* Copies, that outlive their pools. */
struct live_copy {
    void *reap; /* the handle of the pool's reap */
    bool is_request;
    size_t bytes; /* of a request */
    char *owner;  /* "GET /x from 1.2.3.4" */
    char *host;   /* of a listed request */
    char *json;   /* a row of the requests; NULL for what is not listed */
};

/* Begin to follow. NULL without memory; the request is not followed then. */
struct live *live_begin_request(request_rec *r, bool is_listed);
void live_begin_connection(conn_rec *c);

/* The entry of the request that this one is a part of, or NULL. */
struct live *live_of(const request_rec *r);

/* Looks at the pools of a request: the bytes they hold now. */
size_t live_look(struct live *live);

/* Of the requests on this client's connection: the bytes of those that have been ended, whose memory is about
 * to go; how many have not been ended, this one included, and whether one of them holds more than it. */
struct live_others {
    size_t going, n;
    bool has_larger;
};
struct live_others live_look_at_others(const struct live *live, const conn_rec *client);

/* Requests of this child at this moment. */
unsigned live_requests(void);

/* Has the child's slot follow the number of requests, and the bytes below the uppermost pool. */
void live_begin_child(struct board_slot *slot, apr_pool_t *uppermost);

/* Notes these bytes, but for those of requests that are over: this one (NULL: a look, and no request's end),
 * and others whose pools are not gone yet. It looks at all pools once a second at most, and returns true; in
 * between it takes what the request had in the sum. */
bool live_note_bytes(struct live *over);

/* A request has ended, and was seen to hold so many bytes at most: among the largest of this child, and if it
 * is listed of the server. */
void live_note_largest(const struct live *live, size_t bytes);
/* "GET /a 8192, POST /b 4096": the n largest by URL, of those that have ended or are served. */
struct text live_largest(size_t n);

/* Copies the list; live_free_copies gives the copies up. NULL with n 0 where there are none. */
struct live_copy *live_copy_all(size_t *n);
void live_free_copies(struct live_copy *copies, size_t n);

/* The request that this thread is at, or NULL; NULL also where the list's lock is not let go. For a child
 * that ends in the midst of something. */
void live_enter(struct live *live);
/* Writes " of GET /a" if the pool is a request's that is served now. Allocates nothing; waits for the list's
 * lock no longer than live_entered does. */
void live_name_pool(const void *reap, char *text, size_t size);
const struct live *live_entered(void);

#endif
