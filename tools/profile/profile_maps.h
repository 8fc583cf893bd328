/* SPDX-License-Identifier: Apache-2.0 */
/* profile_maps.h: the mappings of this process, as /proc/self/maps has them.
 *
 * Threads: one at a time, as its two users see to: each has its own reading.
 */
#ifndef PROFILE_MAPS_H
#define PROFILE_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct profile_map {
    uintptr_t begin, end;
    uint64_t offset, inode;
    bool may_write, may_execute;
    const char *path; /* in the file's text; "": none */
};

/* Reads them. False: there is no such file, or no memory. */
bool profile_maps_read(void);
void profile_maps_drop(void);

/* The mapping of an address; NULL: there is none. And each of them, in order. */
const struct profile_map *profile_map_of(const void *address);
const struct profile_map *profile_map_at(size_t i);

#endif
