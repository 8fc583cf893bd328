/* SPDX-License-Identifier: Apache-2.0 */
/* A pointer into a large object is resized. */
#include "misuse.h"

int main(void)
{
    void *reap = new_reap();
    char *object = reapMalloc(&reap, 100000);
    expect("reapRealloc", object + 65536, "not the start of an object");
    return reapRealloc(&reap, object + 65536, 10) == NULL;
}
