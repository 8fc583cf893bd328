/* SPDX-License-Identifier: Apache-2.0 */
/* A pointer to nowhere is freed. */
#include "misuse.h"

int main(void)
{
    void *reap = new_reap(), *nowhere = (void *)0xdeadbeefdeadbee0;
    expect("reapFree", nowhere, "not a reap's object");
    reapFree(&reap, nowhere);
}
