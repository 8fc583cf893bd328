/* SPDX-License-Identifier: Apache-2.0 */
/* A block of malloc is used as a handle. */
#include "misuse.h"

int main(void)
{
    void *block = calloc(1, 1000);
    expect("reapFreeAll", block, "not a live reap");
    reapFreeAll(&block);
}
