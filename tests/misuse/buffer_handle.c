/* SPDX-License-Identifier: Apache-2.0 */
/* A reap in a buffer is used after it was destroyed. */
#include "misuse.h"

static char buffer[10000];

int main(void)
{
    void *reap, *copy;
    struct reap_options options = {.size = sizeof options, .buffer = buffer, .buffer_size = sizeof buffer};
    reapCreateWith(&reap, NULL, &options);
    copy = reap;
    reapDestroy(&reap);
    expect("reapMalloc", copy, "not a live reap");
    reapMalloc(&copy, 100);
}
