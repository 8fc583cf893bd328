/* SPDX-License-Identifier: Apache-2.0 */
/* What the tables of misuse share: see misuse.h. */
#include "misuse.h"

void *reap, *other, *at;
char *object;

void *new_shared_reap(void)
{
    void *made;
    struct reap_options options = {.size = sizeof options, .flags = REAP_SHARED};
    return reapCreateWith(&made, NULL, &options) == 0 ? made : NULL;
}

void *new_reap(void)
{
    void *made;
    if (getenv("MISUSE_SHARED") != NULL) return new_shared_reap();
    reapCreate(&made, NULL);
    return made;
}

void prepare_object(void) { at = object = reapMalloc(&reap, 100); }

void prepare_freed(void)
{
    prepare_object();
    reapMalloc(&reap, 100);
    reapFree(&reap, object);
}

void prepare_cleared(void)
{
    prepare_object();
    reapFreeAll(&reap);
}

void prepare_destroyed(void)
{
    prepare_object();
    reapDestroy(&reap);
}

void prepare_interior(void)
{
    prepare_object();
    at = object + 16;
}

void expect(const char *call, const void *pointer, const char *what)
{
    printf("reap: %s(0x%lx): %s\n", call, (unsigned long)pointer, what);
    fflush(stdout);
}

static void expect_apart(const struct misuse *is, const void *owner)
{
    printf("reap: %s(0x%lx): %s; object of %u bytes", is->call, (unsigned long)at, is->what, is->apart.size);
    if (is->apart.offset != NONE) printf(", first changed byte at offset %d", is->apart.offset);
    printf(", reap 0x%lx%s%s\n", (unsigned long)owner, is->apart.owner ? " " : "",
           is->apart.owner ? is->apart.owner : "");
    fflush(stdout);
}

static int list(const struct misuse *cases, size_t count)
{
    for (size_t i = 0; i < count; i++)
        printf("%s%s%s%s\n", cases[i].name, cases[i].reaps & ORDINARY ? " ordinary" : "",
               cases[i].reaps & SHARED ? " shared" : "", cases[i].reaps & PARTS ? " parts" : "");
    return 0;
}

static void try_case(const struct misuse *is)
{
    const char *options = getenv("REAP_OPTIONS");
    char all[200];
    snprintf(all, sizeof all, "%s%s%s", options ? options : "", options && is->options ? "," : "",
             is->options ? is->options : "");
    if (*all) setenv("REAP_OPTIONS", all, 1); /* before the first call of the library, which reads them */
    reap = new_reap();
    is->prepare();
    if (!is->apart.is_apart)
        expect(is->call, at, is->what);
    else
        expect_apart(is, other ? other : reap);
    is->mistake();
}

int misuse_main(int argc, char **argv, const struct misuse *cases, size_t count)
{
    static char room[BUFSIZ]; /* printf may take no memory that a case has just freed */
    setvbuf(stdout, room, _IOFBF, sizeof room);
    if (argc == 2 && strcmp(argv[1], "--list") == 0) return list(cases, count);
    if (argc == 2 && strcmp(argv[1], "--messages") == 0) {
        for (size_t i = 0; i < count; i++) puts(cases[i].what);
        return 0;
    }
    for (size_t i = 0; i < count; i++)
        if (argc == 2 && strcmp(argv[1], cases[i].name) == 0) {
            try_case(&cases[i]);
            return 0;
        }
    fputs("there is no such case\n", stderr);
    return 99;
}
