/* SPDX-License-Identifier: Apache-2.0 */
/* form.h: what the query of reap-status asks for: a header, for tests/inputs reads queries without httpd. */
#ifndef FORM_H
#define FORM_H

#include "documents.h"

#include <string.h>

static const struct form {
    const char *query, *type;
    enum document document;
} forms[] = {
    {"json", "application/json", DOCUMENT_JSON},
    {"auto", "text/plain; charset=us-ascii", DOCUMENT_AUTO},
    {"prometheus", "text/plain; version=0.0.4; charset=utf-8", DOCUMENT_PROMETHEUS},
};

/* The form that the query's first word asks for; NULL: the page. */
static inline const struct form *form_of(const char *query)
{
    size_t n = query ? strcspn(query, "&=;") : 0;
    for (size_t i = 0; n && i < sizeof forms / sizeof *forms; i++)
        if (strlen(forms[i].query) == n && memcmp(forms[i].query, query, n) == 0) return &forms[i];
    return NULL;
}

#endif
