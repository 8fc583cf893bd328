/* SPDX-License-Identifier: Apache-2.0 */
/* profile_face.h: what libreap-profile has for modules in its process, as mod_reap. Its address is NULL where
 * the library is not there. Another layout gets another name: the two may be of different releases. */
#ifndef PROFILE_FACE_H
#define PROFILE_FACE_H

#include <stdint.h>
#include <stdio.h>

struct profile_face {
    volatile int is_on; /* not 0: it takes samples, and charges are worth their while */

    /* Writes a line for each name and module of malloc's objects, as the question `profile mallocs` does. */
    void (*put_mallocs)(FILE *out);

    /* Calls fn with a line for each of the ten stacks with most live bytes, the largest first: bytes,
     * objects, the name of their reap, and functions, innermost first. Of this reap and those below it; NULL:
     * of all that is sampled, malloc's too. Needs no memory, but for that of functions' names. The line is
     * valid during the call, and fn must not call any of these. */
    void (*largest_stacks)(void **reap, void (*fn)(const char *line, const void *arg), const void *arg);

    /* *bytes is what this thread allocates from now on, by samples, and has not freed; NULL: none. */
    void (*count_thread)(uint64_t *bytes);

    /* To the question `profile`: to be registered where libreap-ask was loaded later. */
    void (*answer)(FILE *out, const char *args, void *unused);
};
extern struct profile_face reap_profile_face_2 __attribute__((weak, visibility("default")));

#endif
