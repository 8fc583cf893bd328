# SPDX-License-Identifier: Apache-2.0
"""Suites that only the report has: the papers' thread counts and empty fractions, memory over time, and the virtual
processors of tests/model."""
import os
import re
import statistics
import threading
import time

import contest
import programs
import run
from contest import Case, Contestant, Suite, Work

NS, RSS = run.NS, run.RSS
PROCESSORS = 14  # of the papers' machine


def nothing(build, options, works):
    """The page shows them."""


# --- one thread, and more of them than there are CPUs -------------------------------------------------------------------

SCALING = "threadtest shbench larson scratch thrash".split()


def plan_scaling(build, options):
    cases = run.threaded(build, options, (1, 4, 8))
    cases = [c for c in cases if c.label.split()[0] in SCALING or c.label == "barnes 1"]
    return [Work(contest.mallocs(build, options), cases, 2)]


# --- the empty fraction: Hoard, tables 5 and 6 ----------------------------------------------------------------------------

FRACTIONS = {"f = 1/8": 1, "f = 1/4": 2, "f = 1/2": 4}


def plan_fractions(build, options):
    """Runtime; and what was held over what was asked for, which needs a run that counts."""
    ours = build + "/.libs/libreap-malloc.so"
    contestants = [Contestant(name, preload=ours, options=f"empty_fraction={eighths}", ours=True)
                   for name, eighths in FRACTIONS.items()]
    wanted = ("threadtest", "shbench", "larson", "barnes")
    plain = [c for c in run.threaded(build, options, (PROCESSORS,)) if c.label.split()[0] in wanted]
    counted = [c for c in run.threaded(build, options, (PROCESSORS,), ["count"]) if c.label.split()[0] in wanted]
    return [Work(contestants, plain, 3), Work(contestants, counted, 1, run.counted_threads)]


def plan_fourteen(build, options):
    """What each holds with as many threads as the paper had processors."""
    cases = [c for c in run.threaded(build, options, (PROCESSORS,), ["count"]) if c.label.split()[0] not in ("scratch", "thrash")]
    return [Work(contest.mallocs(build, options), cases, 1, run.counted_threads)]


# --- memory over time -------------------------------------------------------------------------------------------------------

OVER_TIME = "python3 perl g++ php sqlite3 redis gs".split()
POINTS = 150


def children(pid):
    found = []
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/children") as told:
            for child in map(int, told.read().split()):
                found += [child] + children(child)
    return found


def resident(pid):
    with open(f"/proc/{pid}/statm") as told:
        return int(told.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Sampler(threading.Thread):
    """Looks now and then at the memory of what bench/launch has started: the children of this process's children."""

    def __init__(self):
        super().__init__(daemon=True)
        self.over, self.began, self.points = threading.Event(), time.monotonic(), []

    def run(self):
        while not self.over.wait(0.01):
            try:
                started = [pid for child in children(os.getpid()) for pid in children(child)]
                total = sum(map(resident, dict.fromkeys(started)))
            except (OSError, ValueError, IndexError):
                continue  # one of them has just ended
            if total:
                self.points.append([round(time.monotonic() - self.began, 3), round(total / 2**20, 3)])

    def end(self):
        self.over.set()
        self.join()
        step = len(self.points) // POINTS + 1
        return self.points[::step] + self.points[-1:] if self.points else []


def over_time(build, contestant, case):
    sampler = Sampler()
    sampler.start()
    try:
        told = contest.run_once(build, contestant, case)
    finally:
        points = sampler.end()
    if told:
        told["series"] = points
        told["mean"] = statistics.fmean(mib for _, mib in points) if points else told["rss"]
    return told


def plan_time(build, options):
    """Programs that go up and down by themselves, and threads whose objects come and go in phases."""
    cases = [Case("phases", ["phases", "2", "1.5", "0", str(run.CPUS)], build + "/bench/busy")]
    cases += [p for p in programs.installed(build, OVER_TIME) if p.client is None]
    return [Work(contest.mallocs(build, options), contest.wanted(cases, options), 1, over_time)]


# --- virtual processors --------------------------------------------------------------------------------------------------------

def bounds(build, contestant, case):
    """The table of tests/model/bounds, a figure for each load, path, number of processors and column."""
    with contest.started(case.command(contestant, build, None), text=True) as process:
        told, errors = process.communicate()
    contest.need_success(process, case.label, errors)
    figures, load = {}, ""
    for line in told.splitlines():
        begins = re.match(r"([a-z]+): ", line)
        load = begins[1] if begins else load
        words = line.replace("|", " ").split()
        if len(words) == 11 and words[0].isdigit():
            for name, word in zip(("live", "held", "bound", "visits", "locks", "atomics", "false", "carried", "handed"), words[2:]):
                figures[f"{load} {words[1]} {words[0]} {name}"] = float(word)
    return figures


def plan_virtual(build, options):
    program = build + "/tests/model/bounds"
    if not os.path.exists(program):
        print("no tests/model/bounds: nothing acts as many processors (make tests/model/bounds)")
        return []
    return [Work([Contestant("reap", ours=True)], [Case("bounds", ["/dev/null", "16"], program)], 1, bounds)]


SUITES = {
    "scaling": Suite(plan_scaling, nothing, [NS, RSS]),
    "fractions": Suite(plan_fractions, nothing, [("ns", "time by the clock", "ns", statistics.median), RSS]),
    "fourteen": Suite(plan_fourteen, nothing),
    "over time": Suite(plan_time, nothing),
    "virtual": Suite(plan_virtual, nothing),
}
