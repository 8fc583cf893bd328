/* SPDX-License-Identifier: Apache-2.0 */
#include "charge.h"

#include "library.h"

#include <http_config.h>
#include <http_log.h>
#include <stdio.h>

APLOG_USE_MODULE(reap);

enum { URL = 100 }; /* bytes that tell URLs apart */

static _Thread_local bool is_charged;

static void ask_profile(const char *question)
{
    FILE *out = &reap_profile_face_2 ? fopen("/dev/null", "we") : NULL;
    if (!out) return;
    reap_profile_face_2.answer(out, question, NULL);
    fclose(out);
}

static apr_status_t end_profile(void *data)
{
    (void)data;
    ask_profile("off");
    return APR_SUCCESS;
}

void charge_begin_profile(apr_pool_t *pool, const server_rec *server)
{
    ask_profile("on");
    if (library_profiles())
        apr_pool_cleanup_register(pool, NULL, end_profile, apr_pool_cleanup_null);
    else
        ap_log_error(
            APLOG_MARK, APLOG_WARNING, 0, server,
            "ReapProfile: the heap profile is not on: are libreap-malloc and libreap-profile preloaded?");
}

static bool is_wanted(void) { return library_profiles() && apr_pool_reap && reapChargeAs; }

static void charge(apr_pool_t *pool, const char *label, uint64_t *sampled)
{
    if (library_profiles()) reap_profile_face_2.count_thread(sampled);
    if (is_charged) reapUncharge();
    is_charged = is_wanted() && reapChargeAs(apr_pool_reap(pool), label) == 0;
}

void charge_request(const request_rec *r, const struct live *live)
{
    char url[URL + 1] = "";
    if (!is_charged && !is_wanted()) return;
    if (live && live->is_listed && r->uri) snprintf(url, sizeof url, "%s", r->uri);
    charge(r->pool, url, live && live->served ? &live->served->sampled : NULL);
}

void charge_connection(const conn_rec *c)
{
    if (is_charged || is_wanted()) charge(c->pool, "", NULL);
}
