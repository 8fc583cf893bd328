# SPDX-License-Identifier: Apache-2.0
"""The suite of programs that had an allocator of their own (pools_gcc.h and its like; Berger, thesis 2002, chapters 5
and 6): on that one, on plain malloc or an emulator of regions on it, on reaps, and on others' pools."""
import os

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
