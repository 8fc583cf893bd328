/* SPDX-License-Identifier: Apache-2.0 */
/* An object of malloc is freed twice. */
#include "misuse.h"

int main(void)
{
    use_options("bypass=1");
    void *reap = new_reap(), *object = reapMalloc(&reap, 100);
    reapFree(&reap, object);
    expect("reapFree", object, "freed twice");
    reapFree(&reap, opaque(object));
}
