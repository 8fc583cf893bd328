/* SPDX-License-Identifier: Apache-2.0 */
/* plugin_leaking.c: right answers, and each time a list that nobody frees. */
#define _GNU_SOURCE /* asprintf */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugin.h"

struct letter {
    struct letter *next;
    char text[1000];
};

char *plugin(const char *input)
{
    struct letter *list = NULL;
    char *answer = NULL;
    for (const char *at = input; *at; at++) {
        struct letter *letter = malloc(sizeof *letter);
        if (!letter) return NULL;
        memset(letter->text, *at, sizeof letter->text);
        letter->next = list;
        list = letter;
    }
    return asprintf(&answer, "%zu letters", strlen(input)) < 0 ? NULL : answer;
}
