# SPDX-License-Identifier: Apache-2.0
"""Which figures stand side by side: groups of cases with a figure each, and what each contestant needed."""
import collections
import re
import statistics

import pools

from . import ratios
from .draw import Bar, Row, look, number
from .reasons import reason

median = statistics.median


class Group:
    """Cases of a suite that belong together, and the figure that is looked at. kind: time or memory. base: whom
    ratios in bars are to; the best peer if nobody."""

    def __init__(self, title, suite, cases, figure, unit, kind="time", summary=min, base=None, note="", short="", scale=1):
        self.title, self.suite, self.cases, self.figure, self.unit, self.kind = title, suite, cases, figure, unit, kind
        self.summary, self.base, self.note, self.short, self.scale = summary, base, note, short or title, scale

    def blocks(self, blocks):
        return [b for b in blocks if b.suite == self.suite and re.fullmatch(self.cases, b.case.label)
                and any(b.values(c.name, self.figure) for c in b.present())]


class Cell:
    """What one contestant needed: a figure, or a word in its place, why there is none; to the base, and to the best peer."""

    def __init__(self, block, contestant, group, check):
        self.contestant, self.name, self.to_base, self.to_best, self.best = contestant, contestant.name, None, None, False
        unfit = check.failures(self.name) if check else []
        self.failed, self.word = unfit + block.failures(self.name), ""
        figure = None if unfit else block.figure(self.name, group.figure, group.summary)
        self.figure = figure and ratios.Figure([value * group.scale for value in figure.values], group.summary)
        if not figure:
            self.word = ("absent" if contestant.failed(block.case) == "absent" else self.failed[-1] if self.failed else "hung elsewhere"
                         if self.name in block.out else "cannot" if block.has_none(self.name) else "not yet run")


class Panel:
    """One case: its cells, and where ours stands."""

    def __init__(self, block, group, check=None):
        self.block, self.group, self.label, self.called = block, group, block.case.label, block.case.label
        self.cells = [Cell(block, contestant, group, check) for contestant in block.contestants]
        self.place()

    def of(self, name):
        return next((cell for cell in self.cells if cell.name == name and cell.figure), None)

    def ratio(self, cell, other):
        """Of the same rounds, so that above 1 is worse."""
        mine, theirs = (self.block.values(c.name, self.group.figure) for c in (cell, other))
        return ratios.ratio(mine, theirs, self.group.summary)

    def place(self):
        """Who is best, and where ours stands to the best peer."""
        told = [cell for cell in self.cells if cell.figure]
        peers = [cell for cell in told if cell.contestant.peer]
        self.ours = next((cell for cell in told if cell.contestant.ours), None)
        self.peer = min(peers, key=lambda cell: cell.figure.value, default=None)
        base = self.of(self.group.base) if self.group.base else self.peer
        for cell in told:
            cell.to_base = self.ratio(cell, base) if base else None
            cell.to_best = self.ratio(cell, self.peer) if self.peer else None
        racing = [cell for cell in told if not cell.contestant.yardstick]
        first = min((cell.figure.value for cell in racing), default=None)
        for cell in racing:
            cell.best = cell.figure.value == first
        self.state = self.to_best = self.doubt = None
        if self.ours and self.peer and self.ours.to_best is not None:
            self.to_best = self.ours.to_best
            self.doubt = ratios.uncertainty(self.ours.figure, self.peer.figure)
            once = self.doubt is None and self.group.kind == "time"  # memory is much the same in each round
            self.state = ratios.OPEN if once else ratios.verdict(self.to_best, self.doubt)

    def why(self):
        return reason(self.group.suite, self.label, self.group.kind)

    def says(self):
        """Where ours stands, in a sentence."""
        if not self.ours:
            return f"reap has no figure here: {self.cells[0].word}." if self.cells else ""
        if self.state is None:
            return "No peer has a figure here." if not self.peer else "Too near to nothing for a ratio."
        off, than, what = abs(self.to_best - 1), f"{self.peer.name}, the best peer", self.group.kind
        more = f"{off:.0%} more {what} than" if self.to_best < 2 else f"{self.to_best:.1f} times the {what} of"
        told = {ratios.OPEN: f"Not settled: reap has {self.to_best:.2f} of {than}", ratios.ALONGSIDE: f"reap is level with {than}: {self.to_best:.2f}",
                ratios.FIRST: f"reap is first: {off:.0%} less {what} than {than}", ratios.BEHIND: f"reap is behind: {more} {than}"}[self.state]
        return told + (" (one round only)." if self.doubt is None else f" (spread {self.doubt:.0%}).")

    def shown(self):
        """For pictures: of malloc with a list only the best, and not who cannot do it or is not here."""
        lists = [cell for cell in self.cells if cell.name.startswith("list ") and cell.figure]
        best_list = min(lists, key=lambda cell: cell.figure.value, default=None)
        return [cell for cell in self.cells if cell.word not in ("cannot", "absent")
                and (not cell.name.startswith("list ") or cell is best_list)]

    def bar(self, cell):
        figure = cell.figure
        if not figure:
            return Bar(cell.name, shown=cell.word, bold=cell.contestant.ours)
        return Bar(cell.name, figure.value, number(figure.value) + " !" * bool(cell.failed), number(cell.to_base) if cell.to_base else "",
                   look(cell.name, cell.contestant.ours)[0], cell is self.ours, cell.best, figure.value * (1 + figure.spread) if figure.spread else None)

    def row(self):
        """Of a picture of many cases: where ours stands, in a few words and in two."""
        marks = [(cell.name, cell.to_base, *look(cell.name, cell.contestant.ours), cell is self.ours)
                 for cell in self.shown() if cell.to_base and not cell.contestant.yardstick]
        if self.state is None:
            told = ("no ratio", "-") if self.ours else (self.cells[0].word, self.cells[0].word)
        else:
            told = f"{self.state}: {self.to_best:.2f} of {self.peer.name}", f"{self.state}: {self.to_best:.2f}"
        return Row(self.label, marks, *told, {ratios.BEHIND: "worse", ratios.FIRST: "reap"}.get(self.state, "ink"))


