/* SPDX-License-Identifier: Apache-2.0 */
/* An object is freed again after it became part of a bigger free block. */
#include "misuse.h"

int main(void)
{
    void *reap = new_reap(), *first = reapMalloc(&reap, 100), *second = reapMalloc(&reap, 100);
    reapMalloc(&reap, 100);
    reapFree(&reap, first);
    reapFree(&reap, second);
    void *both = reapMalloc(&reap, 200);
    reapFree(&reap, both);
    expect("reapFree", second, "freed twice");
    reapFree(&reap, second);
}
