/* SPDX-License-Identifier: Apache-2.0 */
/* An object of a shared reap is freed twice. */
#include "misuse.h"

int main(void)
{
    void *reap = new_shared_reap(), *object = reapMalloc(&reap, 100);
    reapFree(&reap, object);
    expect("reapFree", object, "freed twice");
    reapFree(&reap, opaque(object));
}
