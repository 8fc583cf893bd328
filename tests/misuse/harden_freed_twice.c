/* SPDX-License-Identifier: Apache-2.0 */
/* An object is freed again after others were allocated. */
#include "misuse.h"

int main(void)
{
    use_options("harden=1");
    void *reap = new_reap(), *object = reapMalloc(&reap, 100);
    reapFree(&reap, object);
    for (int i = 0; i < 1000; i++) reapMalloc(&reap, 100);
    expect_apart("reapFree", object, "freed twice", 100, NONE, reap, "");
    reapFree(&reap, opaque(object));
}
