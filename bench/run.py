#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the benchmarks in interleaved rounds and prints minima, medians and ratios as tables."""
import argparse
import csv
import json
import os
import statistics
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True # the sources may be read-only
import apache # noqa: E402
import busy # noqa: E402
import contest # noqa: E402
import custom # noqa: E402
import pools # noqa: E402
import programs # noqa: E402
import server # noqa: E402
import small # noqa: E402
from contest import Case, Contestant, Suite, Work # noqa: E402

CPUS = len(os.sched_getaffinity(0))


# --- the short benchmark of mallocs --------------------------------------------------------------------------------

def plan_mallocs(build, options):
    cases = [Case(w, w.split(), build + "/bench/threads") for w in
             ("pairs", "batch", "sizes", "sizes 100000", "threadtest 1", f"threadtest {2 * CPUS}", f"larson {2 * CPUS}")]
    return [Work(contest.mallocs(build, options), contest.wanted(cases, options), 5)]


# --- real programs -------------------------------------------------------------------------------------------------

def plan_programs(build, options):
    return [Work(contest.mallocs(build, options), programs.installed(build, options.workloads), 5, checked=True)]


# --- threads -------------------------------------------------------------------------------------------------------

THREADED = "threadtest larson shbench prodcons bleeding storm scratch thrash barnes".split()


def threaded(build, options, numbers, more=()):
    """Who produces and who consumes come in pairs."""
    return contest.wanted([Case(f"{w} {n}", [w, str(n), *more], build + "/bench/threads") for w in THREADED for n in numbers
                           if w != "prodcons" or n % 2 == 0], options)


def plan_threads(build, options):
    return [Work(contest.mallocs(build, options), threaded(build, options, options.threads), 7)]


def show_threads(works):
    print_leaving("threads", works[0].contestants[0], works[0].cases)


def print_leaving(suite, ours, cases):
    """How often the fast path is left: an operation is a malloc or a free."""
    rows = []
    for case in cases:
        runs = ours.runs.get(case.label, [])
        figures = [[1e6 * run[name] / (run.get("calls") or 2 * run["operations"]) for run in runs if name in run]
                   for name in ("slow_mallocs", "slow_frees", "remote_frees", "transfers")]
        if all(figures):
            rows.append([case.label] + [f"{statistics.median(values):.1f}" for values in figures])
    contest.print_table(f"{suite}: of a million calls of malloc and free, median over the rounds",
                        ["", "slow mallocs", "slow frees", "remote among them", "superblock transfers"], rows)


# --- heap assignment and locks -------------------------------------------------------------------------------------

LOCKED = "core thread dynamic:100 roundrobin single".split()


def policies(build):
    """PPoPP 2003, tables 1 and 2: who allocates from which heap, and how a lock is waited for. cid and cpu have none on
    the fast path; `dealt` is what takes their place where there are no restartable sequences."""
    ours = build + "/.libs/libreap-malloc.so"
    for name in ("cid", "cpu"):
        yield Contestant(name, preload=ours, options=f"heaps={name}", ours=True)
    for name in ["dealt"] + LOCKED:
        for lock in ("both", "spin", "block"):
            choice = "path=locked" if name == "dealt" else f"heaps={name}"
            yield Contestant(f"{name}, {lock}", preload=ours, options=f"{choice},lock={lock}", ours=True)


def plan_policies(build, options):
    cases = threaded(build, options, (2, 16))
    if options.workloads is None:
        cases = [case for case in cases if case.label.split()[0] in ("threadtest", "larson", "prodcons")]
    cases += server.cases_of(build, server.SHARED, options)
    return [Work(list(policies(build)), cases, 3)]


# --- fragmentation -------------------------------------------------------------------------------------------------

PAPER = {"threadtest": ("1.24", "1.10"), "larson": ("1.22", "1.15"), "shbench": ("3.17", "1.30"), "gs": ("1.15", ""), "barnes": ("1.18", "")}


