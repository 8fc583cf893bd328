/* SPDX-License-Identifier: Apache-2.0 */
/* A variable is given to reapUsableSize. */
#include "misuse.h"

int main(void)
{
    int variable = 0;
    expect("reapUsableSize", &variable, "not a reap's object");
    return (int)reapUsableSize(&variable);
}
