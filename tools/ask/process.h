/* SPDX-License-Identifier: Apache-2.0 */
/* process.h: this process's environment, number, standard error and threads. */
#ifndef PROCESS_H
#define PROCESS_H

#include <stdbool.h>
#include <stddef.h>

/* Finds option ask of REAP_OPTIONS, as the library of reaps reads it. Returns its value, which ends after
 * *size bytes, or NULL. Setuid programs have no options. */
const char *process_option(size_t *size);

/* Writes "reap: " and the formatted line to standard error. */
void process_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Starts a detached thread, in which all signals are blocked, so that the process's signals still go to the
 * program's threads. It has the stack of any thread of the program, whose functions it runs. 0, or an error
 * number. */
int process_start_thread(const char *name, void *(*run)(void *));

/* Ends the process with the line of a misuse, which reapOnMisuse's function may change. */
_Noreturn void process_misuse(const char *call, const char *what);

/* Checks that an argument is not NULL. The header declares it nonnull, and compilers would drop a plain
 * check. */
#define NOT_NULL(argument, call)                                                                             \
    do {                                                                                                     \
        __typeof__(argument) argument_ = (argument);                                                         \
        __asm__("" : "+r"(argument_));                                                                       \
        if (!argument_) process_misuse(call, "an argument is NULL");                                         \
    } while (0)

#endif
