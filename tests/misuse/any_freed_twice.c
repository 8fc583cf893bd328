/* SPDX-License-Identifier: Apache-2.0 */
/* An object is freed twice, by whatever reap it is of. */
#include "misuse.h"

int main(void)
{
    void *reap = new_reap(), *object = reapMalloc(&reap, 100);
    reapFreeAny(object);
    expect("reapFreeAny", object, "freed twice");
    reapFreeAny(object);
}
