/* SPDX-License-Identifier: Apache-2.0 */
/* questions.h: from a question's line to its answer.
 *
 * The library's thread answers one question after the other. No lock is held while a function of the program
 * runs, so that this may add and take away questions itself.
 */
#ifndef QUESTIONS_H
#define QUESTIONS_H

#include <stdbool.h>
#include <stdio.h>

/* Writes the answer to a line, which has no end of line, and which this call changes. */
void questions_answer(char *line, FILE *out);

/* The process ends: no function of the program is called any more. Waits a second for one that runs. */
void questions_end(void);

/* Registers the handler for children of forks, behind that of the library of reaps, whose calls the child may
 * make. To be asked before the process listens. False: there is no memory for it. */
bool questions_survive_fork(void);

/* That handler: the thread that answered is not there. */
void questions_fork_child(void);

#endif
