# SPDX-License-Identifier: Apache-2.0
"""Contestants, interleaved rounds, and tables: what all the benchmarks' suites share."""
import contextlib
import hashlib
import os
import random
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from reporting import ratios

# By name: the library, and Debian's package.
PEERS = {"jemalloc": ("libjemalloc.so.2", "libjemalloc2"), "mimalloc": ("libmimalloc.so.2", "libmimalloc2.0"),
         "tcmalloc": ("libtcmalloc_minimal.so.4", "libtcmalloc-minimal4"),
         "tbb": ("libtbbmalloc_proxy.so.2", "libtbbmalloc2")}
SYSTEM_PATH = "/usr/bin:/bin"
PATIENCE = 120 # seconds, after which a run hangs


class Contestant:
    """A malloc to preload, or a pool's program; and what it did: by case, a dictionary of figures a round, or a word for
    how it failed. A yardstick does too little to be a peer; beside is one of another build of ours; absent one that is
    not installed."""

    def __init__(self, name, program=None, preload="", options="", ours=False, yardstick=False,
                 beside=False, absent=False):
        self.name, self.program, self.preload, self.options = name, program, preload, options
        self.ours, self.yardstick, self.peer, self.beside = ours, yardstick, not ours and not yardstick, beside
        self.absent, self.environment, self.runs, self.failures = absent, {}, {}, {}

    def failed(self, case):
        """What its cells say in the place of figures; "" if it did not fail."""
        return "absent" if self.absent else self.failures.get(case.label, "")

    def figures(self, case, figure):
        return [] if self.failed(case) else [run[figure] for run in self.runs.get(case.label, []) if figure in run]

    def program_of(self, case):
        return case.program or self.program

    def cell(self, case, text):
        """Text, or why there is none."""
        return text or self.failed(case) or "-"


class Case:
    """A workload: the arguments of the contestant's program, or of one that all share."""

    def __init__(self, label, arguments, program=None):
        self.label, self.arguments, self.program = label, arguments, program
        self.environment, self.client, self.links, self.bare, self.reports = {}, None, {}, "", True

    def command(self, contestant, build, temporary):
        return [contestant.program_of(self)] + self.arguments


class Work:
    """What is measured in the same rounds: each contestant on each case, by once(build, contestant, case). Checked: each
    is looked at before (verify)."""

    def __init__(self, contestants, cases, rounds, once=None, checked=False):
        self.contestants, self.cases, self.rounds = contestants, cases, rounds
        self.once, self.checked = once or run_once, checked
        self.sums = {} # by case, what the first contestant has read


class Suite:
    """A benchmark of several works: plan(build, options) says which. Each of its figures is a key of the runs, what it is,
    its unit, and how rounds are summed up; a table of each group of cases has it. show(works) prints what is no such table."""

    def __init__(self, plan, figures=(), show=None, groups=None):
        self.plan, self.show, self.figures, self.groups = plan, show, figures, groups


def besides(options):
    """Other builds, by the last part of their name that is not `build`."""
    for directory in map(os.path.abspath, options.beside):
        base, last = os.path.split(directory)
        yield (os.path.basename(base) if last == "build" else last), directory


def setting(directory, name):
    with open(directory + "/Makefile") as makefile:
        return re.search(rf"^{name} =(.*)", makefile.read(), re.MULTILINE)[1].strip()


def compile_beside(directory, sources, program, library, *also):
    """A program as it is here, compiled as the other build is, with what its reap.h puts inline, and linked to its
    library."""
    here = os.path.dirname(os.path.abspath(__file__))
    words = " ".join(setting(directory, name) for name in ("CC", "CPPFLAGS", "REAP_CFLAGS", "CFLAGS", "LDFLAGS")).split()
    words += ["-D_GNU_SOURCE", "-I" + os.path.join(directory, setting(directory, "srcdir"), "include"), f"-I{here}",
              *(f"{here}/{source}" for source in sources), "-o", program, *also, f"-L{directory}/.libs",
              f"-Wl,-rpath,{directory}/.libs", f"-l{library}", "-lpthread"]
    compiled = subprocess.run(words, text=True, capture_output=True)
    if compiled.returncode:
        raise Failed(f"{sources[0]} for {directory}:\n{compiled.stderr}")


def wanted(cases, options):
    """What was asked for: a workload, or one of its cases."""
    cases = [c for c in cases if options.workloads is None or {c.label, c.label.split()[0]} & set(options.workloads)]
    if options.short:
        for case in cases:
            case.arguments.append("short")
    return cases


