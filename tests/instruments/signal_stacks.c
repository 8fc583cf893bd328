/* SPDX-License-Identifier: Apache-2.0 */
/* Signals amid malloc and free: do libgcc's unwinder and glibc's backtrace() find main from each of them?
 * 1,000 times by SIGPROF; by SIGUSR1 with the argument `gdb`, where signal_stacks.sh has gdb stop and send
 * it. */
#include "hoard.h"

#include <execinfo.h>
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
#include <unwind.h>

static volatile unsigned walks, lost;
int main(int argc, char **argv);

static unsigned is_main(void *at) { return _Unwind_FindEnclosingFunction(at) == (void *)main; }

static _Unwind_Reason_Code look(struct _Unwind_Context *context, void *found)
{
    *(unsigned *)found += is_main((void *)_Unwind_GetIP(context));
    return _URC_NO_REASON;
}

static void walk(int signal)
{
    void *frames[40];
    unsigned by_libgcc = 0, by_glibc = 0;
    _Unwind_Backtrace(look, &by_libgcc);
    for (int n = backtrace(frames, 40); n > 0; n--) by_glibc += is_main((char *)frames[n - 1] - 1);
    lost += by_libgcc != 1 || by_glibc != 1;
    walks++;
    (void)signal;
}

int main(int argc, char **argv)
{
    void *blocks[30];
    backtrace(blocks, 1);
    signal(SIGPROF, walk);
    signal(SIGUSR1, walk);
    setitimer(ITIMER_PROF, &(struct itimerval){{0, argc == 1 ? 1000 : 0}, {0, 1000}}, NULL);
    for (unsigned idle = 0, seen = 0; argc == 1 ? walks < 1000 : idle < 1000; seen = walks) {
        idle = walks == seen ? idle + 1 : 0;
        size_t size = 16 + idle % 7 * 500;
        for (unsigned i = 0; i < 30; i++) blocks[i] = hoard_malloc(size);
        for (unsigned i = 0; i < 30; i++) hoard_free(blocks[i]);
    }
    printf("%u of %u lost\n", lost, walks);
    return lost != 0 || (argv[1] != NULL && walks < 100);
}
