/* SPDX-License-Identifier: Apache-2.0 */
/* An object is freed twice. */
#include "misuse.h"

int main(void)
{
    void *reap = new_reap(), *object = reapMalloc(&reap, 100);
    reapMalloc(&reap, 100);
    reapFree(&reap, object);
    expect("reapFree", object, "freed twice");
    reapFree(&reap, object);
}
