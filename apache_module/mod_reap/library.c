/* SPDX-License-Identifier: Apache-2.0 */
#include "library.h"

#define HOW                                                                                                  \
    "Start httpd with LD_PRELOAD=libreap-apr.so.0 in its environment (Debian: export LD_PRELOAD in "         \
    "/etc/apache2/envvars; systemd: Environment=LD_PRELOAD=... in a drop-in of the service), by a full "     \
    "stop and start."

const char *library_lacks(void)
{
    if (!apr_pool_reap)
        return "libreap-apr is not preloaded: pools cannot be measured, and limits do nothing. " HOW;
    if (!reapHeldBytes || !reapSurvey || !reapOnMisuse || !reapPeakBytes)
        return "The preloaded libreap is older than mod_reap: pools cannot be measured, and limits do "
               "nothing. Install libreap and libreap-apr of the module's version.";
    return NULL;
}
