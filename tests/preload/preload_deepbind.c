/* SPDX-License-Identifier: Apache-2.0 */
/* A module opened with RTLD_DEEPBIND shares the malloc of its host; and dlopen still looks where the
 * caller's RUNPATH says, though another library stands between. */
#include "support/expect.h"

#include <dlfcn.h>
#include <malloc.h>

int main(void)
{
    void *module = dlopen("libpreload_early.so", RTLD_NOW | RTLD_DEEPBIND);
    if (module == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    char **early_block = dlsym(module, "early_block");
    EXPECT(early_block && strcmp(*early_block, "made before main") == 0);
    if (early_block) {
        EXPECT(malloc_usable_size(*early_block) >= sizeof "made before main");
        free(*early_block); /* made by the module's malloc, freed by the program's */
        *early_block = strdup("made by the program"); /* and the other way round, at the module's end */
    }
    EXPECT(dlclose(module) == 0);
    EXPECT(dlopen("no such library", RTLD_NOW | RTLD_DEEPBIND) == NULL && dlerror() != NULL);
    return expect_status();
}