# --- today's questions ----------------------------------------------------------------------------------------------------------

TITLES = {"one thread, shared or not": "One thread in a region", "two threads": "Two threads in a region", "with frees": "Regions with frees",
         "with frees, out of cache": "With frees, out of cache"}


def of_pools():
    for name, labels in pools.GROUPS.items():
        threads = name.startswith("two threads")
        title = TITLES.get(name, name[0].upper() + name[1:])
        figure = ("ns", "ns an object, by the clock") if threads else ("cpu_ns", "ns of CPU time an object")
        yield Group(title, "pools", "|".join(map(re.escape, labels)), *figure)


Question = collections.namedtuple("Question", "title text groups")


def questions():
    return [
        Question("Which malloc for which program?", "Programs of Debian's, the malloc preloaded. Interpreters have their own "
                 "pools switched off.", [
                     Group("CPU time of programs", "programs", ".*", "cpu", "seconds of CPU time", base="glibc", short="Programs: CPU time"),
                     Group("Peak memory of programs", "programs", ".*", "rss", "MiB of RSS", "memory", median, base="glibc",
                           short="Programs: peak memory"),
                     Group("Small programs that wait", "small", ".*", "shared_out", "KiB of PSS of one process", "memory", median,
                           base="glibc", short="Small programs: PSS", note="PSS has the pages of a preloaded library in full where one "
                           "process alone maps it.")]),
        Question("Which malloc with threads?", "Workloads that are written after what the papers tell of theirs.", [
            Group("Small loops of one thread", "mallocs", "(pairs|batch|sizes).*", "ns", "ns a malloc and its free", base="glibc",
                  short="Small loops: time"),
            Group("Two threads: time", "threads", ".* 2", "ns", "ns an operation, by the clock", base="glibc"),
            Group("Sixteen threads: time", "threads", ".* 16", "ns", "ns an operation, by the clock", base="glibc"),
            Group("Threads: peak memory", "threads", ".*", "rss", "MiB of RSS", "memory", median, base="glibc"),
            Group("A server that searches", "server", "(mt|mp|event) [0-9]+", "ns", "ms a request, by the clock", base="glibc", scale=1e-6,
                  short="A server: time")]),
        Question("Which region library for which load?", "The same workloads on regions of each kind. A list is malloc with a list of the "
                 "objects, on the malloc that does best; raw is a region by hand and bump a pointer alone, which nobody needs to "
                 "beat.", list(of_pools()) + [
                     Group("The ordinary request", "requests", "(?!waited).*", "cpu_ns", "ns of CPU time a request"),
                     Group("A connection that has served", "requests", "waited .*", "idle_rss", "KiB of RSS for a connection that waits", "memory",
                           median, short="Idle connections: memory"),
                     Group("Programs that had allocators of their own", "custom", ".*", "cpu_ns", "ns of CPU time an object", base="own",
                           short="Custom allocators: time", note="After the thesis' chapters 5 and 6. Mallocs have an emulator of "
                           "regions there: an array of addresses beside each."),
                     Group("An idle region", "memory", "idle .*", "a_pool", "KiB of RSS for a region with three objects", "memory", median,
                           short="An idle region: memory"),
                     Group("64 MB of small objects", "memory", "hold", "rss_asked", "growth of RSS over the bytes asked for", "memory", median,
                           short="64 MB of objects: memory"),
                     Group("What is left when a tenth lives on", "memory", "fall", "left_later", "the share of RSS that is left after a second",
                           "memory", median, short="Memory that is left")]),
        Question("On a busy machine?", "Threads beside eight processes that only turn (crowded), or more threads than CPUs (many). "
                 "A thread may lose its CPU inside of any call.", [
                     Group("Busy machines: time", "busy", "(?!reaps).* (crowded|shared|many) .*", "ns", "µs an operation",
                           summary=median, base="glibc", scale=1e-3),
                     Group("Busy machines: slow calls", "busy", "(?!reaps).* (crowded|shared|many) .*", "malloc_999",
                           "µs, the 99.9th percentile of single mallocs", summary=median, base="glibc", scale=1e-3)]),
    ]


