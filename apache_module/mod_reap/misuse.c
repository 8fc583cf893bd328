/* SPDX-License-Identifier: Apache-2.0 */
#include "misuse.h"

#include "library.h"
#include "live.h"

#include <apr_strings.h>
#include <string.h>

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

void misuse_begin(apr_pool_t *pool)
{
    if (library_lacks()) return;
    before = reapOnMisuse(add_request);
    apr_pool_cleanup_register(pool, NULL, restore, apr_pool_cleanup_null);
}
