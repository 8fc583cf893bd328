/* SPDX-License-Identifier: Apache-2.0 */
/* An object is freed by free() and then by reapFree: seen when the reap takes in what free() was given; at once
 * if it is shared. */
#include "misuse.h"

int main(void)
{
    void *reap = new_reap(), *object = reapMalloc(&reap, 100);
    reapMalloc(&reap, 100);
    free(opaque(object));
    if (is_shared()) expect("reapFree", object, "freed twice");
    reapFree(&reap, object);
    expect("free", object, "freed twice");
    return reapMalloc(&reap, 100000) == NULL;
}
