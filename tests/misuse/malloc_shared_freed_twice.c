/* SPDX-License-Identifier: Apache-2.0 */
/* An object of a shared reap is freed twice by free(). */
#include "misuse.h"

int main(void)
{
    void *reap = new_shared_reap(), *object = reapMalloc(&reap, 100), *volatile hidden = object;
    reapMalloc(&reap, 100);
    free(hidden);
    expect("free", object, "freed twice");
    free(hidden);
}
