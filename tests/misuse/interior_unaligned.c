/* SPDX-License-Identifier: Apache-2.0 */
/* A pointer one byte into an object is freed. */
#include "misuse.h"

int main(void)
{
    void *reap = new_reap();
    char *object = reapMalloc(&reap, 100);
    expect("reapFree", object + 1, "not the start of an object");
    reapFree(&reap, object + 1);
}
