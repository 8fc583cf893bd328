/* SPDX-License-Identifier: Apache-2.0 */
/* The smallest program that uses stdio: says that it is ready, and waits until its input ends (small.py). */
#include <stdio.h>

int main(void)
{
    puts("ready");
    fflush(stdout);
    return getchar() == EOF ? 0 : 1;
}
