#!/usr/bin/env python3
"""Runs the benchmarks in interleaved rounds and prints medians, minima and ratios as tables."""
import argparse
import csv
import os
import statistics
import subprocess
import sys
import tempfile

CPUS = len(os.sched_getaffinity(0))
MALLOC_WORKLOADS = [["pairs"], ["batch"], ["sizes"], ["threadtest", "1"], ["threadtest", str(2 * CPUS)],
                    ["larson", str(2 * CPUS)]]
POOL_WORKLOADS = [["request"], ["nested"], ["three"], ["fill"], ["clear"], ["trees"], ["churn"],
                  ["vectors"], ["messages"], ["big"], ["phases"]]
POOLS = ["reap", "apr", "talloc", "obstack", "mimalloc", "malloc"]
OTHERS = {"jemalloc": "libjemalloc.so.2", "mimalloc": "libmimalloc.so.2", "tcmalloc": "libtcmalloc_minimal.so.4"}


class Contestant:
    """A malloc to preload or a pool's program: how to start it, and what it did."""

    def __init__(self, name, program, preload="", options=""):
        self.name, self.program, self.preload, self.options = name, program, preload, options
        self.times, self.peaks = {}, {}


def installed_libraries():
    listing = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True).stdout
    return {line.split()[0]: line.split()[-1] for line in listing.splitlines() if " => " in line}


def mallocs(build, paths):
    program, ours = build + "/bench/mallocs", build + "/.libs/libreap-malloc.so"
    found = installed_libraries()
    yield Contestant("reap", program, ours)
    if paths:
        yield Contestant("reap cpu", program, ours, "heaps=cpu")
        yield Contestant("reap locked", program, ours, "path=locked")
    yield Contestant("glibc", program)
    for name, library in OTHERS.items():
        if library in found:
            yield Contestant(name, program, found[library])
        else:
            print(f"no {library}: {name} is left out")


def pools(build):
    for name in POOLS:
        program = f"{build}/bench/pool_{name}"
        if os.path.exists(program):
            yield Contestant(name, program)
        if name == "apr" and os.path.exists(f"{build}/.libs/libreap-apr.so"):
            libraries = [f"{build}/.libs/{library}" for library in ("libreap.so.0", "libreap-apr.so")]
            yield Contestant("apr on reaps", program, ":".join(libraries))


def run_once(build, contestant, workload):
    """Nanoseconds per operation and peak RSS in KiB; None where a pool has no such workload."""
    environment = {"PATH": os.environ["PATH"], "LC_ALL": "C", "REAP_OPTIONS": contestant.options}
    with tempfile.NamedTemporaryFile("r") as result:
        launched = subprocess.run([build + "/bench/launch", result.name, contestant.preload, contestant.program]
                                  + workload, env=environment, stdout=subprocess.PIPE, text=True)
        if launched.returncode == 77:
            return None
        if launched.returncode:
            sys.exit(f"{contestant.name} {' '.join(workload)} ended with status {launched.returncode}")
        nanoseconds, operations = map(int, result.read().split())
    return nanoseconds / operations, int(launched.stdout)


def measure(build, contestants, workloads, rounds, rows):
    """Each round runs every contestant on every workload once, starting one further along each time."""
    total, done = rounds * len(workloads) * len(contestants), 0
    for number in range(rounds):
        for workload in workloads:
            label = " ".join(workload)
            turn = number % len(contestants)
            for contestant in contestants[turn:] + contestants[:turn]:
                done += 1
                sys.stderr.write(f"\r{done:4}/{total}  round {number + 1}  {label} on {contestant.name}\033[K")
                sys.stderr.flush()
                answer = run_once(build, contestant, workload)
                if answer:
                    contestant.times.setdefault(label, []).append(answer[0])
                    contestant.peaks.setdefault(label, []).append(answer[1])
                    rows.append([label, contestant.name, number + 1, f"{answer[0]:.3f}", answer[1]])
    sys.stderr.write("\r\033[K")


def print_table(title, contestants, workloads, cell):
    widths = [max(14, len(c.name) + 2) for c in contestants]
    print(f"\n{title}")
    print(" " * 16 + "".join(c.name.rjust(w) for c, w in zip(contestants, widths)))
    for workload in workloads:
        label = " ".join(workload)
        cells = [cell(c, label) if label in c.times else "-" for c in contestants]
        print(label.ljust(16) + "".join(text.rjust(w) for text, w in zip(cells, widths)))


def report(title, contestants, workloads):
    ours = contestants[0]

    def ratio(c, label):
        """Round by round, so that what slows the machine for a while slows both; and of the minima."""
        rounds = statistics.median(a / b for a, b in zip(c.times[label], ours.times[label]))
        return f"{rounds:.2f} ({min(c.times[label]) / min(ours.times[label]):.2f})"

    print_table(f"{title}: ns per operation, median", contestants, workloads,
                lambda c, label: f"{statistics.median(c.times[label]):.1f}")
    print_table("  the same, minimum", contestants, workloads, lambda c, label: f"{min(c.times[label]):.1f}")
    print_table("  time relative to reap's, median over the rounds (and of minima); above 1: slower", contestants,
                workloads, ratio)
    print_table("  peak RSS in MiB, median", contestants, workloads,
                lambda c, label: f"{statistics.median(c.peaks[label]) / 1024:.1f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default=".", help="the build directory")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--paths", action="store_true", help="also the mallocs with heaps=cpu and path=locked")
    parser.add_argument("--only", choices=["mallocs", "pools"])
    parser.add_argument("--workloads", help="only these, by name, separated by commas")
    options = parser.parse_args()
    build, rows = os.path.abspath(options.build), []
    print(f"{CPUS} CPUs, Linux {os.uname().release}, {options.rounds} interleaved rounds")
    for title, contestants, workloads in (("mallocs", mallocs(build, options.paths), MALLOC_WORKLOADS),
                                          ("pools", pools(build), POOL_WORKLOADS)):
        if options.only in (None, title):
            contestants = list(contestants)
            if options.workloads:
                workloads = [w for w in workloads if w[0] in options.workloads.split(",")]
            measure(build, contestants, workloads, options.rounds, rows)
            report(title, contestants, workloads)
    with open(build + "/bench/results.csv", "w", newline="") as out:
        csv.writer(out).writerows([["workload", "name", "round", "ns_per_operation", "peak_kib"]] + rows)
    print(f"\nevery run: {os.path.relpath(build)}/bench/results.csv")


main()
