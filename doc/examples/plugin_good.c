/* SPDX-License-Identifier: Apache-2.0 */
/* plugin_good.c: the input in upper case; what is not the answer is freed. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "plugin.h"

char *plugin(const char *input)
{
    char *work = strdup(input), *answer = NULL;
    if (!work) return NULL;
    for (char *at = work; *at; at++) *at = (char)toupper((unsigned char)*at);
    answer = strdup(work);
    free(work);
    return answer;
}
