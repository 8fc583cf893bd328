/* reap_remote.h: free() and realloc() of a reap's object, from any thread.   (floor 6)
 *
 * Under libreap-malloc a program may hand a reap's object to free(), as libraries do with what
 * they did not allocate. The thread that calls need not be the one that uses the reap, so nothing
 * of the reap is touched but two lists, pushed to atomically and emptied by the reap's next slow
 * path (reap_alloc_drain):
 *
 *     remote         freed objects, linked through their first eight bytes; the second eight mark
 *                    them as pending, so that a second free is seen before the list is emptied
 *     remote_chunks  objects that realloc() had to move: each in a chunk of its own
 *
 * Threads: any, while the reap lives.
 */
#ifndef REAP_REMOTE_H
#define REAP_REMOTE_H

/* Tells the backend whom to call for blocks that lie in chunks. Done once, before the first chunk. */
void reap_remote_start(void);

#endif
