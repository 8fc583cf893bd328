/* SPDX-License-Identifier: Apache-2.0 */
/* input_query.c: the query of reap-status: which form it asks for. */

#include "form.h"
#include "inputs/inputs.h"

const char *const input_name = "query";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *query = malloc(size + 1); /* its end is the heap block's, which a sanitizer watches */
    if (!query) return 0;
    memcpy(query, data, size);
    query[size] = '\0';
    const struct form *form = form_of(query);
    if (form) { /* the first word, whole, and nothing else */
        size_t n = strlen(form->query);
        if (strncmp(query, form->query, n) != 0 || (query[n] && !strchr("&=;", query[n]))) abort();
    } else {
        for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
            if (strcmp(query, forms[i].query) == 0) abort();
    }
    if (form_of(NULL) || form_of("")) abort();
    free(query);
    return 0;
}
