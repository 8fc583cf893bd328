/* SPDX-License-Identifier: Apache-2.0 */
/* The same, in a chunk that the clear kept for later. */
#include "misuse.h"

int main(void)
{
    void *reap = new_reap(), *object = NULL;
    for (int i = 0; i < 200; i++) object = reapMalloc(&reap, 100);
    reapFreeAll(&reap);
    expect("reapFree", object, "not a live object");
    reapFree(&reap, object);
}
