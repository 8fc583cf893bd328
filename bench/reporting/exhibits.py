# SPDX-License-Identifier: Apache-2.0
"""The papers' tables and figures, with ours beside them: which case serves for which row, as bars, lines and tables."""
import re
import statistics

from . import draw
from .charts import Group, Panel
from .draw import Bar, number
from .papers import Paper
from .reasons import reason

SUMMARIES = {"min": min, "median": statistics.median}
OFFSETS = {"mt 8": [Paper("Static, both", 1.07), Paper("Static, lockbox", 1.10), Paper("Dynamic, both", 1.07), Paper("Dyn., lockbox", 1.06)],
           "mp 8": [Paper("BaseAlloc, block", 1.03)], "event 4": [Paper("Dynamic", 0.91, 1.07, "0.91–1.07")]}


class Picture:
    def __init__(self, label, svg, says="", note="", meta=None):
        self.label, self.svg, self.says, self.note, self.meta = label, svg, says, note, meta


class Shown:
    """A sentence; pictures; tables as (title, heads, rows); and what is missing, by reason."""

    def __init__(self):
        self.says, self.pictures, self.tables, self.missing = "", [], [], {}


def matching(view, row, figure):
    """The block that serves for a row: the first that was measured, in the order of the patterns' alternatives."""
    if row.ours is None:
        return None
    suites, cases = row.ours[:2]
    for case in cases.split("|") if "(" not in cases else [cases]:
        for suite in suites.split("|") if "(" not in suites else [suites]:
            for block in view.blocks:
                if re.fullmatch(suite, block.suite) and re.fullmatch(case, block.case.label) \
                        and any(block.values(c.name, key) for c in block.present() for key in figures_of(figure)):
                    return block
    return None


def figures_of(figure):
    """Without a figure: fragmentation, of which ours has two."""
    return [figure] if figure else ["held_asked", "rss_asked"]


def paper_bar(paper):
    return Bar(paper.name, paper.value, paper.told or number(paper.value), "paper", "paper", high=paper.to)


def own_bars(panel, exhibit, row, base):
    """Ours and the peers', relative to the base or as they are."""
    for cell in panel.cells:
        if not re.fullmatch(row.only, cell.name) or cell.word in ("cannot", "absent"):
            continue
        name = row.names.get(cell.name, cell.name)
        ours = cell.contestant.ours
        if not cell.figure:
            yield Bar(name, shown=cell.word, bold=ours)
            continue
        value, beside = cell.figure.value, ""
        if base:
            value = panel.ratio(cell, base)
            if value is None:
                continue
            value, beside = 1 / value if exhibit.inverse else value, number(cell.figure.value * exhibit.scale)
        yield Bar(name, value, number(value), beside, draw.colour(cell.name, ours), cell is panel.ours)


def fragmentation_bars(block):
    """A/U: what ours counts as held, and for all the growth of RSS."""
    for contestant in block.present():
        cls = draw.colour(contestant.name, contestant.ours)
        held, rss = (block.figure(contestant.name, key, statistics.median) for key in ("held_asked", "rss_asked"))
        if held:
            yield Bar(f"{contestant.name}, held", held.value, number(held.value), "", cls, True)
        if rss:
            yield Bar(f"{contestant.name}, RSS", rss.value, number(rss.value), "", cls, contestant.ours)


def row_picture(view, exhibit, row, block):
    figure = row.ours[2] if len(row.ours) > 2 and row.ours[2] else exhibit.figure
    papers = [paper_bar(paper) for paper in row.paper]
    if figure is None:
        bars = papers + list(fragmentation_bars(block))
        return Picture(row.label, draw.bars(about(row, exhibit, bars), bars, 1), fragmentation_says(bars, row, block), row.note)
    group = Group(exhibit.title, block.suite, re.escape(block.case.label), figure, exhibit.unit, exhibit.kind,
                  SUMMARIES[exhibit.summary], exhibit.base)
    panel = Panel(block, group)
    panel.called = row.label
    base = panel.of(exhibit.base) if exhibit.base else None
    if exhibit.base and not base and exhibit.relative:
        base = panel.peer  # where nobody has the base, the best peer serves
    bars = papers + list(own_bars(panel, exhibit, row, base if exhibit.relative else None))
    says = panel.says() if panel.peer else ""
    return Picture(row.label, draw.bars(about(row, exhibit, bars), bars, 1 if exhibit.relative else None), says, row.note, panel)


