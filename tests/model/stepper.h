/* SPDX-License-Identifier: Apache-2.0 */
/* stepper.h: two processors of which one stands still wherever one likes, inside of restartable sections too.
 *
 * The kernel restarts a section when its thread is signalled, so that no debugger can step through one. Here
 * no kernel knows the area: it is this program's own, as in check_sections. So the library's own instructions
 * are executed one by one, on a stack of their own, and before each of them the other processor does what a
 * plan says. (A run that is recorded steps with the trap flag; all others have one breakpoint, which virtual
 * machines execute five times as fast.) What the kernel does in life is done by a model of it in the place of
 * rseq_fence: a section in which the other processor is stopped goes on at its abort handler. Where a fence
 * is missing it goes on as it was, and its store is made, whatever has become of the superblock: each time,
 * and not once in a million as on real processors.
 *
 *     slow:   | heap_give_all: slot := NULL, owner := none | fence |      filed, given out anew       |
 *     fast:      | id, row, word, link .. stopped ..........| abort handler           | on, from the top
 *
 * A store that is done may still be in its processor's buffer, where the other one does not see it, while
 * what comes after it loads. So much of x86-64's order is modelled too, for the stores that commit: the
 * fence, as any locked instruction, empties the buffer.
 *
 * Both act in one thread, by turns. Who has to wait for a lock has the other one go on; where that waits as
 * well, the program ends. Programs need -Wl,--wrap for the functions below.
 */
#ifndef STEPPER_H
#define STEPPER_H

#include "arena/superblock.h"
#include "base/lock.h"

#include <sys/types.h>

enum { STEPPER_FAST = 1, STEPPER_SLOW = 2 }; /* heap ids */

/* When the fast one begins, and where it is stopped. */
struct plan {
    unsigned event; /* the slow one is at its n-th: it came out of a fence, or is about to give a superblock
                       to the global heap; 0: at once */
    unsigned moved; /* the slow one has the fast one's id until it comes to its n-th section; from there on it
                       is on its own, and the other may begin, by event; 0: it has its own all the time */
    unsigned point; /* at the n-th that was recorded; 0: it is recorded, and not stopped */
    unsigned goes_on; /* with this it goes on before the slow one's n-th fence, and again behind it; */
    unsigned then[2]; /* it is stopped at these points then */
};

/* What has come of it: whether there was this event, or section, and whether it has come to the point. */
struct passed {
    bool begun, stopped;
};

/* Once, before all others: false, and it says why, where code may not be written to. */
bool stepper_works(void);

/* Starts the allocator of this process. */
void stepper_start(void);

/* From now on, between runs, this thread has the id. */
void stepper_be(unsigned id);

/* The slow one does its part, the fast one its, by the plan; the fast one goes on when the other is done. */
struct passed stepper_run(const struct plan *plan, void (*fast)(void), void (*slow)(void));

/* The slow one forks. In the child there is no other, and what was in its buffer is lost. Where fork waits
 * for what the other one holds, that goes on first. */
pid_t stepper_fork(bool waits);

/* Each instruction of its sections, and each that may overtake the store of one, with the store in the buffer
 * and without: what the latest run that was recorded has come by. */
unsigned stepper_points(void);

/* The next of them that is behind a section, and nothing is in the buffer; 0: none. */
unsigned stepper_next_behind(unsigned point);

/* The plan that is being run, on standard error, for what ends in a signal. */
extern char stepper_story[256];

void __wrap_rseq_fence(void);
void __wrap_lock_wait(struct lock *lock);
void __wrap_global_heap_give(struct superblock *sb, unsigned id);
bool __wrap_superblock_has_free(const struct superblock *sb, const void *block);

#endif
