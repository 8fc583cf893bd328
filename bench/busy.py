# SPDX-License-Identifier: Apache-2.0
"""The suite of bad days: threads beside other processes that only turn, and more of them than there are CPUs (busy.c)."""
import os
import statistics

import contest
from contest import Case, Work

CPUS = len(os.sched_getaffinity(0))
FEW, LOOPS = min(2, CPUS), 8
WORKLOADS = "mixed phases small large huge reaps".split()
# By name: how many threads, how many loops, on how many CPUs.
SURROUNDINGS = [("quiet", [2], 0, CPUS), ("shared", [2, 16], CPUS, CPUS), ("crowded", [2, 16], LOOPS, FEW),
                ("many", [4 * CPUS], 0, CPUS)]
# Of reaps a malloc is a reapCreate, a free a reapDestroy, an operation both. The worst is that of all rounds.
FIGURES = [("ns", "time of an operation", "ns", statistics.median)] + [
    (f"{call}_{key}", f"{what} of a single {call}", unit, summary) for call in ("malloc", "free") for key, what, unit, summary in
    (("999", "99.9th percentile", "ns", statistics.median), ("worst", "the longest", "ns", max), ("long", "more than 10 ms", "", statistics.median))]


def cases_of(build, options):
    cases = [Case(f"{workload} {place} {n}", [workload, str(n), f"{options.seconds or 1:g}", str(loops), str(cpus)], build + "/bench/busy")
             for workload in WORKLOADS for place, numbers, loops, cpus in SURROUNDINGS for n in numbers]
    return contest.wanted(cases, options)


def timed(build, contestant, case):
    run = contest.run_once(build, contestant, case)
    if run:
        run["cpu"] = run["used"] / run["operations"]  # the time is fixed: what matters is that of an operation
    return run


def plan_busy(build, options):
    return [Work(contest.mallocs(build, options), cases_of(build, options), 5, timed)]
