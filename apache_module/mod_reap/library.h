/* SPDX-License-Identifier: Apache-2.0 */
/* library: the calls of libreap, libreap-apr and libreap-ask that mod_reap makes.
 *
 * The module is linked to libreap-ask, and so to libreap. Calls of libreap-apr and libreap-profile are weak,
 * so that the module loads in any httpd; so are those of libreap, of which an older one may be preloaded.
 */
#ifndef MOD_REAP_LIBRARY_H
#define MOD_REAP_LIBRARY_H

#include <stdbool.h>

#define REAP_APR_OPTIONAL
#include "apr_reap.h"
#include "hoard.h"
#include "reap.h"
#include "reap_ask.h"
#include "tools/common/profile_face.h"

/* True while libreap-profile takes samples. */
static inline bool library_profiles(void) { return &reap_profile_face_2 && reap_profile_face_2.is_on; }

/* NULL, or what is missing and how to preload it, in a few sentences. */
const char *library_lacks(void);

/* The bytes that a pool and the pools below it hold; 0 on stock pools. */
static inline size_t library_held(apr_pool_t *pool)
{
    return apr_pool_reap && reapHeldBytes ? reapHeldBytes(apr_pool_reap(pool)) : 0;
}

#endif
