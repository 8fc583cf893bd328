# SPDX-License-Identifier: Apache-2.0
"""The suite of bad days: threads beside other processes that only turn, and more of them than there are CPUs (busy.c)."""
import os
import statistics

import contest
import pictures
from contest import Case, Work

CPUS = len(os.sched_getaffinity(0))
FEW, LOOPS = min(2, CPUS), 8
WORKLOADS = "mixed phases small large huge larson threadtest".split()
REAPS = "reaps"
# By name: how many threads, how many loops, on how many CPUs; and what quick is content with.
SURROUNDINGS = [("quiet", [2], 0, CPUS), ("shared", [2, 16], CPUS, CPUS), ("crowded", [2, 16], LOOPS, FEW),
                ("many", [4 * CPUS], 0, CPUS)]
QUICK = ["quiet 2", "crowded 16"]


class Bad(Case):
    """A case that says where it runs, for the tables."""

    def __init__(self, build, workload, place, threads, loops, cpus, seconds):
        arguments = [workload, str(threads), f"{seconds:g}", str(loops), str(cpus)]
        super().__init__(f"{workload} {place} {threads}", arguments, build + "/bench/busy")
        self.place = f"{place} {threads}"


def cases_of(build, options):
    seconds = options.seconds or (0.3 if options.quick else 1)
    cases = [Bad(build, workload, place, threads, loops, cpus, seconds)
             for workload in WORKLOADS + [REAPS] for place, numbers, loops, cpus in SURROUNDINGS for threads in numbers]
    if options.quick:
        cases = [case for case in cases if case.place in QUICK]
    return contest.wanted(cases, options)


def timed(build, contestant, case):
    run = contest.run_once(build, contestant, case)
    if run:
        run["rate"] = 1e9 / run["ns"]
        run["cpu"] = run["used"] / run["operations"]  # the time is fixed: what matters is that of an operation
    return run


def best_round(contestants, case):
    """Ours over the best peer's, round by round."""
    peers = [rates for rates in (c.figures(case, "rate") for c in contestants if c.peer) if rates]
    return [ours / max(rates) for ours, *rates in zip(contestants[0].figures(case, "rate"), *peers) if rates]


def print_rates(contestants, cases):
    """More is better here; the least of rounds tells of a collapse that comes now and then."""
    rows = []
    for case in cases:
        ratios = best_round(contestants, case)
        rows.append([case.label] + [contest.middle(c, case, "rate", "{:.0f}") for c in contestants]
                    + ([f"{statistics.median(ratios):.2f}", f"{min(ratios):.2f}"] if ratios else ["-", "-"]))
    contest.print_table("busy: operations a second, median; ours to the best peer of the same round, median and least; "
                        "below 1: slower", [""] + [c.name for c in contestants] + ["ours/best", "least"], rows)


def cell(contestant, case, call):
    """The percentile is a median of rounds, and worst the worst of all."""
    typical, worst = contestant.figures(case, f"{call}_999"), contestant.figures(case, f"{call}_worst")
    if not worst:
        return contestant.cell(case, "")
    beyond = statistics.median(contestant.figures(case, f"{call}_long"))
    return f"{statistics.median(typical) / 1e3:.1f} {max(worst) / 1e6:6.1f} {beyond:4.0f}"


def print_calls(contestants, cases, call, name):
    contest.print_table(f"busy: a single {name}: 99.9th percentile in us, median; worst in ms, of all rounds; calls beyond "
                        "10 ms in a round, median", [""] + [c.name for c in contestants],
                        [[case.label] + [cell(c, case, call) for c in contestants] for case in cases])


def plan_busy(build, options):
    return [Work(contest.mallocs(build, options), cases_of(build, options), 1 if options.quick else 5, timed)]


def show_busy(build, options, works):
    contestants = works[0].contestants
    cases = [case for case in works[0].cases if contestants[0].runs.get(case.label)]
    mallocs = [case for case in cases if case.arguments[0] != REAPS]
    reaps = [case for case in cases if case.arguments[0] == REAPS]
    print_rates(contestants, mallocs)
    print_calls(contestants, mallocs, "malloc", "malloc")
    print_calls(contestants, mallocs, "free", "free")
    ours = [c for c in contestants if c.ours]
    contest.print_table("busy: reaps a second, created and destroyed, median", [""] + [c.name for c in ours],
                        [[case.label] + [contest.middle(c, case, "rate", "{:.0f}") for c in ours] for case in reaps])
    print_calls(ours, reaps, "malloc", "reapCreate")
    print_calls(ours, reaps, "free", "reapDestroy")
    for figure, title in (("ns", "time of an operation"), ("malloc_999", "99.9th percentile of malloc")):
        pictures.draw(build, "busy", figure, f"busy: {title} relative to the best peer", contestants, mallocs, 10)