def about(row, exhibit, bars):
    return f"{exhibit.title}, {row.label}: " + ", ".join(f"{bar.name} {bar.shown}" for bar in bars)


def fragmentation_says(bars, row, block):
    """Ours beside the paper's, and beside the peers by RSS."""
    held = next((bar for bar in bars if bar.name.endswith(", held")), None)
    rss = {bar.name.removesuffix(", RSS"): bar.value for bar in bars if bar.name.endswith(", RSS")}
    says = []
    if held and row.paper:
        paper = row.paper[0].value
        says.append(f"reap counts {held.value / paper:.2f} times the paper's A/U." if held.value > paper * 1.03 else
                    "reap's A/U is not above the paper's.")
    mine, peers = rss.pop("reap", None), rss
    if mine and peers:
        best = min(peers, key=peers.get)
        says.append(f"By RSS reap has {mine / peers[best]:.2f} of {best}, the best peer.")
        if mine > peers[best] * 1.03:
            says.append(reason(block.suite, block.case.label, "memory"))
    return " ".join(says)


# --- lines ------------------------------------------------------------------------------------------------------------------

def by_threads(view, workload):
    """Blocks of a workload by their number of threads, of the suites that look at time."""
    found = {}
    for block in view.blocks:
        words = block.case.label.rsplit(" ", 1)
        if block.suite in ("threads", "scaling") and words[0] == workload and words[-1].isdigit():
            found.setdefault(int(words[1]), block)
    return dict(sorted(found.items()))


def speedups(view, workload):
    """By contestant: (threads, throughput relative to glibc's with one thread)."""
    blocks = by_threads(view, workload)
    base = blocks[1].figure("glibc", "ns") if 1 in blocks else None
    if not base:
        return {}
    lines = {}
    for threads, block in blocks.items():
        for contestant in block.present():
            figure = block.figure(contestant.name, "ns")
            if figure:
                lines.setdefault((contestant.name, contestant.ours), []).append((threads, base.value / figure.value))
    return {who: points for who, points in lines.items() if len(points) > 1}


def line_pictures(view, shown, workloads):
    rows = []
    for workload in workloads:
        found = speedups(view, workload)
        if not found:
            shown.missing.setdefault("not in this run", []).append(workload)
            continue
        ticks = sorted({x for points in found.values() for x, _ in points})
        lines = [draw.Line(name, points, draw.colour(name, ours), ours) for (name, ours), points in found.items()]
        called = {"thrash": "active-false (thrash)", "scratch": "passive-false (scratch)"}.get(workload, workload)
        svg = draw.lines(f"{called}: throughput by threads", lines, "threads", "throughput", [(x, str(x)) for x in ticks])
        best = {name: max(v for _, v in points) for (name, _), points in found.items()}
        mine = next((best[name] for (name, ours) in found if ours), None)
        peer = max((name for (name, ours) in found if not ours), key=best.get, default=None)
        says = f"At its best reap has {mine / best[peer]:.2f} of {peer}'s throughput, the best peer." if mine and peer else ""
        if mine and peer and mine < best[peer] * 0.97:
            says += " " + reason("threads", f"{workload} 2", "time")
        shown.pictures.append(Picture(called, svg, says))
        rows += [[f"{workload}, {name}"] + [next((number(v) for at, v in points if at == x), "") for x in ticks]
                 for (name, _), points in found.items()]
        heads = [""] + [f"{x} threads" for x in ticks]
    if rows:
        shown.tables.append(("Numbers", heads, rows))


