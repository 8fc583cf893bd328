/* SPDX-License-Identifier: Apache-2.0 */
/* An object is measured after its reap was destroyed. */
#include "misuse.h"

int main(void)
{
    void *reap = new_reap(), *object = reapMalloc(&reap, 100);
    reapDestroy(&reap);
    expect("reapUsableSize", object, "not a live object");
    return (int)reapUsableSize(object);
}
