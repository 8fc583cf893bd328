# SPDX-License-Identifier: Apache-2.0
"""What the report measures: cases of the suites of run.py, and of its own. A suite that is not named here comes with
all its cases, two rounds each, and with its first case into the quick report."""
import collections
import contextlib
import io
import itertools
import re

import contest
import run
from contest import Work

from . import extra
from .rounds import Block

MINUTES, QUICK_MINUTES = 27, 4.3


# Which cases of a suite, by patterns, which of them are in the quick report, in how many rounds at least, and who runs them.
Choice = collections.namedtuple("Choice", "cases quick rounds most who", defaults=(".*", None, 2, 15, ".*"))
CHOICES = {
    "programs": Choice(quick="python3|perl|php|sqlite3|jq|gs"),
    "threads": Choice(quick="(threadtest|larson|shbench|prodcons|thrash) 2|(threadtest|larson) 16"),
    "pools": Choice(quick="(request|nested|three|fill|trees|httpd|churn|perl|shared 2)|(request|churn) out"),
    "custom": Choice(quick="lcc|httpd"),
    "requests": Choice(quick="served (50 [01]|10 1)|resized|built|waited 20"),
    "memory": Choice(quick="idle 10000|fall", rounds=1, most=3),
    "busy": Choice("(mixed|phases) (quiet 2|crowded 16|many .*)", quick="mixed crowded 16", most=8),
    "mallocs": Choice("pairs|batch|sizes.*", quick="pairs|sizes", rounds=3),
    "server": Choice(quick="mt 8", most=6),
    "scaling": Choice(quick="(threadtest|larson|shbench|scratch|thrash) 1"),
    "server-2": Choice(quick="none", most=4),
    "policies": Choice("mt 8|event 4|larson 16", quick="none", rounds=1, most=4,
                       who="cid|(thread|dynamic:100), .*|(roundrobin|single), block"),
    "fragmentation": Choice(quick="(threadtest|shbench|larson) 16", rounds=1, most=1),
    "fourteen": Choice(quick="none", rounds=1, most=1),
    "fractions": Choice(quick="threadtest.*", most=7),
    "small": Choice(quick="hello|bash|python3", rounds=3, most=3),
}


def bound(build, contestant, case):
    """That a program of others calls the malloc that is meant."""
    _, used = contest.uses_its_malloc(build, contestant, case)
    if not used:
        raise contest.Failed(f"{case.label} does not call the malloc of {contestant.name}")
    return {"bound": 1}


def chosen(choice, cases, quick):
    cases = [case for case in cases if re.fullmatch(choice.cases, case.label)]
    return cases if not quick else [case for case in cases if re.fullmatch(choice.quick, case.label)] if choice.quick else cases[:1]


def blocks_of(build, name, suite, works, quick):
    for number, work in enumerate(works):
        called = name if number == 0 else f"{name}-{number + 1}"  # works may have cases of one name
        choice = CHOICES.get(called) or CHOICES.get(name, Choice())
        cases = chosen(choice, work.cases, quick)
        work.contestants = [c for c in work.contestants if re.fullmatch(choice.who, c.name)]
        if work.checked and not quick:
            check = Work(work.contestants, cases, 1, bound)
            yield from (Block(build, f"{called} check", (), check, case, 1, 1) for case in cases)
        yield from (Block(build, called, suite.figures, work, case, min(choice.rounds, work.rounds),
                         1 if work.rounds == 1 else choice.most) for case in cases)


def plan(build, options, quick, only=None):
    """Blocks in the order of their first rounds, the first of each suite, then the second: whatever is cut off by time, each suite has
    something. And the lines that planning told: what is not here."""
    told, lists = io.StringIO(), []
    for name, suite in {**run.SUITES, **extra.SUITES}.items():
        if only and name not in only:
            continue
        with contextlib.redirect_stdout(told):
            works = suite.plan(build, options)
        lists.append(list(blocks_of(build, name, suite, works, quick)))
    blocks = [block for row in itertools.zip_longest(*lists) for block in row if block]
    return blocks, list(dict.fromkeys(told.getvalue().splitlines()))
