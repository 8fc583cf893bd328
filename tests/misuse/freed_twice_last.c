/* SPDX-License-Identifier: Apache-2.0 */
/* The last object, whose memory goes back to the bump pointer, is freed twice. */
#include "misuse.h"

int main(void)
{
    void *reap = new_reap(), *object = reapMalloc(&reap, 100);
    reapFree(&reap, object);
    expect("reapFree", object, "freed twice");
    reapFree(&reap, object);
}
