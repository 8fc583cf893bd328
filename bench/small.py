# SPDX-License-Identifier: Apache-2.0
"""What a malloc costs a small program: the memory of programs that have started, done little, and wait for input."""
import contextlib
import os
import shutil
import statistics
import subprocess

import contest
from contest import Case, Work

# What a program runs, what it reads, and what it prints when it is to be looked at.
SQL = ("create table t(a, b); with recursive c(x) as (select 1 union all select x + 1 from c where x < 1000) "
       "insert into t select x, 2 * x from c; select 'ready';\n")
SHELL = "for i in 1 2 3; do x=$x$i; done; f() { echo $1; }; f ready\n"
PERL = "$| = 1; my %h = map { $_ => $_ } 1..100; print \"ready\\n\"; <STDIN>"
PYTHON = "import json, sys; print('ready', flush=True); sys.stdin.read()"
SMALL = {"hello": (["bench/hello"], ""), "dash": (["dash"], SHELL), "bash": (["bash", "--norc"], SHELL),
         "sqlite3": (["sqlite3", ":memory:"], SQL), "perl": (["perl", "-e", PERL], ""),
         "python3": (["python3", "-I", "-c", PYTHON], "")}
# Linux counts in KiB. Pss divides a page by those who map it; private dirty is what this process alone has written.
KEYS = {"Rss": "resident", "Pss": "shared_out", "Private_Dirty": "private"}
FIGURES = [(key, what, "KiB", statistics.median) for key, what in zip(KEYS.values(), ("RSS", "PSS", "private dirty pages"))]


def memory(pid):
    """The figures of one process, in KiB."""
    found = {}
    with open(f"/proc/{pid}/smaps_rollup") as told:
        for line in told:
            name = line.split(":")[0]
            if name in KEYS:
                found[KEYS[name]] = int(line.split()[1])
    return found


def once(build, contestant, case):
    """Starts the program, waits until it has printed its last word, and looks at it while it waits for more input."""
    environment = {"PATH": contest.SYSTEM_PATH, "LC_ALL": "C", "REAP_OPTIONS": contestant.options}
    if contestant.preload:
        environment["LD_PRELOAD"] = contestant.preload
    with contest.started(case.arguments, env=environment, stdin=subprocess.PIPE) as program:
        with contextlib.suppress(BrokenPipeError): # it has ended already
            program.stdin.write(case.input.encode())
            program.stdin.flush()
        said = b""
        while b"ready\n" not in said:
            more = os.read(program.stdout.fileno(), 4096)
            if not more:
                break
            said += more
        run = memory(program.pid) if more else None
        _, errors = program.communicate()
    contest.need_success(program, f"{case.label} on {contestant.name}", errors.decode())
    return run


def cases_of(build, options):
    """The programs that are installed; the first one is ours."""
    for label, (words, text) in SMALL.items():
        path = f"{build}/{words[0]}" if "/" in words[0] else shutil.which(words[0], path=contest.SYSTEM_PATH)
        if not path:
            print(f"no {words[0]}: left out")
            continue
        case = Case(label, [path] + words[1:])
        case.input = text
        yield case


def plan_small(build, options):
    return [Work(contest.mallocs(build, options), contest.wanted(list(cases_of(build, options)), options), 20, once)]
