#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the benchmarks in interleaved rounds and prints minima, medians and ratios as tables."""
import argparse
import csv
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True # the sources may be read-only
import apache # noqa: E402
import busy # noqa: E402
import contest # noqa: E402
import custom # noqa: E402
import pictures # noqa: E402
import pools # noqa: E402
import programs # noqa: E402
import server # noqa: E402
import small # noqa: E402
from contest import Case, Contestant, Suite, Work # noqa: E402

CPUS = len(os.sched_getaffinity(0))


# --- the short benchmark of mallocs --------------------------------------------------------------------------------

def report_short(title, contestants, cases):
    def table(text, figure, cell):
        contest.print_table(text, [""] + [c.name for c in contestants], [
            [case.label] + [c.cell(case, c.figures(case, figure) and cell(c, case)) for c in contestants]
            for case in cases])

    table(f"{title}: ns per operation, median", "ns", lambda c, case: contest.middle(c, case, "ns", "{:.1f}"))
    table("  the same, minimum", "ns", lambda c, case: contest.middle(c, case, "ns", "{:.1f}", min))
    table("  time relative to reap's, median over the rounds (and of minima); above 1: slower", "ns",
          lambda c, case: "{} ({:.2f})".format(contest.round_ratio(c, contestants[0], case),
                                               contest.to_other(c, contestants[0], case, "ns")))
    table("  peak RSS in MiB, median", "rss", lambda c, case: contest.middle(c, case, "rss", "{:.1f}"))


def plan_mallocs(build, options):
    cases = [Case(w, w.split(), build + "/bench/mallocs") for w in ("pairs", "batch", "sizes", "sizes 100000")]
    cases += [Case(w, w.split(), build + "/bench/threads")
              for w in ("threadtest 1", f"threadtest {2 * CPUS}", f"larson {2 * CPUS}")]
    return [Work(contest.mallocs(build, options), contest.wanted(cases, options), 5)]


def show_mallocs(build, options, works):
    report_short("mallocs", works[0].contestants, works[0].cases)


# --- real programs -------------------------------------------------------------------------------------------------

def plan_programs(build, options):
    return [Work(contest.mallocs(build, options), programs.installed(build, options.workloads), 5, checked=True)]


def show_programs(build, options, works):
    contestants, cases = works[0].contestants, works[0].cases
    print_programs(contestants, cases)
    draw_programs(build, contestants, cases)


def print_programs(contestants, cases):
    contest.print_figures("programs: CPU time in s, user and system, minimum", contestants, cases, "cpu", "{:.3f}")
    contest.print_figures("programs: peak RSS in MiB, minimum", contestants, cases, "rss", "{:.1f}")
    contest.print_figures("programs: minor page faults, minimum", contestants, cases, "faults", "{}")


def draw_programs(build, contestants, cases):
    for figure, title in (("cpu", "CPU time"), ("rss", "peak RSS")):
        pictures.draw(build, "programs", figure, f"programs: {title} relative to the best peer", contestants, cases)


# --- threads -------------------------------------------------------------------------------------------------------

THREADED = "threadtest larson shbench prodcons bleeding storm scratch thrash barnes".split()


def threaded(build, options, numbers, more=()):
    """Who produces and who consumes come in pairs."""
    return contest.wanted([Case(f"{w} {n}", [w, str(n), *more], build + "/bench/threads") for w in THREADED for n in numbers
                           if w != "prodcons" or n % 2 == 0], options)


def plan_threads(build, options):
    return [Work(contest.mallocs(build, options), threaded(build, options, options.threads), 7)]


def show_threads(build, options, works):
    contestants, cases = works[0].contestants, works[0].cases
    contest.print_figures("threads: ns per operation by the clock, minimum", contestants, cases, "ns", "{:.2f}")
    contest.print_figures("threads: CPU time in s, user and system, minimum", contestants, cases, "cpu", "{:.3f}")
    contest.print_figures("threads: peak RSS in MiB, median", contestants, cases, "rss", "{:.1f}", statistics.median)
    flat = [case for case in cases if contestants[0].figures(case, "grown")]
    contest.print_table("threads: KiB by which RSS grew from a tenth of the work to its end, median",
                        [""] + [c.name for c in contestants],
                        [[case.label] + [contest.middle(c, case, "grown", "{:.0f}") for c in contestants] for case in flat])
    print_leaving("threads", contestants[0], cases)
    for figure, title in (("ns", "time"), ("rss", "peak RSS")):
        pictures.draw(build, "threads", figure, f"threads: {title} relative to the best peer", contestants, cases)


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


def show_policies(build, options, works):
    contestants, cases = works[0].contestants, works[0].cases
    rows = [[c.name] + [contest.middle(c, case, "ns", "{:.1f}", min) for case in cases]
            + [contest.middle(c, case, "rss", "{:.1f}") for case in cases] for c in contestants]
    contest.print_table("heaps= and lock=: ns per operation by the clock, minimum; peak RSS in MiB, median",
                        [""] + [f"{case.label} ns" for case in cases] + [f"{case.label} MiB" for case in cases], rows)


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


def show_fragmentation(build, options, works):
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


# --- instructions --------------------------------------------------------------------------------------------------

def stepped(program, contestant, arguments=(), **environment):
    """The lines of a program that steps through calls."""
    environment.update(PATH=contest.SYSTEM_PATH, REAP_OPTIONS=contestant.options)
    with contest.started([program, *arguments], text=True, env=environment) as run:
        told, errors = run.communicate()
    contest.need_success(run, f"steps on {contestant.name}", errors)
    return told.splitlines()


