/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that is in a shared reap enters another one. */
#include "misuse.h"

int main(void)
{
    void *reap = new_shared_reap(), *other = new_shared_reap();
    reapEnter(&reap);
    reapEnter(&reap);
    expect("reapEnter", other, "a shared reap is entered, and not this one innermost");
    reapEnter(&other);
}
