/* SPDX-License-Identifier: Apache-2.0 */
/* An object of a shared reap is freed in another one. */
#include "misuse.h"

int main(void)
{
    void *reap = new_shared_reap(), *other = new_shared_reap(), *object = reapMalloc(&other, 100);
    expect("reapFree", object, "an object of another reap");
    reapFree(&reap, object);
}
