/* SPDX-License-Identifier: Apache-2.0 */
/* A freed object is measured. */
#include "misuse.h"

int main(void)
{
    void *reap = new_reap(), *object = reapMalloc(&reap, 100);
    reapMalloc(&reap, 100);
    reapFree(&reap, object);
    expect("reapUsableSize", object, "not a live object");
    return (int)reapUsableSize(object);
}
