/* SPDX-License-Identifier: Apache-2.0 */
/* page: reap-status.html, which the build puts into the module. */
#ifndef MOD_REAP_PAGE_H
#define MOD_REAP_PAGE_H

#include "text.h"

/* Writes the page; its elements script and style get the nonce. */
void page_write(struct text *text, const char *nonce);

#endif