def mallocs(build, options):
    """Ours first, then ours with other options and of other builds, then glibc's without any preload, then the peers,
    and what --with names."""
    ours = build + "/.libs/libreap-malloc.so"
    listing = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True).stdout
    found = {line.split()[0]: line.split()[-1] for line in listing.splitlines() if " => " in line}
    contestants = [Contestant("reap", preload=ours, ours=True)]
    contestants += [Contestant(also, preload=ours, options=also, ours=True) for also in options.also]
    contestants += [Contestant(name, preload=f"{other}/.libs/libreap-malloc.so", ours=True, beside=True)
                    for name, other in besides(options)]
    contestants.append(Contestant("glibc"))
    for name, (library, package) in PEERS.items():
        contestants.append(Contestant(name, preload=found.get(library, ""), absent=library not in found))
        if library not in found:
            print(f"absent: {name}, for there is no {library} (Debian: {package})")
    return contestants + [Contestant(name, preload=path) for name, path in options.others]


# --- one run ------------------------------------------------------------------------------------------------------

class Failed(Exception):
    """A run that cannot count; word is what tables say of it."""

    def __init__(self, text, word="failed"):
        super().__init__(text)
        self.word = word


def ended(status):
    """How a program ended that did not succeed, in a line and in a word; launch adds 128 to a signal, as a shell does."""
    number = status - 128 if status > 128 else -status
    return (f"killed by {signal.Signals(number).name}", "crash") if number > 0 else (f"status {status}", f"status {status}")


@contextlib.contextmanager
def started(words, **how):
    """A process and a group of its own. All of it ends after PATIENCE seconds, for it hangs, and with an interrupt."""
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True, **how) as process:
        process.hangs = False

        def end(hangs=True):
            process.hangs = hangs
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)

        timer = threading.Timer(PATIENCE, end)
        timer.start()
        try:
            yield process
        except BaseException:
            end(process.hangs)
            raise
        finally:
            timer.cancel()


def need_success(process, label, errors):
    if process.hangs:
        raise Failed(f"{label}: did not end within {PATIENCE:g} s", "hang")
    if "cannot be preloaded" in errors:
        raise Failed(f"{label}: {errors.strip()}", "not loaded")
    if process.returncode:
        line, word = ended(process.returncode)
        raise Failed(f"{label}: {line}\n{errors[-2000:]}", word)


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
        with started(words + case.command(contestant, build, temporary), env=environment, text=True,
                     stdin=subprocess.DEVNULL, cwd=temporary) as launched:
            told = case.client(temporary) if case.client else None
            used, errors = launched.communicate()
        if launched.returncode == 77:
            return None
        need_success(launched, f"{case.label} on {contestant.name}", errors)
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
    """On a terminal one line that changes; in a log a line every ten seconds, and what stays."""

    def __init__(self, total=0):
        self.total, self.done, self.last, self.terminal = total, 0, time.monotonic(), sys.stderr.isatty()

    def step(self, text):
        self.done += 1
        self.line(f"{self.done:4}/{self.total}  {text}")

    def line(self, text, stays=False):
        if self.terminal:
            sys.stderr.write(f"\r\033[K{text[:150]}" + "\n" * stays)
        elif stays or time.monotonic() - self.last >= 10:
            self.last = time.monotonic()
            sys.stderr.write(text + "\n")
        sys.stderr.flush()

    def end(self):
        if self.terminal:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()


def order(contestants, first):
    """Of a round: another one by chance each time, since what one leaves behind helps or harms the next, as huge pages that
    the host has ready. The first of all rounds begins with ours, whose sum counts."""
    return contestants if first else random.sample(contestants, len(contestants))


def measure(build, work, rounds=None):
    """Each round runs every contestant on every case once. A peer that fails does not run that case again. An interrupt ends
    it early: there are tables of what was run by then."""
    contestants, rounds = work.contestants, rounds or work.rounds
    progress = Progress(rounds * len(work.cases) * len(contestants))
    try:
        for number in range(rounds):
            for case in work.cases:
                for contestant in order(contestants, number == 0):
                    progress.step(f"round {number + 1}  {case.label} on {contestant.name}")
                    if not contestant.failed(case):
                        measure_one(build, contestant, case, work)
    except KeyboardInterrupt:
        print(f"interrupted in round {number + 1} of {rounds}")
    progress.end()


def leave_out(contestant, case, failure):
    """Ours must not fail."""
    if contestant.ours:
        raise failure
    contestant.failures[case.label] = failure.word
    print(f"left out: {failure}".strip())


