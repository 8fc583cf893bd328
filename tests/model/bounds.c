/* SPDX-License-Identifier: Apache-2.0 */
/* bounds.c: what the loads of loads.h cost and hold with 2, 4 ... 256 processors, as a table; and in a file,
 * if one is named, for a picture (bounds.gp). Each row is a process of its own. A number behind the file is
 * that of the most processors. */
#include "arena/arena.h"
#include "bound.h"
#include "loads.h"
#include "vcpu.h"
#include "watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BYTES = 8 * MIB };

struct result {
    bool there; /* false: there is no such path here */
    double live, held, bound, visits, locks, atomics;
    struct ledger ledger;
};

static struct result run(const struct load *load, enum vcpu_path path, unsigned processors)
{
    struct result result = {.there = vcpu_start(path, load->options)};
    if (!result.there) return result;
    size_t bytes = load_bytes(load, processors, BYTES);
    watch_start();
    vcpu_be(0);
    if (load->prepare != NULL) load->prepare(processors, bytes);
    double operations = (double)(ledger.mallocs + ledger.frees);
    struct watched before = watched;
    load->run(processors, bytes);
    struct watched after = watched;
    operations = (double)(ledger.mallocs + ledger.frees) - operations;
    result.live = (double)ledger.live_max / MIB;
    result.held = (double)arena_held().peak / MIB;
    result.bound = bound_of(load->classes, 1, load->share, processors, ledger.live_max) / MIB;
    result.visits = 1000 * (double)(after.global_locks - before.global_locks) / operations;
    result.locks = (double)(after.locks - before.locks) / operations;
    result.atomics = (double)(after.atomics - before.atomics) / operations;
    result.ledger = ledger;
    return result;
}

/* Options are read once in a process. */
static struct result run_apart(const struct load *load, enum vcpu_path path, unsigned processors)
{
    struct result *result =
        mmap(NULL, sizeof *result, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int status = -1;
    if (result == MAP_FAILED) abort();
    pid_t pid = fork();
    if (pid == 0) {
        *result = run(load, path, processors);
        _exit(0);
    }
    waitpid(pid, &status, 0);
    if (status != 0) {
        fprintf(stderr, "bounds: %s on the %s path with %u processors failed\n", load->name,
                vcpu_path_names[path], processors);
        exit(EXIT_FAILURE);
    }
    struct result copy = *result;
    munmap(result, sizeof *result);
    return copy;
}

static void print_head(const struct load *load)
{
    printf("\n%s: %s\n", load->name, load->what);
    printf(
        "                 live     held  bound |   visits   locks atomics | false  carried   handed\n"
        "                 MiB      MiB    MiB  | in 1000       an operation | lines   lines  superblocks\n");
}

static void print_row(enum vcpu_path path, unsigned processors, const struct result *r)
{
    printf("%4u %-6s %9.2f %8.2f %6.0f | %8.3f %7.4f %7.4f | %5llu %8llu %8llu\n", processors,
           vcpu_path_names[path], r->live, r->held, r->bound, r->visits, r->locks, r->atomics,
           (unsigned long long)(r->ledger.active + r->ledger.passive), (unsigned long long)r->ledger.carried,
           (unsigned long long)r->ledger.in_used);
}

static void write_row(FILE *out, const struct load *load, enum vcpu_path path, unsigned processors,
                      const struct result *r)
{
    fprintf(out, "%s %s %u %g %g %g %g %g %g %llu %llu %llu %llu\n", load->name, vcpu_path_names[path],
            processors, r->live, r->held, r->bound, r->visits, r->locks, r->atomics,
            (unsigned long long)r->ledger.active, (unsigned long long)r->ledger.passive,
            (unsigned long long)r->ledger.carried, (unsigned long long)r->ledger.in_used);
}

static void show(const struct load *load, unsigned most, FILE *out)
{
    print_head(load);
    for (enum vcpu_path path = 0; path < VCPU_PATHS; path++)
        for (unsigned processors = 2; processors <= most; processors *= 2) {
            struct result result = run_apart(load, path, processors);
            if (!result.there) break;
            print_row(path, processors, &result);
            if (out != NULL) write_row(out, load, path, processors, &result);
            fflush(stdout);
        }
}

int main(int argc, char **argv)
{
    FILE *out = argc > 1 ? fopen(argv[1], "we") : NULL;
    if (argc > 1 && out == NULL) {
        perror(argv[1]);
        return EXIT_FAILURE;
    }
    unsigned most = argc > 2 ? (unsigned)atoi(argv[2]) : VCPU_MAX;
    if (out != NULL)
        fprintf(out, "load path processors live_MiB held_MiB bound_MiB visits_per_1000 locks atomics active "
                     "passive carried handed\n");
    for (const struct load *const *load = loads; *load != NULL; load++) show(*load, most, out);
    return out != NULL && fclose(out) != 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
