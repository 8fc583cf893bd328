/* SPDX-License-Identifier: Apache-2.0 */
/* reap_leaks.c: loses a reap, keeps one, clears one and destroys it, and one as it exits; run by
 * reap_leaks.sh and reap_trace.sh. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "reap.h"

static void *kept, *late;

static void destroy_late(void) { reapDestroy(&late); }

static void lose(void)
{
    void *session, *request;
    reapCreate(&session, NULL);
    reapSetName(&session, "session");
    reapMalloc(&session, 1000);
    reapMalloc(&session, 10);
    reapCreate(&request, &session);
    reapSetName(&request, "request");
    reapMalloc(&request, 70);
}

/* Says by which handle it is known. */
static void share(void)
{
    void *shared, *below;
    struct reap_options options = {.size = sizeof options, .flags = REAP_SHARED, .name = "shared"};
    if (reapCreateWith(&shared, NULL, &options) != 0) abort();
    reapCreate(&below, &shared);
    printf("%p\n", shared);
    reapDestroy(&shared);
}

int main(void)
{
    void *gone;
    atexit(destroy_late);
    reapCreate(&kept, NULL);
    char name[4096];
    memset(name, 'k', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    reapSetName(&kept, name); /* lines have the first 100 bytes */
    reapCreate(&late, NULL);
    reapSetName(&late, "late");
    reapCreate(&gone, NULL);
    reapSetName(&gone, "gone");
    reapSetLimit(&gone, 100);
    if (reapMalloc(&gone, 200)) return 1;
    reapFree(&gone, reapMalloc(&gone, 60));
    reapMalloc(&gone, 50);
    reapFreeAll(&gone);
    lose();
    share();
    reapDestroy(&gone);
    close(STDERR_FILENO);
    return 0;
}
