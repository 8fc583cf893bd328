# SPDX-License-Identifier: Apache-2.0
"""Runs cases in interleaved rounds until they have settled or the time is up, and goes on where a former run ended."""
import errno
import tempfile
import time

import contest

from . import machine, ratios, results

GIVEN_UP = 2        # failures after which a contestant does not run a case again
HUNG = 3            # hangs in one report after which a contestant does not run at all
ROUNDS_MOST = 15    # of a case that does not settle
FIRST_GUESS = 0.7   # seconds that a run takes, where nothing is known
SUMS = ("sum", "answer")  # figures that must be the same for all: what was read, what was printed


class Block:
    """A case with its contestants, and what is known of them: the rounds of the store that are of these programs,
    libraries and options."""

    def __init__(self, build, suite, figures, work, case, wanted, most=ROUNDS_MOST):
        self.build, self.suite, self.figures, self.work, self.case = build, suite, figures, work, case
        self.wanted, self.most = wanted, most
        self.contestants = work.contestants
        self.key = suite, case.label
        self.rounds, self.stale, self.of, self.out = [], 0, {}, set()
        self.known = {}  # what is asked between any two runs, as long as it is so

    def use(self, store):
        """A round with a run of another build is of another day: ratios are of rounds in which all ran."""
        self.of = {c.name: machine.identity(self.build, c, self.case) for c in self.present()}
        rounds = store.rounds.get(self.key, [])
        known = [r for r in rounds if all(run["of"] == self.of.get(name, run["of"]) for name, run in r.runs.items())]
        self.rounds, self.stale, self.known = known, len(rounds) - len(known), {}
        return self

    def present(self):
        return [c for c in self.contestants if c.failed(self.case) != "absent"]

    def runs(self, name):
        """By round; a run without figures has failed, or there is no such workload."""
        return {r.number: r.runs[name] for r in self.rounds if name in r.runs}

    def values(self, name, figure):
        found = {number: run.get("figures", {}).get(figure) for number, run in self.runs(name).items()}
        return {number: value for number, value in found.items() if isinstance(value, (int, float))}

    def figure(self, name, figure, summary=min):
        values = self.values(name, figure)
        return ratios.Figure(values.values(), summary) if values else None

    def failures(self, name):
        return [run["failed"] for run in self.runs(name).values() if "failed" in run]

    def has_none(self, name):
        """It cannot do this workload, and said so."""
        runs = self.runs(name)
        return bool(runs) and all("none" in run for run in runs.values())

    def running(self):
        return [c for c in self.present() if c.name not in self.out and len(self.failures(c.name)) < GIVEN_UP]

    def complete(self):
        """How many rounds each has that is not given up."""
        return min((len(self.runs(c.name)) for c in self.running()), default=ROUNDS_MOST)

    def main(self):
        """The figure that has to settle: its key and how rounds are summed up."""
        return (self.figures[0][0], self.figures[0][3]) if self.figures else (None, None)

    def spread(self):
        """Of ours, and of the peers that come near to it or are better: the greatest, or None with a single round."""
        key, summary = self.main()
        found = [(c, self.figure(c.name, key, summary)) for c in self.running() if not c.yardstick] if key else []
        ours = next((figure for c, figure in found if c.ours and figure), None)
        near = [f.spread for _, f in found if f and (not ours or f is ours or f.value < ours.value * 1.15)]
        return max(near) if near and None not in near else None

    def settled(self):
        """Also where there is nothing to settle: no figure, or nobody who has it."""
        spread = self.spread()
        nobody = not any(self.values(c.name, self.main()[0]) for c in self.running())
        return not self.figures or (nobody and bool(self.rounds)) or spread is not None and spread <= ratios.SETTLED

    def remembered(self, compute):
        """Asked between any two runs of all cases, and changed by a run of this one."""
        state = compute, sum(len(r.runs) for r in self.rounds), len(self.rounds), len(self.out)
        if state not in self.known:
            self.known[state] = compute(self)
        return self.known[state]

    def seconds(self):
        """What a round is expected to take."""
        return self.remembered(Block.expected)

    def expected(self):
        last = {}
        for round_ in self.rounds:
            last.update({name: run.get("seconds", FIRST_GUESS) for name, run in round_.runs.items()})
        return sum(last.get(c.name, FIRST_GUESS) for c in self.running())

    def noise(self):
        return machine.noise([run for round_ in self.rounds for run in round_.runs.values() if "seconds" in run])


# --- what is next ------------------------------------------------------------------------------------------------------

def missing(block):
    """How many rounds are wanted yet: those of the plan, and one more while it has not settled."""
    return block.remembered(wanted_yet)


