/* SPDX-License-Identifier: Apache-2.0 */
/* settings: the directives of mod_reap.
 *
 * Those for a request are per directory, so that they merge from server to virtual host to location; before
 * the location is known a request has its server's. Those for a process or a connection are per server.
 */
#ifndef MOD_REAP_SETTINGS_H
#define MOD_REAP_SETTINGS_H

#include <httpd.h>

#include <http_config.h>
#include <stdbool.h>

enum action { ACTION_DENY, ACTION_CLOSE, ACTION_LOG }; /* the first is the default */
enum { REPORT_LIMIT = 1, REPORT_EXIT = 2 };

struct request_settings {
    apr_int64_t limit;              /* bytes; 0: none */
    apr_int64_t hard;               /* bytes; 0: none */
    int action;                     /* an enum action */
    int status;                     /* of a denial; 0: 413 or 500 */
    int reports;                    /* REPORT_... */
    const char *limit_at, *hard_at; /* "file:line" of the directives; NULL: none, or read at run time */
};

struct child_settings {
    apr_int64_t limit; /* bytes; 0: none */
    apr_int64_t after; /* requests that a child serves first */
};

struct server_settings {
    int collects;
    int profiles;                 /* the main server's counts */
    apr_int64_t connection_limit; /* bytes; 0: none */
    struct child_settings child;  /* the main server's counts */
};

extern const command_rec settings_directives[];
void *settings_create_directory(apr_pool_t *pool, char *directory);
void *settings_merge_directory(apr_pool_t *pool, void *base, void *own);
void *settings_create_server(apr_pool_t *pool, server_rec *server);
void *settings_merge_server(apr_pool_t *pool, void *base, void *own);

/* What is in force: defaults where nothing is set. */
struct request_settings settings_of_request(const request_rec *r);
struct request_settings settings_of_main_server(const server_rec *server);
struct server_settings settings_of_server(const server_rec *server);
struct child_settings settings_of_child(const server_rec *main_server);

/* The limits alone, for who asks at each write: bytes; 0: none. */
size_t settings_request_limit(const request_rec *r);
size_t settings_connection_limit(const server_rec *server);

/* Whether any server collects; any limit was read, in the configuration or since. */
bool settings_any_collects(const server_rec *main_server);
bool settings_any_limits(void);

/* The limits of the configuration that the server started with, in its order: in the main server, in virtual
 * hosts and in sections. A directive that is read later (.htaccess, $r->add_config) belongs to its request,
 * and goes with its pool: it is counted on the board alone. */
struct limit_set {
    const char *directive;
    apr_int64_t bytes;
    const char *where, *at; /* "<VirtualHost *:80> <Location /x>", "": for the whole server; "file:line" */
    const server_rec *server;
};
const struct limit_set *settings_limits(size_t *n);

/* Whether ReapLimitHard is above ReapLimitRequest wherever both hold: in the servers, in each section, and in
 * sections within it, by path or nested; what only a request brings together is not seen. And at the start
 * whether ReapChildLimit is above what httpd has with its configuration alone. Logs where not. */
bool settings_check(apr_pool_t *pool, const server_rec *main_server);

const char *settings_action_name(int action);

#endif
