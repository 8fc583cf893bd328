/* SPDX-License-Identifier: Apache-2.0 */
/* reclaim.h: what the owners of slots and mappings tell the code that gives memory back to the OS. arena.h
 * has the calls of others. No lock; arena_make_room may pass the gate of the arenas. */
#ifndef RECLAIM_H
#define RECLAIM_H

#include "base/base.h"

/* Makes room for `more` bytes. If they would come near the limit, all unused memory goes back. Returns false
 * with ENOMEM if they may not be held. */
bool arena_make_room(size_t more);

/* Slots or a mapping have come into use: an earlier fall may have been too deep. */
void arena_note_wanted(void);

#endif
