/* SPDX-License-Identifier: Apache-2.0 */
/* apr_misuse.c: the line of a misuse as users of APR need it: with the call that they made and, in httpd's
 * error log, with what stands before the log's other entries. mod_reap adds the request.
 */
#include "apr_pool.h"

#include <apr_time.h>
#include <unistd.h>

_Thread_local const char *pool_call;

/* A function of httpd's, which is NULL in other programs. */
void ap_log_assert(const char *what, const char *file, int line) __attribute__((weak));

static void write_line(char *line, size_t size, const char *call, const void *pointer, const char *what)
{
    apr_time_t now = apr_time_now();
    char date[APR_CTIME_LEN]; /* "Sun Nov 23 08:00:00 2025" */
    int n = 0;
    if (ap_log_assert) {
        apr_ctime(date, now);
        n = apr_snprintf(line, size, "[%.19s.%06d %s] [reap:crit] [pid %d:tid %d] ", date,
                         (int)apr_time_usec(now), date + 20, (int)getpid(), (int)gettid());
    }
    if (pool_call) call = pool_call;
    apr_snprintf(line + n, size - (size_t)n, "reap: %s(0x%pp): %s", call, pointer, what);
}

void pool_tell_dead(apr_pool_t *pool, const char *call)
{
    pool_call = call;
    (void)reapParent(&pool->reap);
}

void pool_tell_misuse(void) { reapOnMisuse(write_line); }