def add_fragmentation(run):
    run["asked_kib"] = run["asked"] / 1024
    if "held" in run:
        run["held_asked"] = run["held"] / run["asked"]
    if "held" in run and "usable" in run:
        run["held_usable"] = run["held"] / run["usable"]
    if "before" in run:
        run["rss_asked"] = (run["rss"] - run["before"] / 1024) * 2**20 / run["asked"]
        run["usable_asked"] = run["usable"] / run["asked"]
    return run


def counted_threads(build, contestant, case):
    return add_fragmentation(contest.run_once(build, contestant, case))


def counted_program(build, contestant, case):
    """What it asks for, as recorded on glibc; and what reap held for that."""
    run = contest.run_once(build, contestant, case, options="stats=1")
    with tempfile.TemporaryDirectory() as traces:
        contest.run_once(build, contestant, case, [f"REAP_TRACE={traces}/t"], preload=f"{build}/.libs/libreap-trace.so:{case.bare}")
        told = [json.loads(subprocess.run([f"{build}/tools/trace/reap-analyse", "--json", f"{traces}/{name}"], stdout=subprocess.PIPE,
                                          check=True).stdout) for name in os.listdir(traces) if not name.endswith(".live")]
    return add_fragmentation(dict(run, **contest.counters(run["errors"]), asked=max(t["U"] for t in told),
                                  calls=sum(t["events"] for t in told), allocations=sum(t["objects"] for t in told)))


def plan_fragmentation(build, options):
    everybody, threads = contest.mallocs(build, options), threaded(build, options, (1, 16), ["count"])
    threads = [case for case in threads if case.label.split()[0] not in ("scratch", "thrash")]
    real = programs.installed(build, options.workloads) if os.path.exists(f"{build}/.libs/libreap-trace.so") else []
    return [Work(everybody, threads, 3, counted_threads), Work(everybody[:1], real, 1, counted_program)]


def show_fragmentation(works):
    everybody, threads, ours, real = works[0].contestants, works[0].cases, works[0].contestants[0], works[1].cases
    heads = ["", "paper", "target", "asked KiB", "usable/asked", "held/usable", "held/asked"]
    rows = [[case.label, *PAPER.get(case.label.split()[0], ("", "")), contest.middle(ours, case, "asked_kib", "{:.0f}"),
             *(contest.middle(ours, case, figure) for figure in ("usable_asked", "held_usable", "held_asked"))]
            + [contest.middle(c, case, "rss_asked") for c in everybody] for case in threads]
    contest.print_table("fragmentation: reap's most held (A) over most asked for (U); and for all RSS above the start's "
                        "over U; medians", heads + [f"{c.name} RSS" for c in everybody], rows)
    rows = [[case.label, *PAPER.get(case.label, ("", "")), contest.middle(ours, case, "allocations", "{:.0f}"),
             contest.middle(ours, case, "asked_kib", "{:.0f}"), contest.middle(ours, case, "held_asked")] for case in real]
    contest.print_table("fragmentation of programs on reap",
                        ["", "paper", "target", "allocations", "asked KiB", "held/asked"], rows)
    print_leaving("programs", ours, real)


# --- all -----------------------------------------------------------------------------------------------------------

NS, CPU = ("ns", "time by the clock of an operation", "ns", min), ("cpu", "CPU time, user and system", "s", min)
RSS, CPU_NS = ("rss", "peak RSS", "MiB", statistics.median), ("cpu_ns", "CPU time of an operation", "ns", min)
GROWN = ("grown", "growth of RSS from a tenth of the work to its end", "KiB", statistics.median)
SUITES = {
    "mallocs": Suite(plan_mallocs, [NS, RSS]),
    "pools": Suite(pools.plan_pools, [CPU_NS, NS, RSS], groups=pools.GROUPS),
    "requests": Suite(pools.plan_requests, pools.REQUEST_FIGURES),
    "memory": Suite(pools.plan_memory, pools.FIGURES),
    "custom": Suite(custom.plan_custom, [CPU_NS, NS, RSS]),
    "programs": Suite(plan_programs, [CPU, RSS, ("faults", "minor page faults", "", min)]),
    "threads": Suite(plan_threads, [NS, CPU, RSS, GROWN], show_threads),
    "busy": Suite(busy.plan_busy, busy.FIGURES),
    "policies": Suite(plan_policies, [NS, RSS]),
    "fragmentation": Suite(plan_fragmentation, show=show_fragmentation),
    "server": Suite(server.plan_server, [NS, CPU, RSS]),
    "small": Suite(small.plan_small, small.FIGURES),
    "apache": Suite(apache.plan_apache, apache.FIGURES),
    "profile": Suite(apache.plan_profile, apache.FIGURES),
}


