/* SPDX-License-Identifier: Apache-2.0 */
/* An object is freed again after its chunk was given back. */
#include "misuse.h"

int main(void)
{
    void *reap = new_reap(), *objects[200];
    for (int i = 0; i < 200; i++) objects[i] = reapMalloc(&reap, 100);
    for (int i = 0; i < 200; i++) reapFree(&reap, objects[i]);
    expect("reapFree", objects[190], "freed twice");
    reapFree(&reap, objects[190]);
}
