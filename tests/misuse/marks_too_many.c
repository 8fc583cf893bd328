/* SPDX-License-Identifier: Apache-2.0 */
/* A reap has 65535 open marks, and gets another one. */
#include "misuse.h"

int main(void)
{
    void *reap = new_reap();
    reap_mark mark;
    for (int i = 0; i < 65535; i++) reapMark(&reap, &mark);
    expect("reapMark", reap, "65535 marks are open already");
    reapMark(&reap, &mark);
}
