/* SPDX-License-Identifier: Apache-2.0 */
/* pools_run.h: the program of a pool: the workloads that it can do, and main. pool_NAME.c includes this at
 * its end (pools.h).
 */
#include "pools_frees.h"
#include "pools_memory.h"
#include "pools_regions.h"
#include "pools_request.h"
#include "pools_trace.h"
#ifndef POOL_TOLD
#include "pools_gcc.h"
#include "pools_lcc.h"
#endif
#ifdef POOL_PLAIN
#include "pools_boxed.h"
#include "pools_parser.h"
#endif

/* clang-format off */
static const struct {
    const char *name;
    uint64_t (*run)(void);
} workloads[] = {
    {"request", request}, {"nested", nested}, {"three", three}, {"fill", fill}, {"clear", clear},
    {"trees", trees}, {"httpd", httpd}, {"idle", idle}, {"hold", hold},
    {"served", served}, {"copied", copied}, {"built", built}, {"marked", marked}, {"waited", waited},
#ifndef POOL_TOLD
    {"gcc", gcc}, {"lcc", lcc},
#endif
#ifdef POOL_PLAIN
    {"parser", parser}, {"boxed", boxed},
#endif
#ifdef POOL_FREES
    {"churn", churn}, {"vectors", vectors}, {"big", big}, {"phases", phases}, {"perl", perl},
    {"resized", resized},
#ifndef POOL_ALONE
    {"fall", fall},
#endif
#endif
#ifdef POOL_LIMITS
    {"limited", limited},
#endif
#ifdef POOL_FREES_ELSEWHERE
    {"messages", messages},
#endif
#ifdef POOL_PASSES
    {"passed", passed},
#endif
#ifdef POOL_SHARES
    {"shared", shared}, {"alone", alone},
#endif
};
/* clang-format on */

int main(int argc, char **argv)
{
    int *argument = &number;
    draw_sizes();
    measure_need(sched_getaffinity(0, sizeof cpus, &cpus) == 0, "which CPUs?");
    for (int i = 2; i < argc; i++) {
        if (strcmp(argv[i], "out") == 0)
            out = true;
        else if (strcmp(argv[i], "short") == 0)
            brief = true;
        else
            *argument = atoi(argv[i]), argument = &number_2;
    }
#ifdef POOL_FEW
    if (out && argc > 1 && strcmp(argv[1], "three") == 0) return 77;
#endif
    pool_begin(&root);
    for (size_t i = 0; argc > 1 && i < sizeof workloads / sizeof *workloads; i++)
        if (strcmp(argv[1], workloads[i].name) == 0) {
            restart_clocks();
            uint64_t operations = workloads[i].run();
            measure_print(measure_now() - started, operations);
            measure_print_named("cpu_ns", (long long)(measure_cpu() - started_cpu));
            add_sum();
            measure_print_named("sum", (long long)(sum % 1000000007));
            print_told();
            return 0;
        }
    return 77; /* this pool has no such workload */
}
