/* SPDX-License-Identifier: Apache-2.0 */
/* answers.h: the library's own answers. */
#ifndef ANSWERS_H
#define ANSWERS_H

#include <stdio.h>

struct answer {
    const char *name;
    void (*fn)(FILE *out);
    const char *meaning;
};

/* The list ends with a name of NULL. */
extern const struct answer answers[];

#endif
