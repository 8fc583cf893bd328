/* SPDX-License-Identifier: Apache-2.0 */
/* sandbox.c: plug-ins that know nothing of reaps, each call of one in a reap with a limit.
 *
 *     for p in good leaking greedy; do cc -shared -fPIC -o plugin_$p.so plugin_$p.c; done
 *     cc -o sandbox sandbox.c $(pkg-config --cflags --libs reap-malloc)
 *     ./sandbox ./plugin_good.so ./plugin_leaking.so ./plugin_greedy.so
 *
 * Linked to libreap-malloc: between reapEnter and reapLeave this thread's malloc, whoever calls it, comes
 * from the reap, and beyond the limit it is NULL with ENOMEM. Whatever the plug-in leaves behind goes with
 * the reap. It is no fence against a plug-in that means harm: that one can write anywhere, and needs a
 * process.
 */
#include <dlfcn.h>
#include <errno.h>
#include <hoard.h>
#include <reap.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugin.h"

enum { LIMIT = 1 << 20, MORE = 1000 };

struct outcome {
    char *answer; /* in the host's reap; or NULL, and error says why */
    int error;
    size_t refused;    /* bytes asked for when the limit was met last; else 0 */
    size_t left_bytes; /* that the plug-in did not free */
};

/* A host could make room here, by freeing a cache in this reap; or take note. */
static void on_limit(void **reap, size_t size, void *arg)
{
    struct outcome *outcome = arg;
    (void)reap;
    outcome->refused = size;
}

/* One call, in a reap of its own. */
static struct outcome call(void **host, char *(*function)(const char *), const char *input)
{
    void *sandbox;
    struct outcome outcome = {.error = ENOMEM};
    struct reap_options options = {.size = sizeof options, .limit = LIMIT, .name = "sandbox"};
    if (reapCreateWith(&sandbox, NULL, &options) != 0) return outcome;
    reapOnLimit(&sandbox, on_limit, &outcome);

    reapEnter(&sandbox);
    char *text = function(input);
    outcome.error = errno;
    reapLeave();

    if (text) { /* the host keeps a copy: text itself would go with the sandbox */
        outcome.answer = reapStrdup(host, text);
        outcome.error = outcome.answer ? 0 : ENOMEM;
        free(text); /* any thread may: it goes to the reap that it is from */
    }
    struct reap_stats stats;
    reapStats(&sandbox, &stats);
    outcome.left_bytes = stats.live_bytes;
    reapDestroy(&sandbox);
    return outcome;
}

/* Of the whole process, reaps included. */
static size_t live_bytes(void)
{
    struct hoard_stats stats;
    return hoard_stats(&stats) == 0 ? stats.live_bytes : 0;
}

static void try_plugin(void **host, char *(*function)(const char *), const char *name)
{
    struct outcome first = call(host, function, "a plug-in at work");
    printf("%s: %s; left %zu bytes, was refused %zu\n", name,
           first.answer ? first.answer : strerror(first.error), first.left_bytes, first.refused);
    size_t before = live_bytes();
    for (int i = 0; i < MORE; i++) reapFree(host, call(host, function, "again").answer);
    printf("%s: %d calls more have cost the process %zd bytes\n", name, MORE,
           (ssize_t)(live_bytes() - before));
}

int main(int argc, char **argv)
{
    void *host;
    int status = EXIT_SUCCESS;
    reapCreate(&host, NULL);
    if (!host) return perror("reapCreate"), EXIT_FAILURE;
    for (int i = 1; i < argc; i++) {
        /* Outside of any sandbox: what the loader and a library's constructors allocate has to stay. */
        void *library = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
        char *(*function)(const char *) = NULL;
        if (library) *(void **)&function = dlsym(library, "plugin");
        if (function)
            try_plugin(&host, function, argv[i]);
        else
            status = (fprintf(stderr, "%s\n", dlerror()), EXIT_FAILURE);
        if (library) dlclose(library);
    }
    reapDestroy(&host);
    return status;
}
