/* SPDX-License-Identifier: Apache-2.0 */
/* reap_leaks.c: loses a reap, keeps one, clears one and destroys it, and one as it exits; run by
 * reap_leaks.sh. Arguments make it a server, which
 * leaves its standard error; without any it closes it in a function of atexit, as many programs do. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "reap.h"

static void *kept, *late;

static void destroy_late(void) { reapDestroy(&late); }

static void close_stderr(void) { close(STDERR_FILENO); }

static void redirect(int fd)
{
    int null = open("/dev/null", O_RDWR);
    if (null < 0 || dup2(null, fd) != fd) abort();
    close(null);
}

/* A server: it leaves what its starter reads, and goes on until it is killed by the number in this file. */
static void serve(const char *how, const char *name)
{
    if (strcmp(how, "daemon") == 0 && daemon(1, 0) != 0) abort();
    if (strcmp(how, "redirect") == 0) {
        redirect(STDOUT_FILENO);
        redirect(STDERR_FILENO);
    }
    if (strcmp(how, "close") == 0) {
        close(STDOUT_FILENO);
        close(STDERR_FILENO);
    }
    FILE *file = fopen(name, "w");
    if (!file || fprintf(file, "%d\n", (int)getpid()) < 0 || fclose(file) != 0) abort();
    sleep(60);
}

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

int main(int count, char **arguments)
{
    void *gone;
    atexit(destroy_late);
    reapCreate(&kept, NULL);
    if (count == 1) atexit(close_stderr);
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
    if (count > 2) serve(arguments[1], arguments[2]);
    return 0;
}
