/* SPDX-License-Identifier: Apache-2.0 */
/* board: what the children share: who they are, the last look, the curve, and counters.
 *
 * It lives as long as the first process, over graceful restarts, so that children of an older generation are
 * still seen. The last look's documents are in a file without a name, since their size varies.
 *
 * Locks, both robust and between processes: `looking` is held by the one child that asks all others, for a
 * second at most; `lock` guards all else, for a copy's time, and no other is taken under it. Slots are their
 * child's own, the counters atomic. Without a board (no ReapStatus, or no memory for it) all calls do
 * nothing.
 */
#ifndef MOD_REAP_BOARD_H
#define MOD_REAP_BOARD_H

#include "pools.h"

#include <httpd.h>

/* A request, in strings that are cut. */
struct board_request {
    pid_t pid;       /* 0: none */
    apr_time_t time; /* when it began, or ended */
    uint64_t bytes;  /* the most that its pools were seen to hold */
    /* Of one that is served: what its thread has allocated since and not freed, by the heap profile; what the
     * child was resident with then, and at most until then. */
    uint64_t sampled, rss, peak;
    char method[16], uri[200], host[64], client[46];
    bool is_denied, is_closed; /* for a limit */
};
enum { BOARD_LARGEST = 50 };

struct board_slot {
    _Alignas(64) pid_t pid; /* 0: free */
    int generation;
    apr_time_t since;
    unsigned requests; /* live ones */
    uint64_t bytes;    /* of its pools, when it last looked; of requests that have ended none */
    apr_time_t looked;
    int64_t pss; /* when it was last asked for; 0: never */
    /* Of a child that ends by itself: the request that it ends for, and over which limit; 0: for want of
     * memory. */
    const struct board_request *fatal;
    uint64_t limit;
    /* Of one that has ended, by who waits for it: the signal, and its most resident bytes; 0: not known. */
    int signal;
    uint64_t peak;
};

struct board_point {
    apr_time_t time;
    uint64_t bytes, rss;
    unsigned requests;
    uint64_t excesses; /* so far; noted with the point */
};

enum document { DOCUMENT_JSON, DOCUMENT_AUTO, DOCUMENT_PROMETHEUS, DOCUMENT_BRIEF, DOCUMENTS };
enum { BOARD_POINTS = 120 }; /* ten minutes */

/* Makes the board, or finds that of before the restart. False without memory. */
bool board_open(server_rec *main_server);
bool board_is_open(void);

/* The name that this server's children listen at; %p stands for the child's pid. */
const char *board_address(void);

/* This child comes; it leaves when pool ends. */
void board_join(apr_pool_t *pool, int generation);
struct board_slot *board_own_slot(void);
size_t board_slots(struct board_slot **slots);
/* What the child serves now, for who finds it dead: one for each thread, 64 at most; others are not noted. */
size_t board_served(const struct board_slot *slot, struct board_request **served);
void board_release(struct board_slot *slot); /* of a child that is gone */

/* Puts a request into a list of n, the most bytes first, one for each URL without its query; it has room for
 * `most`. */
void board_insert(struct board_request *all, size_t *n, size_t most, const struct board_request *request);
/* Notes a request that has ended, if it is among the largest; one for each URL. */
void board_note_largest(const struct board_request *request);
size_t board_largest(struct board_request *largest); /* the most bytes first; room for BOARD_LARGEST */

/* A child that ended for ReapChildLimit, or in the midst of its requests. */
struct board_end {
    pid_t pid;
    enum { END_CHILD_LIMIT, END_HARD, END_MEMORY, END_KILLED } why;
    int signal; /* 0: none, or not known */
    apr_time_t time;
    apr_interval_time_t uptime;
    uint64_t bytes, limit; /* what it had, or was held for the request that stands out; the limit, or 0 */
    uint64_t rss;          /* at most; 0: not known */
    unsigned requests;     /* that it has served; of one that ended in their midst: that it served then */
    struct board_request largest, ran[8]; /* that which stands out, if one does; those that held most */
};
enum { BOARD_ENDS = 20 };

/* Whether this child may end now: one at a time does, and the next one when that one has been gone for two
 * seconds, in which httpd starts another; or at the end of its turn, whatever it does. */
bool board_take_turn(apr_time_t until);
void board_note_end(const struct board_end *end);
size_t board_ends(struct board_end *ends); /* the newest first; room for BOARD_ENDS */

/* Whether this child is the first of its generation that has to say what all of them find. */
bool board_is_first_word(void);

/* Since the start: requests beyond a limit; children that ReapLimitHard ended, that ReapChildLimit ended, and
 * that were killed; directives with a limit that were read at run time. No call allocates. */
enum board_counter {
    COUNT_EXCESSES,
    COUNT_HARD,
    COUNT_ENDED,
    COUNT_KILLED,
    COUNT_READ_LATE,
    COUNT_REQUEST, /* of the excesses those of ReapLimitRequest, by what became of it, ... */
    COUNT_CONNECTION = COUNT_REQUEST + 3, /* ... and those of ReapLimitConnection */
    COUNTERS = COUNT_CONNECTION + 3
};
void board_count(enum board_counter which);
uint64_t board_counted(enum board_counter which);
/* Whether nobody has said for a minute what holds most. Without a board, whether this child has not. */
bool board_takes_minute(void);
/* Excesses of the curve's time, and how many seconds that are. */
uint64_t board_recent_excesses(double *seconds);

/* How often the control group was at memory.high and memory.max, and how many processes were killed for it.
 * Notes these counts. True if one has grown since the last look, which was not the first, and nobody has said
 * so for a minute: then they become what is new since that was said. */
struct board_pressure {
    uint64_t high, max, killed;
};
bool board_note_pressure(struct board_pressure *counts);

/* Whether somebody has looked within the last minute. */
bool board_is_watched(void);

/* The last look's document, in memory of malloc's, if it is not older than its life; if late, than 3 s. */
char *board_document(enum document document, bool late, size_t *length);
/* Keeps documents for this long. */
void board_keep_documents(const struct text *documents, apr_interval_time_t life);

bool board_begin_look(apr_interval_time_t wait); /* false: another child still looks */
void board_end_look(void);

/* Notes a point. Where the last one is younger than 5 seconds, it takes the greater of both. */
void board_add_point(const struct board_point *point);
size_t board_history(struct board_point *points); /* oldest first; room for BOARD_POINTS */

/* What has grown since an earlier look, in bytes by tag: fills in earlier, and the seconds that have gone by.
 * That look is at least a minute before this one, or else the first. Then notes this one. */
double board_growth(const struct pool_tags *now, struct pool_tags *earlier);

#endif
