/* SPDX-License-Identifier: Apache-2.0 */
/* apr_semantics.h: a program that uses all of apr_pools.h and apr_allocator.h and prints what it saw.
 *
 * It knows APR only. apr_semantics.sh runs it on stock pools and with libreap-apr preloaded and
 * compares the transcripts, so nothing in them may vary from run to run: no addresses, no times.
 */
#ifndef APR_SEMANTICS_H
#define APR_SEMANTICS_H

#include <apr_allocator.h>
#include <apr_general.h>
#include <apr_pools.h>
#include <apr_strings.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Begins a section of the transcript. */
void section(const char *name);

/* Writes a line. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Ends the program unless status is success. */
void must(apr_status_t status);

/* A pool below parent. */
apr_pool_t *pool_below(apr_pool_t *parent);

/* Cleanups that say "plain NAME" and "child NAME"; data is the name. */
apr_status_t say_plain(void *name);
apr_status_t say_child(void *name);

/* Registers both for a name. */
void note(apr_pool_t *pool, const char *name);

void show_life(void);
void show_cleanups(void);
void show_allocators(void);
void show_memory(void);
void show_strings(void);
void show_exec(void);
void show_subprocesses(void);
void show_threads(void);

/* These end with APR terminated. */
void show_counted_initialization(void);

#endif
