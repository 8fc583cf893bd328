/* SPDX-License-Identifier: Apache-2.0 */
/* plugin_greedy.c: keeps and doubles, until malloc says no. */
#include <stdlib.h>
#include <string.h>

#include "plugin.h"

char *plugin(const char *input)
{
    size_t length = strlen(input), size = length + 1;
    char *text = strdup(input);
    while (text) {
        char *longer = realloc(text, 2 * size);
        if (!longer) break;
        text = longer;
        memcpy(text + size, text, size);
        size *= 2;
    }
    free(text);
    return NULL; /* errno is still realloc's: ENOMEM */
}
