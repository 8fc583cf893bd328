/* SPDX-License-Identifier: Apache-2.0 */
/* A builder's object has gone with a clear when it is to grow. */
#include "misuse.h"

int main(void)
{
    void *reap = new_reap();
    reap_builder builder = {0};
    reapAppendString(&reap, &builder, "text");
    reapFreeAll(&reap);
    expect("reapExtend", builder.data, "not a live object");
    reapExtend(&reap, &builder, 1000);
}
