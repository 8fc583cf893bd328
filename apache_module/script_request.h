/* script_request: the request as a script sees it: the global `r`, and print.
 *
 *   read        r.method, r.uri, r.args, r.path_info, r.protocol, r.hostname, r.useragent_ip, r.user,
 *               r.filename, r.the_request; r.headers_in["Name"], in any case of letters
 *   read, set   r.status, r.content_type, r.headers_out["Name"]
 *   calls       r:write(...) (also r:puts), r:flush(), r:requestbody(); print(...)
 *
 * The names are mod_lua's where the meaning is the same. Output is buffered, 8000 bytes of it, and
 * until the first of it leaves, the script may still fail with a clean error response.
 *
 * Vocabulary: the response has begun when its headers have been passed on; they cannot change then.
 */
#ifndef SCRIPT_REQUEST_H
#define SCRIPT_REQUEST_H

#include "script_memory.h"

#include <httpd.h>
#include <lua.h>

/* One run of one script. */
struct script {
    request_rec *request;
    struct script_memory memory;
    apr_bucket_brigade *output; /* not passed on yet */
    bool wrote;                 /* there was output */
    bool begun;
    bool client_gone;  /* the output could not be delivered */
    bool reports;      /* the response says what the script held */
    int failed_status; /* what the client gets when the script ends in an error; 0: 500 */
    apr_time_t max_time;
    apr_time_t deadline; /* in CPU time of this thread */
};

/* The script that runs in this state: main thread's extra space. */
struct script *script_of(lua_State *L);

/* Sets the globals r and print; may raise Lua's memory error. */
void script_request_open(lua_State *L);

/* Passes on what was written, and the end of the response. */
void script_request_finish(struct script *script);

#endif
