/* SPDX-License-Identifier: Apache-2.0 */
/* A freed object is resized. */
#include "misuse.h"

int main(void)
{
    void *reap = new_reap(), *object = reapMalloc(&reap, 100);
    reapFree(&reap, object);
    expect("reapRealloc", object, "not a live object");
    return reapRealloc(&reap, object, 200) == NULL;
}
