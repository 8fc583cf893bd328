/* SPDX-License-Identifier: Apache-2.0 */
/* script: one run of one script: what the parts of mod_reap_lua share.
 *
 * Vocabulary: the response has begun when its headers have been passed on; they cannot change then.
 */
#ifndef SCRIPT_H
#define SCRIPT_H

#include "script_memory.h"

#include <httpd.h>

struct script {
    request_rec *request;
    struct script_memory memory;
    struct script_limits limits;
    lua_State *main;            /* its main thread */
    apr_bucket_brigade *output; /* not passed on yet */
    bool wrote;                 /* there was output */
    bool begun;
    bool client_gone;              /* the output could not be delivered */
    bool reports;                  /* the response says what the script held */
    bool cached;                   /* it ran from the cache */
    bool is_old_news;              /* its error is in the log already */
    bool shows_errors;             /* the client gets the error */
    const char *traceback, *error; /* of the error, in the request's pool; NULL: none */
    int failed_status;             /* what the client gets when the script ends in an error; 0: 500 */
};

/* The script that runs in a state: its main thread's extra space, which new threads would copy. */
static inline struct script *script_of(lua_State *L) { return *(struct script **)lua_getextraspace(L); }

static inline void script_attach(lua_State *L, struct script *script)
{
    *(struct script **)lua_getextraspace(L) = script;
    script->main = L;
}

#endif
