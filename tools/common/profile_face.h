/* SPDX-License-Identifier: Apache-2.0 */
/* profile_face.h: what libreap-profile has for modules in its process, as mod_reap. Its address is NULL where
 * the library is not there. */
#ifndef PROFILE_FACE_H
#define PROFILE_FACE_H

#include <stdio.h>

struct profile_face {
    volatile int is_on; /* not 0: it takes samples, and charges are worth their while */

    /* Writes a line for each name and module of malloc's objects, as the question `profile mallocs` does. */
    void (*put_mallocs)(FILE *out);
};
extern struct profile_face reap_profile_face __attribute__((weak, visibility("default")));

#endif
