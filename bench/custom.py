# SPDX-License-Identifier: Apache-2.0
"""The suite of programs that had an allocator of their own (pools_gcc.h and its like; Berger, thesis 2002, chapters 5
and 6): on that one, on plain malloc or an emulator of regions on it, on reaps, and on others' pools."""
import os
import statistics

import contest
import pools
from contest import Case, Contestant, Work

# By program: where it had its allocator from. obstacks were gcc's, and pools are Apache's.
OWN = {"parser": "xalloc", "boxed": "classes", "gcc": "obstack", "lcc": "raw", "httpd": "apr"}


class Own(Contestant):
    """Of each program its own allocator."""

    def __init__(self, build):
        super().__init__("own", yardstick=True)
        self.build = build

    def program_of(self, case):
        return f"{self.build}/bench/pool_{OWN[case.label]}"

    def failed(self, case):
        return super().failed(case) if os.path.exists(self.program_of(case)) else "absent"


def plan_custom(build, options):
    emulated = [Contestant(c.name + " malloc" * c.ours, build + "/bench/pool_emulator", c.preload, c.options,
                           ours=c.ours, absent=c.absent) for c in contest.mallocs(build, options) if not c.beside]
    first, *others = pools.of_regions(build, options)
    return [Work([first, Own(build), *emulated, *others],
                 contest.wanted([Case(label, [label]) for label in OWN], options), 5, pools.timed)]


def show_custom(build, options, works):
    contestants, cases = works[0].contestants, works[0].cases
    contest.print_figures("custom: ns of CPU time for an object, minimum", contestants, cases, "cpu_ns", "{:.1f}")
    contest.print_figures("custom: peak RSS in MiB, median", contestants, cases, "rss", "{:.1f}", statistics.median)
    print_to_own("CPU time, minima", contestants, cases, "cpu_ns", min)
    print_to_own("peak RSS, medians", contestants, cases, "rss", statistics.median)


def print_to_own(what, contestants, cases, figure, summary):
    """As the thesis has its figures 5.3 and 6.3."""
    own = next(c for c in contestants if c.name == "own")
    ratios = [[contest.to_other(c, own, case, figure, summary) for case in cases] for c in contestants]
    rows = [[case.label] + [c.cell(case, f"{r[i]:.2f}" if r[i] else "") for c, r in zip(contestants, ratios)]
            for i, case in enumerate(cases)]
    means = [contest.geometric_mean([r for r in row if r]) if any(row) else None for row in ratios]
    rows.append(["geometric mean"] + [f"{mean:.2f}" if mean else "-" for mean in means])
    contest.print_table(f"custom: {what}, to those of the program's own allocator; above 1: needs more",
                        [""] + [c.name for c in contestants], rows)