def measure_one(build, contestant, case, work):
    """Whoever reads something else than the first has lost or mixed what was written."""
    try:
        run = work.once(build, contestant, case)
        if run and "sum" in run and run["sum"] != work.sums.setdefault(case.label, run["sum"]):
            raise Failed(f"{case.label} on {contestant.name}: reads other than what was written", "wrong")
    except Failed as failure:
        leave_out(contestant, case, failure)
    else:
        if run:
            contestant.runs.setdefault(case.label, []).append(run)


def verify(build, contestants, cases):
    """One run each that is not measured: the malloc must be in use, and the answer be that of the first, which is ours."""
    progress = Progress(len(cases) * len(contestants))
    for case in cases:
        answer = None
        for contestant in contestants:
            progress.step(f"check  {case.label} on {contestant.name}")
            if contestant.failed(case):
                continue
            try:
                run, bound = uses_its_malloc(build, contestant, case)
                answer = answer or run["answer"]
                if not bound:
                    raise Failed(f"{case.label} does not call the malloc of {contestant.name}", "not used")
                if run["answer"] != answer:
                    raise Failed(f"{case.label} answers differently on {contestant.name}", "wrong")
            except Failed as failure:
                leave_out(contestant, case, failure)
    progress.end()


# --- tables -------------------------------------------------------------------------------------------------------

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


def middle(contestant, case, figure, form="{:.2f}", summary=statistics.median):
    values = contestant.figures(case, figure)
    return contestant.cell(case, form.format(summary(values)) if values else "")


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
        cells = [middle(c, case, figure, form, summary) for c in contestants]
        shown = [ratio(ours, contestants, case, figure, s) for s in (summary, statistics.median)]
        shown += [to_other(ours, c, case, figure, summary) for c in yardsticks]
        rows.append([case.label] + cells + [f"{r:.3f}" if r else "-" for r in shown])
    means = [[ratio(c, contestants, case, figure, summary) for case in cases] for c in contestants]
    medians = [ratio(ours, contestants, case, figure, statistics.median) for case in cases]
    means = [ratios.geometric_mean(r for r in all_ if r) if any(all_) else None for all_ in means + [means[0], medians]]
    rows.append(["geometric mean, to the best"] + [f"{m:.3f}" if m else "-" for m in means]
                + [""] * len(yardsticks))
    print_table(title, [""] + [c.name for c in contestants] + ["ours/best", "of medians"]
                + [f"ours/{c.name}" for c in yardsticks], rows)


FORMS = {"ns": "{:.1f}", "s": "{:.3f}", "MiB": "{:.1f}", "us": "{:.1f}", "KiB a pool": "{:.2f}", "ratio": "{:.3f}"}


def show(name, suite, works):
    """A table of each figure, as far as somebody has it, and what the suite itself prints."""
    for work in works:
        for group, labels in (suite.groups or {"": None}).items():
            cases = [case for case in work.cases if labels is None or case.label in labels]
            for key, what, unit, summary in suite.figures:
                having = [case for case in cases if any(c.figures(case, key) for c in work.contestants)]
                how = {min: "minimum", max: "maximum"}.get(summary, "median")
                print_figures(f"{name}{', ' * bool(group)}{group}: {what}{' in ' * bool(unit)}{unit}, {how}", work.contestants,
                              having, key, FORMS.get(unit, "{:.0f}"), summary)
    if suite.show:
        suite.show(works)


def print_beside(suite, contestants, cases):
    """Ours over that of another build: of times the median of ratios within rounds, and minima; of RSS medians."""
    for other in [c for c in contestants if c.beside]:
        rows, found = [], []
        for case in cases:
            row = [round_to(contestants[0], other, case, figure) for figure in ("ns", "cpu")]
            row += [to_other(contestants[0], other, case, figure) for figure in ("ns", "cpu")]
            row.append(to_other(contestants[0], other, case, "rss", statistics.median))
            if any(row):
                found.append(row)
                rows.append([case.label] + [f"{r:.3f}" if r else "-" for r in row])
        means = [ratios.geometric_mean(r for r in column if r) if any(column) else None for column in zip(*found)]
        rows.append(["geometric mean"] + [f"{m:.3f}" if m else "-" for m in means])
        print_table(f"{suite}: this build to {other.name}; above 1: this one needs more", ["", "clock, of rounds",
                    "CPU, of rounds", "clock, minima", "CPU, minima", "RSS, medians"], rows if found else [])


def rows_of(suite, contestants, cases):
    """Every run, for the file of results; the figure `failed` has a word, in the place of a number."""
    for case in cases:
        for contestant in contestants:
            if contestant.failed(case):
                yield [suite, case.label, contestant.name, 0, "failed", contestant.failed(case)]
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