def dynamic_pictures(view, shown):
    """heaps=dynamic:N in both kinds of servers, and what N is at its ends: roundrobin and thread."""
    for block in [b for b in view.blocks if any(c.options.startswith("heaps=dynamic:") for c in b.contestants) and b.suite != "policies"]:
        values = {c.options.removeprefix("heaps=").removeprefix("dynamic:"): block.figure(c.name, "ns", statistics.median)
                  for c in block.present()}
        values = {n: figure.value for n, figure in values.items() if figure}
        numbers = sorted(int(n) for n in values if n.isdigit())
        if "50" not in values or len(numbers) < 2:
            continue
        points = [(n, values["50"] / values[str(n)]) for n in numbers]
        if "thread" in values:
            points.append((10**9, values["50"] / values["thread"]))
        ticks = [(n, "∞" if n == 10**9 else f"{n / 1000:.3g}k" if n >= 1000 else str(n)) for n, _ in points]
        sparse = [(n, told if i % 2 == 0 or n == 10**9 else "") for i, (n, told) in enumerate(ticks)]  # as there is room
        svg = draw.lines(f"{block.case.label}: throughput by N", [draw.Line("reap", points, "reap", True)],
                         "N mallocs at one heap; ∞: heaps=thread", "throughput", sparse)
        shown.pictures.append(Picture(SERVERS.get(block.case.label, block.case.label), svg, meta=None))
        shown.tables.append((f"Numbers: {block.case.label}", ["N", "throughput", "ms a request"],
                             [[told, number(v), number(values["thread" if n == 10**9 else str(n)] / 1e6)] for (n, v), (_, told) in zip(points, ticks)]))
    if not shown.pictures:
        shown.missing.setdefault("not in this run", []).append("heaps=dynamic:N")


SERVERS = {"mt 8": "a server with 8 threads", "event 4": "a server of events, 4 threads", "mp 8": "a server of 8 processes"}


def offset_pictures(view, shown):
    """What it brings that each stack begins somewhere else: throughput with it over throughput without."""
    rows = []
    for model in SERVERS:
        plain, shifted = (view.block("server", label) for label in (model, model + " offset"))
        if not plain or not shifted:
            continue
        bars = [paper_bar(paper) for paper in OFFSETS.get(model, [])]
        for c in plain.present():
            without, with_ = (b.figure(c.name, "ns", min) for b in (plain, shifted))
            if without and with_:
                gain = without.value / with_.value
                bars.append(Bar(c.name, gain, number(gain), "", draw.colour(c.name, c.ours), c.ours))
                rows.append([model, c.name, number(gain)])
        if any(bar.cls != "paper" for bar in bars):
            shown.pictures.append(Picture(SERVERS[model], draw.bars(f"{model}: throughput with offsets", bars, 1)))
    if rows:
        shown.tables.append(("Numbers", ["model", "", "throughput with offsets over without"], rows))
    else:
        shown.missing.setdefault("not in this run", []).append("stacks with offsets")


# --- all ---------------------------------------------------------------------------------------------------------------------

def shown(view, exhibit):
    result = Shown()
    if exhibit.key == "smt-5":
        dynamic_pictures(view, result)
    elif exhibit.key == "smt-offsets":
        offset_pictures(view, result)
    elif exhibit.lines:
        line_pictures(view, result, exhibit.lines)
    table_rows = []
    for row in exhibit.rows:
        block = matching(view, row, row.ours[2] if row.ours and len(row.ours) > 2 and row.ours[2] else exhibit.figure)
        if block is None:
            result.missing.setdefault(row.why, []).append(row.label)
            continue
        picture = row_picture(view, exhibit, row, block)
        result.pictures.append(picture)
        names = [paper.name for paper in row.paper]
        table_rows += [[row.label, f"paper: {name}", paper.told or number(paper.value)] for name, paper in zip(names, row.paper)]
        table_rows += own_rows(picture, exhibit, row, block)
    if table_rows:
        result.tables.append(("Numbers", ["", "", exhibit.unit or "value", "measured", "spread"], [r + [""] * (5 - len(r)) for r in table_rows]))
    if exhibit.table:
        heads, rows = exhibit.table
        result.tables.append(("The paper's table", heads, [[str(rows_[0])] + [f"{v:,}" if isinstance(v, int) else f"{v:g}" for v in rows_[1:]]
                                                          for rows_ in rows]))
    return result


def own_rows(picture, exhibit, row, block):
    """The measured values behind a picture, with their spread."""
    if picture.meta is None:
        for bar in fragmentation_bars(block):
            yield [row.label, bar.name, number(bar.value)]
        return
    panel = picture.meta
    base = (panel.of(exhibit.base) or panel.peer) if exhibit.base and exhibit.relative else None
    for cell in panel.cells:
        if cell.figure and re.fullmatch(row.only, cell.name):
            relative = panel.ratio(cell, base) if base else cell.figure.value
            relative = 1 / relative if relative and exhibit.inverse and base else relative
            spread = "one round" if cell.figure.spread is None else f"{cell.figure.spread:.0%}"
            yield [row.label, row.names.get(cell.name, cell.name), number(relative) if relative else "", number(cell.figure.value), spread]
