/* SPDX-License-Identifier: Apache-2.0 */
/* dlopen of libreap after other libraries have used up the static TLS that ld.so keeps in reserve: it is
 * refused with one clear error, and the program goes on; while there is room, it is opened and works.
 *
 *     dlopen_late LIBREAP FILLER...      each filler takes static TLS; none: there is room / */
#include "support/expect.h"

#include <dlfcn.h>

/* The fillers that could be opened; the first refusal's words to *why. */
static int fill(char **files, char *why, size_t size)
{
    int opened = 0;
    for (; *files; files++) {
        if (dlopen(*files, RTLD_NOW))
            opened++;
        else if (!*why)
            strncat(why, dlerror(), size - 1);
    }
    return opened;
}

static void use(void *library)
{
    void *(*hoard_malloc)(size_t) = (void *(*)(size_t))dlsym(library, "hoard_malloc");
    void (*hoard_free)(void *) = (void (*)(void *))dlsym(library, "hoard_free");
    EXPECT(hoard_malloc && hoard_free);
    if (!hoard_malloc || !hoard_free) return;
    char *block = hoard_malloc(100);
    EXPECT(block && memset(block, 1, 100));
    hoard_free(block);
}

int main(int argc, char **argv)
{
    if (argc < 2) return 99;
    char why[512] = "";
    int fillers = argc - 2, opened = fill(argv + 2, why, sizeof why);
    void *library = dlopen(argv[1], RTLD_NOW);
    if (fillers == 0) {
        EXPECT(library != NULL);
        if (library) use(library);
        return expect_status();
    }
    const char *error = library ? NULL : dlerror();
    printf("%d of %d fillers, then: %s\n", opened, fillers, error ? error : "opened");
    EXPECT(opened > 0 && opened < fillers && strstr(why, "static TLS"));
    EXPECT(!library && error && strstr(error, "static TLS") && strstr(error, "libreap"));
    EXPECT(dlerror() == NULL); /* one error */
    void *block = malloc(OPAQUE((size_t)1000));
    EXPECT(block && dlopen(NULL, RTLD_NOW)); /* the program goes on */
    free(block);
    return expect_status();
}
