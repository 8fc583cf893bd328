/* SPDX-License-Identifier: Apache-2.0 */
/* A reap is entered again while another one is the innermost. */
#include "misuse.h"

int main(void)
{
    void *reap = new_ordinary_reap(), *other = new_ordinary_reap();
    reapEnter(&reap);
    reapEnter(&other);
    expect("reapEnter", reap, "reap is entered, and not the innermost");
    reapEnter(&reap);
}
