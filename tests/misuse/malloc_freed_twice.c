/* SPDX-License-Identifier: Apache-2.0 */
/* An object is freed twice by free(). */
#include "misuse.h"

int main(void)
{
    void *reap = new_reap(), *object = reapMalloc(&reap, 100);
    free(opaque(object));
    expect("free", object, "freed twice");
    free(opaque(object));
}
