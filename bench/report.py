#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures what the papers measured and what one asks today, and writes bench/report.html in the build directory.

Each round of a case is a file in bench/report-results: a report that was ended goes on where it was."""
import argparse
import os
import signal
import sys

sys.dont_write_bytecode = True # the sources may be read-only
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
try:
    import jinja2 # noqa: E402, F401
    import matplotlib # noqa: E402, F401
except ImportError as missing:
    if sys.executable != "/usr/bin/python3" and os.path.exists("/usr/bin/python3"):
        os.execv("/usr/bin/python3", ["/usr/bin/python3", *sys.argv]) # Debian's packages are for Debian's own
    sys.exit(f"report: no {missing.name} (Debian: python3-{missing.name})")
import contest # noqa: E402
import run # noqa: E402
from reporting import charts, figures, machine, page, plan, ratios, results, rounds # noqa: E402

PATIENCE = 40 # seconds, after which a run hangs


def parser():
    own = argparse.ArgumentParser(description=__doc__, epilog="Other options are those of run.py, as --with NAME=PATH or --also.")
    own.add_argument("--build", default=".", help="the build directory")
    own.add_argument("--quick", action="store_true", help="some cases, in five minutes")
    own.add_argument("--minutes", type=float, help=f"for how long to measure at most; {plan.MINUTES} if not given, {plan.QUICK_MINUTES} with --quick")
    own.add_argument("--page", action="store_true", help="measures nothing: the page, from what is there")
    own.add_argument("--pictures", metavar="DIR", help="writes the main figures there, for doc/figures.md, too")
    own.add_argument("--figures", metavar="PAGE", help="measures what this page shows, doc/figures.md, and writes its parts anew")
    own.add_argument("--parts", type=figures.names_of, default="", help=f"of the page: {' '.join(figures.PARTS)}; all if none")
    own.add_argument("--suites", type=lambda text: text.split(","), help="only these, separated by commas")
    own.add_argument("--patience", type=float, default=PATIENCE, help="seconds, after which a run hangs; %(default)s if not given")
    return own


# --- what is told ------------------------------------------------------------------------------------------------------

def plural(n, what):
    return f"{n:,} {what}{'s' * (n != 1)}"


def head(blocks, own, ended):
    """Lines for the top of the page and for the terminal, each with whether it warns."""
    runs = [run for b in blocks for r in b.rounds for run in r.runs.values() if "seconds" in run]
    times = [r.at for b in blocks for r in b.rounds]
    if not runs:
        return [("Nothing was measured yet.", True)]
    measured = [b for b in blocks if b.rounds]
    told = [(f"Measured from {page.date(min(times))} to {page.date(max(times))}: {plural(len(runs), 'run')} of "
             f"{plural(len(measured), 'case')}, in rounds that take turns.", False)]
    if own.quick:
        told.append(("This is the quick report: some cases, in few rounds; make report measures all.", True))
    if ended == "interrupt":
        told.append(("It was interrupted. The next run goes on from here.", True))
    missing = sum(1 for b in blocks if not b.rounds)
    if missing:
        told.append((f"{plural(missing, 'case')} of {len(blocks)} not yet measured; the next run goes on with them.", True))
    open_ = sum(1 for b in measured if rounds.missing(b))
    if open_ and not missing:
        told.append((f"{plural(open_, 'case')} of {len(blocks)} not settled: the spread of their rounds is above {ratios.SETTLED:.0%}.", False))
    noise = machine.noise(runs)
    words = machine.in_words(noise)
    told.append((words[0].upper() + words[1:] + ("." if machine.is_quiet(noise) else
                 ". Ratios between rounds that take turns hold better than times; each figure says how busy it was."),
                 not machine.is_quiet(noise)))
    return told


def print_summary(view):
    contest.print_table("reap to the best peer of each case; below 1: reap needs less",
                        ["", "cases", "mean", "first", "level", "behind", "open", "most", "where"], list(view.rows()))


def ours_failed(blocks):
    """Lines of runs of ours that failed: that is not only a cell."""
    ours = {(b.key, c.name) for b in blocks for c in b.contestants if c.ours}
    return list(dict.fromkeys(run.get("told", "failed").splitlines()[0] for b in blocks for r in b.rounds
                              for name, run in r.runs.items() if "failed" in run and (b.key, name) in ours))


# --- all of it -------------------------------------------------------------------------------------------------------------

def measure(store, blocks, own):
    """What ended it."""
    stale = sum(b.stale for b in blocks)
    if stale:
        print(f"not used: {plural(stale, 'round')} of other builds, options or versions; these cases are measured anew")
    if own.page:
        return "page"
    minutes = own.minutes or (plan.QUICK_MINUTES if own.quick else plan.MINUTES)
    return rounds.run_all(store, blocks, 60 * minutes)


def write(build, own, view, notes, told):
    facts = machine.describe()
    facts += machine.versions([c for b in view.blocks for c in b.contestants], build, HERE)
    path = build + "/bench/report.html"
    results.write_file(path, page.page(view, facts, notes, told))
    print(f"\npage: {os.path.relpath(path)}")
    if own.pictures:
        caption = [f"{facts[0][1]}, {facts[2][1]}. {told[0][0]}", " ".join(line.split(". ")[0].rstrip(".") + "." for line, warns in told if warns)]
        for name, picture in page.pictures(view, [line for line in caption if line]).items():
            results.write_file(os.path.join(own.pictures, name), picture)
            print(f"picture: {os.path.join(own.pictures, name)}")


def write_figures(build, own, view):
    try:
        with open(own.figures, encoding="utf-8") as page_:
            text, stayed = figures.write(page_.read(), view, own.parts, build, HERE, own.quick)
    except (OSError, ValueError) as problem:
        raise results.CannotWrite(f"cannot write {own.figures}: {problem}") from None
    results.write_file(own.figures, text)
    print(f"figures: {own.figures}: {' '.join(own.parts)}" + f"; nothing new of {' '.join(stayed)}" * bool(stayed))


def report(own, rest):
    build = os.path.abspath(own.build)
    options = run.options_parser().parse_args(["--build", build, *rest])
    contest.PATIENCE = own.patience
    store = results.Store(build + "/bench/report-results", machine.key(), machine.commit(HERE))
    if not own.page:
        store.lock()
    store.load()
    print(*store.problems, sep="\n", end="\n" * bool(store.problems))
    if own.figures:
        own.suites = figures.suites_of(own.parts)
    blocks, notes = plan.plan(build, options, own.quick, own.suites)
    print(*notes, sep="\n", end="\n" * bool(notes))
    for block in blocks:
        block.use(store)
    ended = measure(store, blocks, own)
    whole = ended in ("page", "settled", "time", "interrupt")
    if not whole:
        print(f"report: {ended}; what was measured before is kept in {os.path.relpath(store.directory)}", file=sys.stderr)
    view, told = charts.View(blocks), head(blocks, own, ended)
    print_summary(view)
    print("\n" + "\n".join(line for line, _ in told))
    if own.figures and "report" not in own.parts:
        own.pictures = None
    write(build, own, view, notes + store.problems, told)
    if own.figures:
        write_figures(build, own, view)
    print(*(f"failed: {line}" for line in page.failures(view)), sep="\n")
    failed = ours_failed(blocks)
    print(*(f"reap failed: {line}" for line in failed), sep="\n", end="\n" * bool(failed))
    if ended == "interrupt":
        print("interrupted: the next run goes on from here")
        return 130
    return 1 if failed or not whole else 0


def interrupted(*_):
    raise KeyboardInterrupt


def main():
    signal.signal(signal.SIGTERM, interrupted)
    try:
        sys.exit(report(*parser().parse_known_args()))
    except (results.CannotWrite, results.InUse, contest.Failed) as problem:
        sys.exit(f"report: {problem}")
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