def means(panels, base):
    """(contestant's cell, geometric mean of its ratios) of who ran all cases; and the names of who did not."""
    panels = [panel for panel in panels if not base or panel.of(base)]
    found, names = {}, {}
    for panel in panels:
        for cell in panel.cells:
            names.setdefault(cell.name, cell)
            if cell.to_base:
                found.setdefault(cell.name, []).append(cell.to_base)
    full = [(names[name], ratios.geometric_mean(values)) for name, values in found.items() if len(values) == len(panels)]
    left = [name for name, cell in names.items() if len(found.get(name, [])) < len(panels)
            and cell.word != "absent"]
    return full, left


class View:
    """All panels of a report."""

    def __init__(self, blocks):
        self.blocks = blocks
        self.questions = questions()
        self.panels = {id(group): [Panel(block, group, self.block(f"{group.suite} check", block.case.label)) for block in group.blocks(blocks)]
                       for question in self.questions for group in question.groups}

    def block(self, suite, label):
        return next((b for b in self.blocks if b.suite == suite and b.case.label == label), None)

    def summary(self):
        """(group, panels with a verdict) in the order of the questions."""
        for question in self.questions:
            for group in question.groups:
                panels = [panel for panel in self.panels[id(group)] if panel.state]
                if panels:
                    yield group, panels

    def rows(self):
        """Where ours stands: a row of texts for each group."""
        for group, panels in self.summary():
            means, states = [panel.to_best for panel in panels if panel.to_best > 0], [panel.state for panel in panels]
            worst = max(panels, key=lambda panel: panel.to_best)
            yield [group.short, str(len(panels)), f"{ratios.geometric_mean(means):.2f}" if means else "-",
                   *(str(states.count(state)) for state in (ratios.FIRST, ratios.ALONGSIDE, ratios.BEHIND, ratios.OPEN)),
                   f"{worst.to_best:.2f}", f"{worst.label}, {worst.peer.name}"]
