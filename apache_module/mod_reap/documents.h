/* SPDX-License-Identifier: Apache-2.0 */
/* documents: a look in the forms in which it is served: JSON, text, Prometheus, and a brief for mod_status.
 *
 * All are written at once and kept on the board, so that any number of clients costs one look.
 */
#ifndef MOD_REAP_DOCUMENTS_H
#define MOD_REAP_DOCUMENTS_H

#include "board.h"

/* The document as it is now, in memory of malloc's; takes a look if there is none that is fresh. NULL when
 * another child has not finished its look, or without memory. */
char *documents_get(enum document document, size_t *length);

#endif
