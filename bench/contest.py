# SPDX-License-Identifier: Apache-2.0
"""Contestants, interleaved rounds, and tables: what all the benchmarks' suites share."""
import hashlib
import math
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

PEERS = {"jemalloc": "libjemalloc.so.2", "mimalloc": "libmimalloc.so.2", "tcmalloc": "libtcmalloc_minimal.so.4"}
SYSTEM_PATH = "/usr/bin:/bin"


class Contestant:
    """A malloc to preload, or a pool's program; and what it did: by case, a dictionary of figures a round. A yardstick
    does too little to be a peer; beside is one of another build of ours."""

    def __init__(self, name, program=None, preload="", options="", ours=False, yardstick=False,
                 beside=False):
        self.name, self.program, self.preload, self.options = name, program, preload, options
        self.ours, self.yardstick, self.peer, self.beside = ours, yardstick, not ours and not yardstick, beside
        self.runs = {}

    def figures(self, case, figure):
        return [run[figure] for run in self.runs.get(case.label, []) if figure in run]


class Case:
    """A workload: the arguments of the contestant's program, or of one that all share."""

    def __init__(self, label, arguments, program=None):
        self.label, self.arguments, self.program = label, arguments, program
        self.environment, self.client, self.links, self.bare, self.reports = {}, None, {}, "", True

    def command(self, contestant, build, temporary):
        return [self.program or contestant.program] + self.arguments


def besides(options):
    """Other builds, by the last part of their name that is not `build`."""
    for directory in map(os.path.abspath, options.beside):
        base, last = os.path.split(directory)
        yield (os.path.basename(base) if last == "build" else last), directory


def setting(directory, name):
    with open(directory + "/Makefile") as makefile:
        return re.search(rf"^{name} =(.*)", makefile.read(), re.MULTILINE)[1].strip()


def compile_beside(directory, source, program, library):
    """A program as it is here, compiled as the other build is, with what its reap.h puts inline, and linked to its
    library."""
    here = os.path.dirname(os.path.abspath(__file__))
    words = " ".join(setting(directory, name) for name in ("CC", "CPPFLAGS", "REAP_CFLAGS", "CFLAGS", "LDFLAGS")).split()
    words += ["-D_GNU_SOURCE", "-I" + os.path.join(directory, setting(directory, "srcdir"), "include"), f"-I{here}",
              f"{here}/{source}", "-o", program, f"-L{directory}/.libs", f"-Wl,-rpath,{directory}/.libs", f"-l{library}", "-lpthread"]
    compiled = subprocess.run(words, text=True, capture_output=True)
    if compiled.returncode:
        raise Failed(f"{source} for {directory}:\n{compiled.stderr}")


def wanted(cases, options):
    """What was asked for: a workload, or one of its cases."""
    return [c for c in cases if options.workloads is None or {c.label, c.label.split()[0]} & set(options.workloads)]


def mallocs(build, options):
    """Ours first, then ours with other options and of other builds, then glibc's without any preload, then the peers that
    are installed."""
    ours = build + "/.libs/libreap-malloc.so"
    listing = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True).stdout
    found = {line.split()[0]: line.split()[-1] for line in listing.splitlines() if " => " in line}
    contestants = [Contestant("reap", preload=ours, ours=True)]
    contestants += [Contestant(also, preload=ours, options=also, ours=True) for also in options.also]
    contestants += [Contestant(name, preload=f"{other}/.libs/libreap-malloc.so", ours=True, beside=True)
                    for name, other in besides(options)]
    contestants.append(Contestant("glibc"))
    for name, library in PEERS.items():
        if library in found:
            contestants.append(Contestant(name, preload=found[library]))
        else:
            print(f"no {library}: {name} is left out")
    return contestants


# --- one run ------------------------------------------------------------------------------------------------------

class Failed(Exception):
    pass


def run_once(build, contestant, case, assignments=(), options=None, preload=""):
    """What one run did, as a dictionary; None where a program has no such workload (status 77)."""
    with tempfile.TemporaryDirectory() as temporary:
        result = temporary + "/result"
        for name, target in case.links.items():
            os.symlink(f"{build}/bench/inputs/{target}", f"{temporary}/{name}")
        environment = {"PATH": SYSTEM_PATH, "LC_ALL": "C",
                       "REAP_OPTIONS": contestant.options if options is None else options}
        words = [build + "/bench/launch", result, preload or contestant.preload or case.bare, *assignments,
                 *(f"{name}={value}" for name, value in case.environment.items())]
        with subprocess.Popen(words + case.command(contestant, build, temporary), env=environment, text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              cwd=temporary) as launched:
            told = case.client(temporary) if case.client else None
            used, errors = launched.communicate()
        if launched.returncode == 77:
            return None
        if launched.returncode or "cannot be preloaded" in errors:
            raise Failed(f"{case.label} on {contestant.name}: status {launched.returncode}\n{errors[-2000:]}")
        peak, user, system, faults = map(int, used.split())
        run = {"cpu": (user + system) / 1e6, "rss": peak / 1024, "faults": faults, "errors": errors}
        with open(result, "rb") as out:
            answer = told or out.read()
    if case.reports:
        run.update(reported(answer.decode()))
    else:
        run["answer"] = hashlib.sha256(answer).hexdigest()
    return run