def named_library(text):
    name, _, path = text.partition("=")
    if not name or not os.path.isfile(path):
        raise argparse.ArgumentTypeError(f"'{text}' is not NAME=PATH of a library that is there")
    return name, os.path.abspath(path)


def numbers(text):
    return [int(number) for number in text.split(",")]


SHORT = ["threads", "server", "custom", "requests"]


def options_parser():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=f"of {', '.join(SUITES)}; mallocs, pools, requests and memory if none")
    parser.add_argument("--build", default=".", help="the build directory")
    parser.add_argument("--rounds", type=int, help="how many; each suite has its own default")
    parser.add_argument("--also", action="append", default=[], metavar="OPTIONS",
                        help="the library with these REAP_OPTIONS too, as heaps=thread,lock=spin; may be given again")
    parser.add_argument("--beside", action="append", default=[], metavar="DIR",
                        help="another build directory's library and reaps in the same rounds; may be given again")
    parser.add_argument("--with", action="append", default=[], dest="others", type=named_library, metavar="NAME=PATH",
                        help="one more peer, a shared library to preload; may be given again")
    parser.add_argument("--patience", type=float, default=contest.PATIENCE, metavar="SECONDS",
                        help="after so long a run hangs, %(default)s if not given")
    parser.add_argument("--threads", type=numbers, default=[2, 16], metavar="N,...",
                        help="threads: how many, each in turn; 2,16 if not given")
    parser.add_argument("--seconds", type=float, help="busy, apache: how long a run is, 1 or 2 if not given")
    parser.add_argument("--short", action="store_true",
                        help=f"of {', '.join(SHORT)}: barnes and others run for a moment, to see that they do")
    parser.add_argument("--unchecked", action="store_true", help="programs: without the runs that check the malloc")
    parser.add_argument("--workloads", type=lambda text: text.split(","), help="only these, separated by commas")
    return parser


def run_suite(name, build, options):
    """Measured, printed, and written down."""
    works = SUITES[name].plan(build, options)
    for work in works:
        if work.checked and not options.unchecked:
            contest.verify(build, work.contestants, work.cases)
            print(f"checked: {len(work.cases)} programs call the malloc that is measured, and answer alike on each")
        contest.measure(build, work, options.rounds)
    contest.show(name, SUITES[name], works)
    if not any(work.cases for work in works):
        return
    for work in works:
        contest.print_beside(name, work.contestants, work.cases)
    with open(f"{build}/bench/results-{name}.csv", "w", newline="") as out:
        csv.writer(out).writerows([["suite", "workload", "name", "round", "figure", "value"],
                                   *(row for work in works for row in contest.rows_of(name, work.contestants, work.cases))])
    print(f"\nevery run: {os.path.relpath(build)}/bench/results-{name}.csv\n", flush=True)


def main():
    parser = options_parser()
    options = parser.parse_args()
    contest.PATIENCE = options.patience
    for suite in options.suites:
        if suite not in SUITES:
            parser.error(f"no suite {suite}")
    if options.short and not set(options.suites) <= set(SHORT):
        parser.error(f"--short is for {', '.join(SHORT)}")
    build = os.path.abspath(options.build)
    print(f"{CPUS} CPUs, Linux {os.uname().release}, interleaved rounds")
    for suite in options.suites or ["mallocs", "pools", "requests", "memory"]:
        try:
            run_suite(suite, build, options)
        except contest.Failed as failure:
            sys.exit(str(failure))


if __name__ == "__main__":
    main()
