/* SPDX-License-Identifier: Apache-2.0 */
/* A large object is written to past its end, and asked for its size. */
#include "misuse.h"

int main(void)
{
    use_options("redzone=16");
    void *reap = new_reap();
    char *object = reapMalloc(&reap, 100000);
    memset((char *)opaque(object) + 100015, 0, 1);
    expect_apart("reapUsableSize", object, "memory around it was written to", 100000, 100015, reap, "");
    return reapUsableSize(object) == 0;
}