def reported(line):
    """NANOSECONDS OPERATIONS [NAME=NUMBER]..., from our own programs (measure.h)."""
    nanoseconds, operations, *more = line.split()
    run = {name: int(value) for name, value in (word.split("=") for word in more)}
    return dict(run, ns=int(nanoseconds) / int(operations), operations=int(operations))


def uses_its_malloc(build, contestant, case):
    """Whether each call of malloc is bound to the contestant's, as the dynamic linker tells it; a program that takes
    malloc's address may have a stub for it that all others are bound to, and is itself bound."""
    wanted = contestant.preload or "libc.so.6"
    with tempfile.TemporaryDirectory() as bindings:
        run = run_once(build, contestant, case, ["LD_DEBUG=bindings", f"LD_DEBUG_OUTPUT={bindings}/b"])
        to = set()
        for name in os.listdir(bindings):
            with open(f"{bindings}/{name}", errors="replace") as told:
                to |= {line.split(" to ")[1].split(" [")[0] for line in told if "symbol `malloc'" in line}
    used = {library for library in to if library.endswith(wanted)}
    return run, bool(used) and not any(".so" in library for library in to - used)


# --- rounds -------------------------------------------------------------------------------------------------------

class Progress:
    """On a terminal one line that changes; in a log a line every ten seconds."""

    def __init__(self, total):
        self.total, self.done, self.last, self.terminal = total, 0, time.monotonic(), sys.stderr.isatty()

    def step(self, text):
        self.done += 1
        line = f"{self.done:4}/{self.total}  {text}"
        if self.terminal:
            sys.stderr.write(f"\r{line}\033[K")
        elif time.monotonic() - self.last >= 10:
            self.last = time.monotonic()
            sys.stderr.write(line + "\n")
        sys.stderr.flush()

    def end(self):
        if self.terminal:
            sys.stderr.write("\r\033[K")


def measure(build, contestants, cases, rounds, once=run_once):
    """Each round runs every contestant on every case once, starting one further along each time. An interrupt ends it
    early: there are tables of what was run by then."""
    progress = Progress(rounds * len(cases) * len(contestants))
    try:
        for number in range(rounds):
            turn = number % len(contestants)
            for case in cases:
                for contestant in contestants[turn:] + contestants[:turn]:
                    progress.step(f"round {number + 1}  {case.label} on {contestant.name}")
                    measure_one(build, contestant, case, once)
    except KeyboardInterrupt:
        print(f"interrupted in round {number + 1} of {rounds}")
    progress.end()


def measure_one(build, contestant, case, once):
    try:
        run = once(build, contestant, case)
    except Failed as failure:
        if contestant.ours:
            raise
        print(f"left out: {failure}".strip())
    else:
        if run:
            contestant.runs.setdefault(case.label, []).append(run)


def verify(build, contestants, cases):
    """One run each that is not measured: the malloc must be in use, and the answer be that of glibc. What fails is
    left out and said, if it is a peer's; ours must not fail."""
    progress = Progress(len(cases) * len(contestants))
    good = []
    for case in cases:
        answers = {}
        for contestant in contestants:
            progress.step(f"check  {case.label} on {contestant.name}")
            run, bound = uses_its_malloc(build, contestant, case)
            if not bound:
                raise Failed(f"{case.label} does not call the malloc of {contestant.name}")
            answers.setdefault(run["answer"], []).append(contestant.name)
        if len(answers) == 1:
            good.append(case)
        else:
            raise Failed(f"{case.label} answers differently: {' / '.join(' '.join(n) for n in answers.values())}")
    progress.end()
    return good


# --- tables -------------------------------------------------------------------------------------------------------

def geometric_mean(values):
    return math.exp(statistics.fmean(math.log(value) for value in values))


def best_peer(contestants, case, figure, summary=min):
    """The least of what the others need."""
    return min((summary(c.figures(case, figure)) for c in contestants if c.peer and c.figures(case, figure)),
               default=None)


def ratio(contestant, contestants, case, figure, summary=min):
    best, mine = best_peer(contestants, case, figure, summary), contestant.figures(case, figure)
    return summary(mine) / best if best and mine else None


