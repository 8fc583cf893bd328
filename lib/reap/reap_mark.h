/* SPDX-License-Identifier: Apache-2.0 */
/* reap_mark.h: moments in a reap's life, to go back to.
 *
 * A mark is a place of the bump pointer. While one is open nothing is allocated but by bumping, so that all
 * that is younger lies behind it: in the mark's chunk from its unit on, and in chunks made since.
 *
 *     mark's chunk    | older objects ... |mark| younger ... | hole or free block |
 *     newer chunks    | younger ...
 *
 * Depth is the number of open marks. Chunks, children and functions keep the depth that they were made at: as
 * each of these lists has the newest first, what is younger than a mark is the beginning of the list, as far
 * as the depth is at least the mark's. Closing a mark lowers that beginning to the depth outside; walking it
 * costs no more than making it did, once for each mark around.
 *
 * A mark's chunk is pinned, and keeps the unit of its last mark as its floor: the bump pointer does not come
 * back below it, so a free block may stand before the hole there until the mark is closed.
 *
 * All of a mark is in the user's memory, so that opening one cannot fail. The last one's number is in the
 * reap too, so it is known exactly; an outer one is recognized by its depth and its place, which are checked
 * to be such that going back there is sound.
 *
 * Threads: the reap's own.
 */
#ifndef REAP_MARK_H
#define REAP_MARK_H

#include "reap.h"

#include "region/reap_chunk.h"

/* Aborts when it is no open mark of this reap. */
void reap_mark_check(const struct reap *reap, const reap_mark *mark, const char *call);

void reap_mark_open(struct reap *reap, reap_mark *mark);

/* Frees the objects that are younger. */
void reap_mark_rewind(struct reap *reap, const reap_mark *mark);

void reap_mark_close(struct reap *reap, const reap_mark *mark);

/* Closes all, where nothing is left that knows of them. */
void reap_mark_forget_all(struct reap *reap);

#endif
