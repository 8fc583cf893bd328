/* SPDX-License-Identifier: Apache-2.0 */
/* A builder has no zeros to begin with. */
#include "misuse.h"

int main(void)
{
    void *reap = new_reap();
    reap_builder builder = {.data = (char *)&builder, .length = 80, .room = 80};
    expect("reapAppendString", &builder, "not a builder");
    reapAppendString(&reap, &builder, "text");
}
