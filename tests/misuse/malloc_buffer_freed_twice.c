/* SPDX-License-Identifier: Apache-2.0 */
/* An object of a reap in a block of malloc's is freed twice by free(). */
#include "misuse.h"

int main(void)
{
    void *reap;
    struct reap_options options = {.size = sizeof options, .buffer = malloc(20000), .buffer_size = 20000};
    reapCreateWith(&reap, NULL, &options);
    void *object = reapMalloc(&reap, 100);
    free(opaque(object));
    expect("free", object, "freed twice");
    free(opaque(object));
}
