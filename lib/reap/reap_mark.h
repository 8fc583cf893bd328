/* SPDX-License-Identifier: Apache-2.0 */
/* reap_mark.h: marks, moments in a reap's life to which it can go back.
 *
 * A mark is a place of the bump pointer. While a mark is open the reap uses no gap: it allocates by bumping,
 * in the hole and in new chunks. So all younger objects lie behind the mark, where the hole was, and in
 * chunks made since. The mark has the hole's length.
 *
 *     mark's chunk    | older objects ... |mark| younger ... | older objects ... |
 *     newer chunks    | younger ...
 *
 * Depth is the number of open marks. Chunks, children and functions keep the depth at which they were made,
 * and their lists have the newest first: so the entries younger than a mark are the beginning of a list.
 * To close a mark lowers their depth: once for each mark around them, at no more cost than to make them.
 *
 * The reap knows the place of its last mark: the bump pointer does not move back across it, and no older
 * object grows across it. A record leaves a unit of what it takes from, for a mark may be there; a mark at
 * the end of a chunk has no place. Chunks without live objects stay until the last mark is closed, for a mark
 * may be in them. All of a mark is in user memory, so that reapMark cannot fail. The reap recognizes its last
 * mark by a number, and an outer mark by depth and place: it checks that it can safely go back there.
 *
 * Threads: the reap's own.
 */
#ifndef REAP_MARK_H
#define REAP_MARK_H

#include "reap.h"

#include "region/reap_chunk.h"

/* Aborts when it is no open mark of this reap. */
void reap_mark_check(const struct reap *reap, const reap_mark *mark, const char *call);

/* Frees the objects that are younger than the mark, which stays open. */
void reap_mark_rewind(struct reap *reap, const reap_mark *mark);

/* Does so after all checks, where it is but a bump pointer that goes back. False: nothing has changed. */
bool reap_mark_rewind_usual(void **handle, const reap_mark *mark);

/* Closes all marks of a reap that is being cleared, when it has no children and functions any more. */
void reap_mark_forget_all(struct reap *reap);

#endif
