/* SPDX-License-Identifier: Apache-2.0 */
/* A freed object is given to realloc(). */
#include "misuse.h"

int main(void)
{
    void *reap = new_reap(), *object = reapMalloc(&reap, 100);
    reapFree(&reap, object);
    expect("realloc", object, "not a live object");
    return realloc(opaque(object), 200) == NULL;
}
