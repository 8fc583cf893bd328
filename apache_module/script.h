/* SPDX-License-Identifier: Apache-2.0 */
/* script: one run of one script: what the parts of mod_reap_lua share.
 *
 * Vocabulary: the response has begun when its headers have been passed on; they cannot change then.
 */
#ifndef SCRIPT_H
#define SCRIPT_H

#include "script_memory.h"
#include "script_time.h"

#include <httpd.h>
#include <lua.h>

struct script {
    request_rec *request;
    struct script_memory memory;
    struct script_time time;
    apr_bucket_brigade *output; /* not passed on yet */
    bool wrote;                 /* there was output */
    bool begun;
    bool client_gone;  /* the output could not be delivered */
    bool reports;      /* the response says what the script held */
    int failed_status; /* what the client gets when the script ends in an error; 0: 500 */
};

/* The script that runs in a state: its main thread's extra space, which new threads would copy. */
static inline struct script *script_of(lua_State *L)
{
    return *(struct script **)lua_getextraspace(L);
}

static inline void script_attach(lua_State *L, struct script *script)
{
    *(struct script **)lua_getextraspace(L) = script;
}

#endif
