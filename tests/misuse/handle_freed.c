/* SPDX-License-Identifier: Apache-2.0 */
/* A reap is freed as if it were an object. */
#include "misuse.h"

int main(void)
{
    void *reap = new_reap();
    expect("reapFree", reap, "not the start of an object");
    reapFree(&reap, reap);
}
