/* SPDX-License-Identifier: Apache-2.0 */
/* See preload_early.h. The fork handlers are registered in a constructor, as libraries do. */
#include "preload_early.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#pragma GCC visibility push(default)
char *early_block;
int early_prepared, early_in_parent, early_in_child;
void early_work_under_lock(void);
#pragma GCC visibility pop

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *held; /* allocated by prepare, freed by the other two */

static void churn(void)
{
    char *blocks[64];
    for (int i = 0; i < 64; i++) {
        blocks[i] = malloc((size_t)i * 37 + 1);
        blocks[i][0] = (char)i;
    }
    for (int i = 0; i < 64; i++) free(blocks[i]);
}

void early_work_under_lock(void)
{
    pthread_mutex_lock(&lock);
    churn();
    pthread_mutex_unlock(&lock);
}

static void prepare(void)
{
    pthread_mutex_lock(&lock);
    churn();
    held = strdup("held over the fork");
    early_prepared++;
}

static void in_parent(void)
{
    free(held);
    churn();
    early_in_parent++;
    pthread_mutex_unlock(&lock);
}

static void in_child(void)
{
    free(held);
    churn();
    early_in_child++;
    pthread_mutex_unlock(&lock);
}

__attribute__((constructor(101))) static void begin(void)
{
    early_block = strdup("made before main");
    churn();
    pthread_atfork(prepare, in_parent, in_child);
}

__attribute__((destructor)) static void end(void)
{
    free(early_block);
    churn();
}
