/* SPDX-License-Identifier: Apache-2.0 */
/* An object of malloc is asked for its size after its reap was destroyed. */
#include "misuse.h"

int main(void)
{
    use_options("bypass=1");
    void *reap = new_reap(), *object = reapMalloc(&reap, 100);
    reapDestroy(&reap);
    expect("reapUsableSize", object, "not a live object");
    return reapUsableSize(opaque(object)) == 0;
}
