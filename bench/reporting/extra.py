# SPDX-License-Identifier: Apache-2.0
"""Suites that only the report has: the papers' thread counts and empty fractions."""
import statistics

import contest
import run
from contest import Contestant, Suite, Work

NS, RSS = run.NS, run.RSS
PROCESSORS = 14  # of the papers' machine


SCALING = "threadtest shbench larson scratch thrash".split()


def plan_scaling(build, options):
    cases = run.threaded(build, options, (1, 4, 8))
    cases = [c for c in cases if c.label.split()[0] in SCALING or c.label == "barnes 1"]
    return [Work(contest.mallocs(build, options), cases, 2)]


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


SUITES = {
    "scaling": Suite(plan_scaling, [NS, RSS]),
    "fractions": Suite(plan_fractions, [("ns", "time by the clock", "ns", statistics.median), RSS]),
    "fourteen": Suite(plan_fourteen),
}
