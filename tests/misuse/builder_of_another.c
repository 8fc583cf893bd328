/* SPDX-License-Identifier: Apache-2.0 */
/* A builder's object is in another reap. */
#include "misuse.h"

int main(void)
{
    void *reap = new_reap(), *other = new_reap();
    reap_builder builder = {0};
    reapAppendString(&reap, &builder, "text");
    expect("reapFinish", builder.data, "an object of another reap");
    reapFinish(&other, &builder);
}
