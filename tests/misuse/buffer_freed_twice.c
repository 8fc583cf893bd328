/* SPDX-License-Identifier: Apache-2.0 */
/* An object of a reap in a buffer is freed twice. */
#include "misuse.h"

static char buffer[10000];

int main(void)
{
    void *reap;
    struct reap_options options = {.size = sizeof options, .buffer = buffer, .buffer_size = sizeof buffer};
    reapCreateWith(&reap, NULL, &options);
    void *object = reapMalloc(&reap, 100);
    reapMalloc(&reap, 100);
    reapFree(&reap, object);
    expect("reapFree", object, "freed twice");
    reapFree(&reap, object);
}
