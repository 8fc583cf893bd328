# SPDX-License-Identifier: Apache-2.0
"""The papers' tables and figures, with ours beside them: which case serves for which row, as bars, lines and tables."""
import collections
import re
import statistics

from . import draw
from .charts import Group, Panel
from .draw import Bar, number
from .papers import Paper
from .reasons import reason

median = statistics.median
OFFSETS = {"mt 8": [Paper("Static, both", 1.07), Paper("Static, lockbox", 1.10), Paper("Dynamic, both", 1.07), Paper("Dyn., lockbox", 1.06)],
           "mp 8": [Paper("BaseAlloc, block", 1.03)], "event 4": [Paper("Dynamic", 0.91, 1.07, "0.91–1.07")]}
SERVERS = {"mt 8": "a server with 8 threads", "event 4": "a server of events, 4 threads", "mp 8": "a server of 8 processes"}
CALLED = {"thrash": "active-false (thrash)", "scratch": "passive-false (scratch)"}


Picture = collections.namedtuple("Picture", "label svg says note panel", defaults=("", "", None))


class Shown:
    """Pictures; tables as (title, heads, rows); and what is missing, by reason."""

    def __init__(self):
        self.pictures, self.tables, self.missing = [], [], {}

    def misses(self, why, name):
        self.missing.setdefault(why, []).append(name)


def alternatives(pattern):
    return pattern.split("|") if "(" not in pattern else [pattern]


def matching(view, exhibit, row):
    """The block that serves for a row: the first that was measured, in the order of the patterns' alternatives; and its figure. Without
    a figure it is fragmentation, of which ours has two."""
    suites, cases, *figure = row.ours or ("", "")
    figure = figure and figure[0] or exhibit.figure
    keys = [figure] if figure else ["held_asked", "rss_asked"]
    return next(((block, figure) for case in alternatives(cases) for suite in alternatives(suites) for block in view.blocks
                 if re.fullmatch(suite, block.suite) and re.fullmatch(case, block.case.label)
                 and any(block.values(c.name, key) for c in block.present() for key in keys)), (None, None))


def paper_bar(paper):
    return Bar(paper.name, paper.value, paper.told or number(paper.value), "paper", "paper", high=paper.to)


# --- bars: a row of a table ---------------------------------------------------------------------------------------------------

def own_cells(panel, exhibit, row, base):
    """Ours and the peers', each with its value as it is shown: relative to the base, or as it is."""
    for cell in panel.cells:
        if re.fullmatch(row.only, cell.name) and cell.word not in ("cannot", "absent"):
            value = cell.figure and (panel.ratio(cell, base) if base else cell.figure.value)
            yield cell, row.names.get(cell.name, cell.name), 1 / value if value and base and exhibit.inverse else value


def fragmentation_bars(block):
    """A/U: what ours counts as held, and for all the growth of RSS."""
    for contestant in block.present():
        for key, what in (("held_asked", "held"), ("rss_asked", "RSS")):
            figure = block.figure(contestant.name, key, median)
            if figure:
                yield Bar(f"{contestant.name}, {what}", figure.value, number(figure.value), "", draw.look(contestant.name, contestant.ours)[0],
                          contestant.ours)


def fragmentation_says(bars, row, block):
    """Ours beside the paper's, and beside the peers by RSS."""
    held = next((bar.value for bar in bars if bar.name.endswith(", held")), None)
    rss = {bar.name.removesuffix(", RSS"): bar.value for bar in bars if bar.name.endswith(", RSS")}
    mine, says, paper = rss.pop("reap", None), [], row.paper and row.paper[0].value
    if held and paper:
        says.append(f"reap counts {held / paper:.2f} times the paper's A/U." if held > paper * 1.03 else "reap's A/U is not above the paper's.")
    if mine and rss:
        best = min(rss, key=rss.get)
        says.append(f"By RSS reap has {mine / rss[best]:.2f} of {best}, the best peer.")
        says += [reason(block.suite, block.case.label, "memory")] * (mine > rss[best] * 1.03)
    return " ".join(says)


def show_row(shown, exhibit, row, block, figure):
    """Its picture, and its rows of the table of numbers."""
    bars, panel, line = [paper_bar(paper) for paper in row.paper], None, 1
    numbers = [[row.label, f"paper: {bar.name}", bar.shown, "", ""] for bar in bars]
    if figure is None:
        own = list(fragmentation_bars(block))
        numbers += [[row.label, bar.name, bar.shown, "", ""] for bar in own]
        says = fragmentation_says(own, row, block)
    else:
        group = Group(exhibit.title, block.suite, "", figure, exhibit.unit, exhibit.kind, min if exhibit.summary == "min" else median, exhibit.base)
        panel = Panel(block, group)
        panel.called, says, line = row.label, panel.says() if panel.peer else "", 1 if exhibit.relative else None
        # Where nobody has the base, the best peer serves.
        base = (panel.of(exhibit.base) if exhibit.base else None) or exhibit.base and panel.peer if exhibit.relative else None
        cells = [told for told in own_cells(panel, exhibit, row, base) if told[2] is not None or not told[0].figure]
        own = [Bar(name, value, number(value), number(cell.figure.value * exhibit.scale) if base else "", draw.look(cell.name, cell.contestant.ours)[0],
                   cell is panel.ours) if cell.figure else Bar(name, shown=cell.word, bold=cell.contestant.ours) for cell, name, value in cells]
        numbers += [[row.label, name, number(value), number(cell.figure.value), "one round" if cell.figure.spread is None else f"{cell.figure.spread:.0%}"]
                    for cell, name, value in cells if cell.figure]
    bars += own
    about = f"{exhibit.title}, {row.label}: " + ", ".join(f"{bar.name} {bar.shown}" for bar in bars)
    shown.pictures.append(Picture(row.label, draw.bars(about, bars, line), says, row.note, panel))
    return numbers


