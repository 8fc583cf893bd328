/* SPDX-License-Identifier: Apache-2.0 */
/* An object is moved out of a reap that it is not in. */
#include "misuse.h"

int main(void)
{
    void *reap = new_reap(), *other = new_reap(), *object = reapMalloc(&reap, 100);
    expect("reapMove", object, "an object of another reap");
    reapMove(object, &other, &reap);
}