def steps_of_mallocs(build, contestant):
    """By size: instructions of malloc and of free, and how many of them are atomic."""
    for line in stepped(build + "/bench/steps", contestant, [contestant.preload]):
        size, get, get_atomics, put, put_atomics = map(int, line.split())
        yield str(size), [get, put], get_atomics + put_atomics


def steps_of_reaps(build, contestant):
    """The same by call, with the library of the contestant's build."""
    libraries = os.path.dirname(contestant.preload)
    with tempfile.TemporaryDirectory() as temporary:
        beside = contestant.beside
        program = temporary + "/steps_reap" if beside else build + "/bench/steps_reap"
        if beside:
            contest.compile_beside(os.path.dirname(libraries), ["steps_reap.c", "stepping.c"], program, "reap")
        first, *lines = stepped(program, contestant, LD_LIBRARY_PATH=libraries)
    if first != f"library {libraries}/libreap.so.0":
        raise contest.Failed(f"steps on {contestant.name}: {first}, and not that of {libraries}")
    for line in lines:
        instructions, atomics, call = line.split(maxsplit=2)
        yield call, [int(instructions)], int(atomics)


def steps_cell(counts, atomics):
    return " + ".join(map(str, counts)) + f", {atomics} atomic" * bool(atomics)


def steps_of(build, contestants, what, case):
    """By contestant and call; a peer that fails has none."""
    found = {}
    for contestant in contestants:
        try:
            if not contestant.failed(case):
                found[contestant.name] = {call: (counts, atomics) for call, counts, atomics in what(build, contestant)}
        except contest.Failed as failure:
            contest.leave_out(contestant, case, failure)
    return found


def print_steps(title, contestants, steps, case):
    """A row a call; after the figures how many instructions more we need than other builds."""
    others = [c for c in contestants if c.beside]
    rows = []
    for call, (ours, _) in steps["reap"].items():
        cells = [c.cell(case, c.name in steps and steps_cell(*steps[c.name][call])) for c in contestants]
        cells += [" ".join(f"{a - b:+d}" for a, b in zip(ours, steps[other.name][call][0])) for other in others]
        rows.append([call] + cells)
    contest.print_table(title, [""] + [c.name for c in contestants] + [f"reap - {c.name}" for c in others], rows)
    for other in others:
        more = [call for call, (ours, _) in steps["reap"].items() if sum(ours) > sum(steps[other.name][call][0])]
        print(f"of {len(rows)} calls with more instructions than {other.name}: {'; '.join(more) or 'none'}")


def show_steps(build, options, works):
    """Printed only: the numbers are the same in each round."""
    contestants, case = contest.mallocs(build, options), Case("steps", [])
    ours = [c for c in contestants if c.ours]
    mallocs, reaps = steps_of(build, contestants, steps_of_mallocs, case), steps_of(build, ours, steps_of_reaps, case)
    print_steps("instructions of a malloc + of its free on the fast path, by the bytes asked for", contestants, mallocs, case)
    print_steps("instructions of reap calls, from the entry of a function with the call to its return", ours, reaps, case)
    atomic = [f"malloc {size}" for size, (_, atomics) in mallocs["reap"].items() if atomics]
    atomic += [call for call, (_, atomics) in reaps["reap"].items()
               if atomics and call.startswith(("reapMalloc ", "reapFree,")) and not call.endswith((", shared", ", limited"))]
    if atomic:
        raise contest.Failed(f"fast paths of reap have an atomic read-modify-write: {'; '.join(atomic)}")


# --- all -----------------------------------------------------------------------------------------------------------

NS, CPU = ("ns", "time by the clock", "ns", min), ("cpu", "CPU time", "s", min)
RSS = ("rss", "peak RSS", "MiB", statistics.median)
SUITES = {
    "mallocs": Suite(plan_mallocs, show_mallocs, [NS, RSS]),
    "pools": Suite(pools.plan_pools, pools.show_pools, [("cpu_ns", "CPU time", "ns", min), NS, RSS]),
    "memory": Suite(pools.plan_memory, pools.show_memory),
    "custom": Suite(custom.plan_custom, custom.show_custom, [("cpu_ns", "CPU time", "ns", min), NS, RSS]),
    "programs": Suite(plan_programs, show_programs, [CPU, RSS]),
    "threads": Suite(plan_threads, show_threads, [NS, CPU, RSS]),
    "busy": Suite(busy.plan_busy, busy.show_busy),
    "policies": Suite(plan_policies, show_policies, [NS, RSS]),
    "fragmentation": Suite(plan_fragmentation, show_fragmentation),
    "steps": Suite(lambda build, options: [], show_steps),
    "server": Suite(server.plan_server, server.show_server, [NS, CPU, RSS]),
    "small": Suite(small.plan_small, small.show_small),
    "apache": Suite(apache.plan_apache, apache.show_apache),
}


def named_library(text):
    name, _, path = text.partition("=")
    if not name or not os.path.isfile(path):
        raise argparse.ArgumentTypeError(f"'{text}' is not NAME=PATH of a library that is there")
    return name, os.path.abspath(path)


def numbers(text):
    return [int(number) for number in text.split(",")]


SHORT = ["threads", "server", "custom"]


def options_parser():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=f"of {', '.join(SUITES)}; mallocs, pools and memory if none")
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
    parser.add_argument("--quick", action="store_true", help="busy: one round of short runs in two of the surroundings")
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
    SUITES[name].show(build, options, works)
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
    for suite in options.suites or ["mallocs", "pools", "memory"]:
        try:
            run_suite(suite, build, options)
        except contest.Failed as failure:
            sys.exit(str(failure))


if __name__ == "__main__":
    main()
