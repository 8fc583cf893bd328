/* SPDX-License-Identifier: Apache-2.0 */
#include "script_error.h"
#include "script.h"

#include <apr_strings.h>
#include <lauxlib.h>
#include <string.h>

enum { INNERMOST = 10, OUTERMOST = 5 }; /* frames that a traceback shows */

static const char *describe_frame(lua_State *L, lua_Debug *frame, apr_pool_t *pool)
{
    lua_getinfo(L, "Snl", frame);
    const char *place =
        *frame->what == 'C' ? "[C]" : apr_psprintf(pool, "%s:%d", frame->short_src, frame->currentline);
    if (frame->name) return apr_psprintf(pool, "%s in %s '%s'", place, frame->namewhat, frame->name);
    return *frame->what == 'm' ? apr_psprintf(pool, "%s in main chunk", place) : place;
}

static int count_frames(lua_State *L)
{
    lua_Debug frame;
    int low = 0, high = 1; /* Lua's own stack has no more than a million */
    while (lua_getstack(L, high, &frame)) high *= 2;
    while (low < high) {
        int middle = (low + high) / 2;
        if (lua_getstack(L, middle, &frame))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* From the frame where the error is, outwards, without the handler's own and the module's. */
static const char *traceback(lua_State *L, apr_pool_t *pool)
{
    int frames = count_frames(L) - 1;
    const char *text = NULL;
    for (int i = 1; i < frames; i++) {
        lua_Debug frame;
        if (i == 1 + INNERMOST && frames > i + OUTERMOST) {
            text = apr_psprintf(pool, "%s < ... %d more ...", text, frames - i - OUTERMOST);
            i = frames - OUTERMOST;
        }
        if (!lua_getstack(L, i, &frame)) break;
        const char *line = describe_frame(L, &frame, pool);
        text = text ? apr_pstrcat(pool, text, " < ", line, NULL) : line;
    }
    return text;
}

int script_error_describe(lua_State *L)
{
    struct script *script = script_of(L);
    script->traceback = traceback(L, script->request->pool);
    if (!lua_isstring(L, 1) && !luaL_getmetafield(L, 1, "__tostring"))
        lua_pushfstring(L, "%s: the error is a %s value", script->request->filename, luaL_typename(L, 1));
    else
        luaL_tolstring(L, 1, NULL);
    return 1;
}

/* The message; one about memory gets the figures. */
static const char *message_of(lua_State *L, const struct script *script)
{
    const struct script_memory *memory = &script->memory;
    const char *message = lua_tostring(L, -1);
    if (!message) message = "the error has no message";
    if (!strstr(message, "not enough memory")) return message;
    return apr_psprintf(script->request->pool, "%s: %s%s, %" APR_SIZE_T_FMT " bytes held%s",
                        script->request->filename, message, memory->refused ? " (ReapLuaMaxMemory)" : "",
                        memory->held, memory->frees ? "" : ", garbage included");
}

const char *script_error_text(lua_State *L, const struct script *script)
{
    const char *message = message_of(L, script);
    if (!script->traceback && script->limits.line > 0)
        return apr_psprintf(script->request->pool, "%s, last seen at %s:%d", message, script->limits.source,
                            script->limits.line);
    if (!script->traceback) return message;
    return apr_pstrcat(script->request->pool, message, ", at ", script->traceback, NULL);
}
