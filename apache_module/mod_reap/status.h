/* SPDX-License-Identifier: Apache-2.0 */
/* status: the handler reap-status, and the section in mod_status' page. */
#ifndef MOD_REAP_STATUS_H
#define MOD_REAP_STATUS_H

#include <httpd.h>

#include <stdbool.h>

bool status_is_handler(const char *name);

/* ?json, ?auto and ?prometheus give the data; anything else gives the page, which asks for ?json. */
int status_handler(request_rec *r);

/* mod_status' hook; flags are its own. */
int status_section(request_rec *r, int flags);

#endif
