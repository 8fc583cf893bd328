/* SPDX-License-Identifier: Apache-2.0 */
/* A source gives memory that a reap has already. */
#include "misuse.h"

static _Alignas(4096) char memory[16384];

static void *take(size_t size, void *arg)
{
    (void)size, (void)arg;
    return memory;
}

static void give(void *chunk, size_t size, void *arg) { (void)chunk, (void)size, (void)arg; }

int main(void)
{
    void *reap;
    struct reap_options options = {.size = sizeof options, .source = {take, give, NULL}};
    reapCreateWith(&reap, NULL, &options);
    expect("reapCreateWith", memory, "the source's memory is a reap's already");
    while (reapMalloc(&reap, 1000)) continue;
}
