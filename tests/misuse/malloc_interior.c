/* SPDX-License-Identifier: Apache-2.0 */
/* A pointer into an object is given to free(). */
#include "misuse.h"

int main(void)
{
    void *reap = new_reap();
    char *object = reapMalloc(&reap, 100);
    expect("free", object + 16, "not the start of an object");
    free(opaque(object + 16));
}
