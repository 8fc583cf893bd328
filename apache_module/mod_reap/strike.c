/* SPDX-License-Identifier: Apache-2.0 */
#include "strike.h"

#include "library.h"
#include "live.h"
#include "pools.h"

#include <apr_strings.h>
#include <http_config.h>
#include <http_log.h>
#include <string.h>
#include <unistd.h>

APLOG_USE_MODULE(reap);

/* In memory of the stack's, as there may be no other. */
static void tell_largest(const server_rec *server)
{
    struct pool_top top[10];
    char text[10 * 200] = "unknown", owner[130];
    size_t n = pools_top(top, 10), length = 0;
    for (size_t i = 0; i < n; i++) {
        live_name_pool(top[i].reap, owner, sizeof owner);
        length += (size_t)apr_snprintf(text + length, sizeof text - length, "%s%s%s %" APR_SIZE_T_FMT,
                                       i ? ", " : "", top[i].tag, owner, top[i].bytes);
    }
    ap_log_error(APLOG_MARK, APLOG_ERR, 0, server, "child %ld: the largest reaps: %s", (long)getpid(), text);
}

static void tell_stack(const char *line, const void *server)
{
    ap_log_error(APLOG_MARK, APLOG_ERR, 0, server, "child %ld: stack: %s", (long)getpid(), line);
}

void strike_tell(const server_rec *server, void **reap)
{
    if (library_lacks()) return;
    tell_largest(server);
    if (library_profiles()) reap_profile_face_2.largest_stacks(reap, tell_stack, server);
}

static reap_misuse_line *before; /* libreap-apr's */

/* From strings that are there, since nothing can be allocated. */
static void add_request(char *line, size_t size, const char *call, const void *pointer, const char *what)
{
    if (before) before(line, size, call, pointer, what);
    const struct live *live = live_entered();
    if (!live) return;
    char *end = line + strlen(line);
    apr_snprintf(end, size - (size_t)(end - line), ", for %s %.300s from %s", live->method, live->uri,
                 live->client);
    for (; *end; end++)
        if (*end < ' ' || *end > '~') *end = '?'; /* the client may have sent anything */
}

static apr_status_t restore(void *data)
{
    (void)data;
    reapOnMisuse(before);
    return APR_SUCCESS;
}

void strike_name_misuse(apr_pool_t *pool)
{
    if (library_lacks()) return;
    before = reapOnMisuse(add_request);
    apr_pool_cleanup_register(pool, NULL, restore, apr_pool_cleanup_null);
}
