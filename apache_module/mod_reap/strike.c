/* SPDX-License-Identifier: Apache-2.0 */
#include "strike.h"

#include "library.h"
#include "live.h"
#include "pools.h"

#include <apr_strings.h>
#include <http_config.h>
#include <http_log.h>
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
