/* reap_closing.h: chunks that a reap can do without.   (floor 6)
 *
 * Where objects die here and there, chunks grow emptier and none goes. So when less than half of a chunk
 * lives, and the others have room for that and some more, it is closed: its free blocks are in no bins, so it
 * only loses objects, and goes with the last one. Before a reap grows, closed chunks are opened again.
 *
 * Threads: the reap's own.
 */
#ifndef REAP_CLOSING_H
#define REAP_CLOSING_H

#include "reap_chunk.h"

/* May the reap do without the free blocks of a chunk, in which less than half lives? */
bool reap_closing_is_due(const struct reap *reap, const struct reap_chunk *chunk);

/* Closes a chunk, which has no hole. */
void reap_closing_close(struct reap *reap, struct reap_chunk *chunk);

/* Opens a closed chunk: more may be free then. False: there is none. */
bool reap_closing_reopen(struct reap *reap);

#endif
