/* SPDX-License-Identifier: Apache-2.0 */
/* An object is freed after its reap was cleared. */
#include "misuse.h"

int main(void)
{
    void *reap = new_reap(), *object = reapMalloc(&reap, 100);
    reapFreeAll(&reap);
    expect("reapFree", object, "not a live object");
    reapFree(&reap, object);
}
