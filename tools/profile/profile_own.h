/* SPDX-License-Identifier: Apache-2.0 */
/* profile_own.h: this library's own text, and its own work. */
#ifndef PROFILE_OWN_H
#define PROFILE_OWN_H

#include <link.h>
#include <stdbool.h>
#include <stdint.h>

/* The addresses of the object that this is linked into. */
extern const ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden")));
extern char _end[] __attribute__((visibility("hidden")));
static inline bool profile_is_own(const void *address)
{
    return (uintptr_t)address - (uintptr_t)&__ehdr_start < (uintptr_t)_end - (uintptr_t)&__ehdr_start;
}

/* True while this thread does the profile's own work: what it allocates and frees meanwhile is no program's.
 */
extern __thread bool profile_busy __attribute__((tls_model("initial-exec"), visibility("hidden")));

#endif
