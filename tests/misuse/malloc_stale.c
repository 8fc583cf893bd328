/* SPDX-License-Identifier: Apache-2.0 */
/* An object of a destroyed reap is given to free(). */
#include "misuse.h"

int main(void)
{
    void *reap = new_reap(), *object = reapMalloc(&reap, 100);
    expect("free", object, "not a live object"); /* printf may use the memory anew */
    reapDestroy(&reap);
    free(opaque(object));
}