# --- lines ------------------------------------------------------------------------------------------------------------------

def speedups(view, workload):
    """By contestant: (threads, throughput relative to glibc's with one thread), of the suites that look at time."""
    blocks, lines = {}, {}
    for block in view.blocks:
        name, _, threads = block.case.label.rpartition(" ")
        if block.suite in ("threads", "scaling") and name == workload and threads.isdigit():
            blocks.setdefault(int(threads), block)
    base = blocks[1].figure("glibc", "ns") if 1 in blocks else None
    for threads, block in sorted(blocks.items()) if base else ():
        for contestant in block.present():
            figure = block.figure(contestant.name, "ns")
            if figure:
                lines.setdefault((contestant.name, contestant.ours), []).append((threads, base.value / figure.value))
    return {who: points for who, points in lines.items() if len(points) > 1}


def show_lines(view, shown, workloads):
    rows, heads = [], [""]
    for workload in workloads:
        found = speedups(view, workload)
        if not found:
            shown.misses("not in this run", workload)
            continue
        ticks = sorted({x for points in found.values() for x, _ in points})
        called, heads = CALLED.get(workload, workload), [""] + [f"{x} threads" for x in ticks]
        best = {who: max(v for _, v in points) for who, points in found.items()}
        mine, peer = next((best[who] for who in found if who[1]), None), max((who for who in found if not who[1]), key=best.get, default=None)
        says = f"At its best reap has {mine / best[peer]:.2f} of {peer[0]}'s throughput, the best peer." if mine and peer else ""
        says += " " + reason("threads", f"{workload} 2", "time") if says and mine < best[peer] * 0.97 else ""
        shown.pictures.append(Picture(called, draw.lines(
            f"{called}: throughput by threads", [(name, points, draw.look(name, ours), ours) for (name, ours), points in found.items()],
            "threads", "throughput", [(x, str(x)) for x in ticks]), says))
        rows += [[f"{workload}, {name}"] + [number(dict(points)[x]) if x in dict(points) else "" for x in ticks] for (name, _), points in found.items()]
    shown.tables += [("Numbers", heads, rows)] * bool(rows)


def show_dynamic(view, shown):
    """heaps=dynamic:N in both kinds of servers, and what N is at its end: thread."""
    for block in [b for b in view.blocks if any(c.options.startswith("heaps=dynamic:") for c in b.contestants) and b.suite != "policies"]:
        figures = {c.options.removeprefix("heaps=").removeprefix("dynamic:"): block.figure(c.name, "ns", median) for c in block.present()}
        values = {n: figure.value for n, figure in figures.items() if figure}
        order = sorted((n for n in values if n.isdigit()), key=int) + [n for n in values if n == "thread"]
        if "50" not in values or len(order) < 3:
            continue
        told = {n: "∞" if n == "thread" else f"{int(n) / 1000:.3g}k" if int(n) >= 1000 else n for n in order}
        points, called = [(n, values["50"] / values[n]) for n in order], SERVERS.get(block.case.label, block.case.label)
        ticks = [(n, told[n] if i % 2 == 0 or n == "thread" else "") for i, n in enumerate(order)]  # as there is room
        shown.pictures.append(Picture(called, draw.lines(f"{called}: throughput by N", [("reap", points, draw.look("reap"), True)],
                                                         "N mallocs at one heap; ∞: heaps=thread", "throughput", ticks)))
        shown.tables.append((f"Numbers: {block.case.label}", ["N", "throughput", "ms a request"],
                             [[told[n], number(ratio), number(values[n] / 1e6)] for n, ratio in points]))
    if not shown.pictures:
        shown.misses("not in this run", "heaps=dynamic:N")


def show_offsets(view, shown):
    """What it brings that each stack begins somewhere else: throughput with it over throughput without."""
    rows = []
    for model, called in SERVERS.items():
        plain, shifted = (view.block("server", label) for label in (model, model + " offset"))
        own = []
        for c in plain.present() if plain and shifted else ():
            without, with_ = (b.figure(c.name, "ns", min) for b in (plain, shifted))
            if without and with_:
                gain = without.value / with_.value
                own.append(Bar(c.name, gain, number(gain), "", draw.look(c.name, c.ours)[0], c.ours))
        if own:
            bars = [paper_bar(paper) for paper in OFFSETS.get(model, [])] + own
            shown.pictures.append(Picture(called, draw.bars(f"{called}: throughput with offsets", bars, 1)))
            rows += [[model, bar.name, bar.shown] for bar in own]
    if rows:
        shown.tables.append(("Numbers", ["model", "", "throughput with offsets over without"], rows))
    else:
        shown.misses("not in this run", "stacks with offsets")


def shown(view, exhibit):
    result, numbers = Shown(), []
    if exhibit.key == "smt-5":
        show_dynamic(view, result)
    elif exhibit.key == "smt-offsets":
        show_offsets(view, result)
    elif exhibit.lines:
        show_lines(view, result, exhibit.lines)
    for row in exhibit.rows:
        block, figure = matching(view, exhibit, row)
        if block:
            numbers += show_row(result, exhibit, row, block, figure)
        else:
            result.misses(row.why, row.label)
    if numbers:
        result.tables.append(("Numbers", ["", "", exhibit.unit or "value", "measured", "spread"], numbers))
    if exhibit.table:
        heads, rows = exhibit.table
        result.tables.append(("The paper's table", heads, [[first, *(f"{v:,}" if isinstance(v, int) else f"{v:g}" for v in values)]
                                                          for first, *values in rows]))
    return result