def to_other(contestant, other, case, figure, summary=min):
    theirs, mine = other.figures(case, figure), contestant.figures(case, figure)
    return summary(mine) / summary(theirs) if theirs and mine else None


def round_to(contestant, other, case, figure):
    """Round by round, so that what slows the machine for a while slows both; the median of the ratios."""
    mine, theirs = contestant.figures(case, figure), other.figures(case, figure)
    return statistics.median(a / b for a, b in zip(mine, theirs)) if mine and theirs and min(theirs) > 0 else None


def round_ratio(contestant, ours, case):
    ratio_ = round_to(contestant, ours, case, "ns")
    return f"{ratio_:.2f}" if ratio_ else "-"


def middle(contestant, case, figure, form="{:.2f}"):
    values = contestant.figures(case, figure)
    return form.format(statistics.median(values)) if values else "-"


def print_table(title, heads, rows):
    if not rows:
        return
    widths = [max(len(row[i]) for row in [heads] + rows) for i in range(len(heads))]
    print(f"\n{title}")
    for row in [heads] + rows:
        print("  ".join(text.ljust(w) if i == 0 else text.rjust(w) for i, (text, w) in enumerate(zip(row, widths))))


def print_figures(title, contestants, cases, figure, form, summary=min):
    """A row a case; after the figures our ratio to the best peer, by this summary and by medians, and to yardsticks."""
    if not cases:
        return
    ours, yardsticks, rows = contestants[0], [c for c in contestants if c.yardstick], []
    for case in cases:
        cells = [form.format(summary(c.figures(case, figure))) if c.figures(case, figure) else "-" for c in contestants]
        shown = [ratio(ours, contestants, case, figure, s) for s in (summary, statistics.median)]
        shown += [to_other(ours, c, case, figure, summary) for c in yardsticks]
        rows.append([case.label] + cells + [f"{r:.3f}" if r else "-" for r in shown])
    means = [[ratio(c, contestants, case, figure, summary) for case in cases] for c in contestants]
    medians = [ratio(ours, contestants, case, figure, statistics.median) for case in cases]
    means = [geometric_mean(r for r in all_ if r) if any(all_) else None for all_ in means + [means[0], medians]]
    rows.append(["geometric mean, to the best"] + [f"{m:.3f}" if m else "-" for m in means]
                + [""] * len(yardsticks))
    print_table(title, [""] + [c.name for c in contestants] + ["ours/best", "of medians"]
                + [f"ours/{c.name}" for c in yardsticks], rows)


def print_beside(suite, contestants, cases):
    """Ours over that of another build: of times the median of ratios within rounds, and minima; of RSS medians."""
    for other in [c for c in contestants if c.beside]:
        rows, ratios = [], []
        for case in cases:
            row = [round_to(contestants[0], other, case, figure) for figure in ("ns", "cpu")]
            row += [to_other(contestants[0], other, case, figure) for figure in ("ns", "cpu")]
            row.append(to_other(contestants[0], other, case, "rss", statistics.median))
            if any(row):
                ratios.append(row)
                rows.append([case.label] + [f"{r:.3f}" if r else "-" for r in row])
        means = [geometric_mean(r for r in column if r) if any(column) else None for column in zip(*ratios)]
        rows.append(["geometric mean"] + [f"{m:.3f}" if m else "-" for m in means])
        print_table(f"{suite}: this build to {other.name}; above 1: this one needs more", ["", "clock, of rounds",
                    "CPU, of rounds", "clock, minima", "CPU, minima", "RSS, medians"], rows if ratios else [])


def rows_of(suite, contestants, cases):
    """Every run, for the file of results."""
    for case in cases:
        for contestant in contestants:
            for number, run in enumerate(contestant.runs.get(case.label, [])):
                for figure, value in run.items():
                    if isinstance(value, (int, float)):
                        yield [suite, case.label, contestant.name, number + 1, figure, f"{value:.6g}"]


def counters(errors):
    """What REAP_OPTIONS=stats=1 told, summed over the processes that told it."""
    names = {"slow_mallocs": r"slow mallocs (\d+)", "slow_frees": r"slow frees (\d+)", "remote_frees": r"remote (\d+)",
             "transfers": r"transfers (\d+)", "held": r"peak held (\d+)"}
    found = {name: [int(n) for n in re.findall(pattern, errors)] for name, pattern in names.items()}
    return {name: max(values, default=0) if name == "held" else sum(values) for name, values in found.items()}


def asked(errors):
    """What asked.c told: for each process the most bytes, allocations, frees."""
    return re.findall(r"asked: most (\d+) bytes, allocations (\d+), frees (\d+)", errors)
