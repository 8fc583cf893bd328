/* SPDX-License-Identifier: Apache-2.0 */
/* An object that was freed is moved. */
#include "misuse.h"

int main(void)
{
    void *reap = new_reap(), *other = new_reap(), *object = reapMalloc(&reap, 100);
    reapMalloc(&reap, 100);
    reapFree(&reap, object);
    expect("reapMove", object, "not a live object");
    reapMove(object, &reap, &other);
}
