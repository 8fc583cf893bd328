/* SPDX-License-Identifier: Apache-2.0 */
/* An object is freed in another reap than its own. */
#include "misuse.h"

int main(void)
{
    void *reap = new_reap(), *other = new_reap(), *object = reapMalloc(&other, 100);
    expect("reapFree", object, "an object of another reap");
    reapFree(&reap, object);
}
