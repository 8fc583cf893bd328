/* SPDX-License-Identifier: Apache-2.0 */
/* A pointer into an object of a shared reap is resized. */
#include "misuse.h"

int main(void)
{
    void *reap = new_shared_reap();
    char *object = reapMalloc(&reap, 100);
    expect("reapRealloc", object + 16, "not the start of an object");
    return reapRealloc(&reap, opaque(object + 16), 200) == NULL;
}
