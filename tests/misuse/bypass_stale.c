/* SPDX-License-Identifier: Apache-2.0 */
/* An object of malloc is resized after its reap was cleared. */
#include "misuse.h"

int main(void)
{
    use_options("bypass=1");
    void *reap = new_reap(), *object = reapMalloc(&reap, 100);
    reapFreeAll(&reap);
    expect("reapRealloc", object, "not a live object");
    return reapRealloc(&reap, opaque(object), 200) == NULL;
}