def wanted_yet(block):
    done = block.complete()
    if done < block.wanted:
        return block.wanted - done
    return 1 if done < block.most and not block.settled() else 0


def next_block(blocks, seconds):
    """First what has the fewest rounds, in the plan's order; then what has settled least. Nothing that would not end in
    time."""
    open_ = [b for b in blocks if b.seconds() <= seconds and missing(b)]
    wanting = [b for b in open_ if b.complete() < b.wanted]
    if wanting:
        return min(wanting, key=lambda b: b.complete())
    return max(open_, key=lambda b: (b.spread() or 1) / (1 + b.complete()), default=None)


# --- a round -----------------------------------------------------------------------------------------------------------

def plain(run):
    """What is kept of a run: numbers, and series of numbers."""
    return {name: value for name, value in run.items()
            if isinstance(value, (int, float, list)) and not isinstance(value, bool) or name in SUMS}


def same_sums(block, figures):
    """Whoever read or printed something else than those before has lost or mixed what was written."""
    before = [run.get("figures", {}) for round_ in block.rounds for run in round_.runs.values()]
    return all(known[name] == figures[name] for known in before for name in SUMS if name in known and name in figures)


def run_one(block, contestant):
    """A run as it is kept. Numbers of the meter stand beside its figures."""
    meter, told = machine.Meter(), {"of": block.of[contestant.name]}
    try:
        run = block.work.once(block.build, contestant, block.case)
        if run is None:
            told["none"] = True
        elif not same_sums(block, run):
            raise contest.Failed(f"{block.case.label} on {contestant.name}: reads or answers other than the others")
        else:
            told["figures"] = plain(run)
    except contest.Failed as failure:
        told |= {"failed": failure.word, "told": str(failure).strip()[:500]}
    except (ValueError, LookupError, ArithmeticError, OSError) as failure:
        if isinstance(failure, OSError) and failure.errno == errno.ENOSPC:
            raise results.CannotWrite(f"cannot write in {tempfile.gettempdir()}: {failure.strerror}") from None
        told |= {"failed": "no figures", "told": f"{block.case.label} on {contestant.name}: tells no figures: {failure}"[:500]}
    return told | meter.end()


def run_round(store, block, show, until, once=run_one):
    """Each contestant once; what has run is kept at once. Ends early if it takes longer than there is time."""
    round_ = store.begin(*block.key, time.time())
    for contestant in contest.order(block.running(), not block.rounds):
        if time.monotonic() > until:
            break
        show(block, contestant)
        round_.runs[contestant.name] = once(block, contestant)
        store.save(round_)
        if round_ not in block.rounds:
            block.rounds.append(round_)
        failed = round_.runs[contestant.name].get("told")
        if failed:
            show(block, contestant, failed.splitlines()[0])
    return round_.runs


# --- all of it -----------------------------------------------------------------------------------------------------------

class Progress(contest.Progress):
    """What failed has a line that stays."""

    def __init__(self, blocks, until):
        super().__init__()
        self.blocks, self.until, self.last, self.recent = blocks, until, 0, []

    def __call__(self, block, contestant, failed=None):
        if failed:
            self.line(failed, stays=True)
            return
        if block.rounds:
            self.recent = (self.recent + list(block.rounds[-1].runs.values()))[-10:]
        noise = machine.noise(self.recent)
        busy = "" if noise is None or machine.is_quiet(noise) else f"  (busy machine: {machine.takers(noise)})"
        done = sum(1 for b in self.blocks if not missing(b))
        left = min(max(self.until - time.monotonic(), 0), sum(missing(b) * b.seconds() for b in self.blocks))
        self.line(f"{done:4}/{len(self.blocks)} settled, {left / 60:4.1f} min left  "
                  f"{block.suite}: {block.case.label} on {contestant.name}{busy}")


def run_all(store, blocks, seconds):
    """Until all have settled or the time is up. Says what ended it: "settled", "time", "interrupt" or a line."""
    until, hangs, out = time.monotonic() + seconds, {}, set()
    show = Progress(blocks, until)
    for block in blocks:
        block.out = out  # all have the same set
    try:
        while True:
            block = next_block(blocks, until - time.monotonic())
            if block is None:
                return "time" if any(map(missing, blocks)) else "settled"
            for name, run in run_round(store, block, show, until).items():
                hangs[name] = hangs.get(name, 0) + (run.get("failed") == "hang")
            out |= {name for name, n in hangs.items() if n >= HUNG}
    except KeyboardInterrupt:
        return "interrupt"
    except results.CannotWrite as problem:
        return str(problem)
    finally:
        show.end()
