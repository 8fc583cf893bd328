/* SPDX-License-Identifier: Apache-2.0 */
/* An object is resized in another reap than its own, which has a name. */
#include "misuse.h"

int main(void)
{
    void *reap = new_reap(), *other = new_reap(), *object = reapMalloc(&other, 100);
    reapSetName(&other, "request");
    expect("reapRealloc", object, "an object of another reap, request");
    return reapRealloc(&reap, object, 200) == NULL;
}
