/* SPDX-License-Identifier: Apache-2.0 */
/* A large object, whose chunk is gone, is freed twice. */
#include "misuse.h"

int main(void)
{
    void *reap = new_reap(), *object = reapMalloc(&reap, 100000);
    reapFree(&reap, object);
    expect("reapFree", object, "not a reap's object");
    reapFree(&reap, object);
}
