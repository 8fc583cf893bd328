/* SPDX-License-Identifier: Apache-2.0 */
/* A reap's name, which is no object, is freed. */
#include "misuse.h"

int main(void)
{
    void *reap = new_reap();
    reapSetName(&reap, "request");
    expect("reapFree", reapName(&reap), "not the start of an object");
    reapFree(&reap, (void *)reapName(&reap));
}
