/* SPDX-License-Identifier: Apache-2.0 */
/* A source gives memory that is not aligned to 4096. */
#include "misuse.h"

static char memory[16384];

static void *take(size_t size, void *arg)
{
    char *chunk = memory + (4096 - (unsigned long)memory % 4096) + 16;
    (void)size, (void)arg;
    expect("reapCreateWith", chunk, "the source's memory is not aligned to 4096");
    return chunk;
}

static void give(void *chunk, size_t size, void *arg) { (void)chunk, (void)size, (void)arg; }

int main(void)
{
    void *reap;
    struct reap_options options = {.size = sizeof options, .source = {take, give, NULL}};
    reapCreateWith(&reap, NULL, &options);
}
