# SPDX-License-Identifier: Apache-2.0
"""The page (page.html) from what was measured, and the pictures of doc/figures.md."""
import functools
import pathlib
import re
import textwrap
import time
from html import escape

import jinja2

from . import charts, draw, exhibits, machine, papers, ratios # the template has all names of this module
from .draw import number
from .words import meaning

FEW = 4  # cases that are shown as bars at once
HERE = pathlib.Path(__file__).parent
TILES = {ratios.FIRST: "first: less than the best peer", ratios.ALONGSIDE: f"level: within {ratios.LEVEL:.0%} or the noise",
         ratios.BEHIND: "behind the best peer", ratios.OPEN: "not settled: one round, or more noise than gap"}


def slug(title):
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")


def date(seconds):
    return time.strftime("%-d %B %Y, %H:%M", time.localtime(seconds))


def colours():
    """The variables of all pictures, light and dark."""
    light, dark = (" ".join(f"--{name}: {both[i]};" for name, both in draw.COLOURS.items()) for i in (0, 1))
    return f":root {{ color-scheme: light dark; {light} }}\n@media (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}\n"


# --- a group ---------------------------------------------------------------------------------------------------------------

def sure(panel):
    """How sure it is: rounds, spread, and how busy the machine was; and its class."""
    told = panel.block.noise()
    rounds = max((len(cell.figure.values) for cell in panel.cells if cell.figure), default=0)
    spreads = [cell.figure.spread for cell in panel.cells if cell.figure and cell.figure.spread is not None]
    spread = f", spread up to {max(spreads):.0%}" if spreads else ""
    busy = "" if told is None or machine.is_quiet(told) else f"; busy machine: {machine.takers(told)} of the CPUs"
    return f"{rounds} round{'s' * (rounds != 1)}{spread}{busy}", "meta busy" if busy else "meta"


def picture_of(panel):
    rows = [panel.bar(cell) for cell in panel.shown()]
    base = panel.of(panel.group.base) if panel.group.base else panel.peer
    about = f"{panel.label}: {panel.group.unit}; " + ", ".join(f"{row.name} {row.shown}" for row in rows)
    return draw.bars(about, rows, base.figure.value if base else None)


def cases(group, panels):
    """The picture of many cases, as a function of its width."""
    rows = [panel.row() for panel in panels]
    about = f"{group.title}: " + "; ".join(f"{row.label} {row.told}" for row in rows)
    return functools.partial(draw.marks, about, rows, group.base or "the best peer")


def means(group, panels, peers_alone=False):
    """Bars of the geometric means over all cases, of those who ran them all; and who did not."""
    full, left = charts.means(panels, group.base)
    lists = sorted((pair for pair in full if pair[0].name.startswith("list ")), key=lambda pair: pair[1])
    full = [pair for pair in full if pair not in lists[1:] and (not peers_alone or pair is full[0] or pair[0].contestant.peer)]
    best = min((mean for cell, mean in full if not cell.contestant.yardstick), default=None)
    first = next((cell for cell, _ in full if cell.contestant.ours), None)
    return [draw.Bar(cell.name, mean, number(mean), "", draw.look(cell.name, cell.contestant.ours)[0], cell is first, mean == best)
            for cell, mean in full], left


def reasons(panels):
    """Where ours is not first, and why, each reason once."""
    found = {}
    for panel in panels:
        if panel.state in (ratios.BEHIND, ratios.OPEN) and panel.to_best > 1:
            found.setdefault(panel.why(), {}).setdefault(panel.called, f"{panel.to_best:.2f} of {panel.peer.name}")
    return found


def cell_text(cell):
    if not cell.figure:
        return cell.word
    spread = "" if cell.figure.spread is None else f" ±{cell.figure.spread:.0%}"
    return number(cell.figure.value) + spread + (f", {len(cell.failed)} failed: {cell.failed[-1]}" if cell.failed else "")


def numbers(panels):
    """Heads and rows of a table."""
    names = list(dict.fromkeys(cell.name for panel in panels for cell in panel.cells))
    texts = [{cell.name: cell_text(cell) for cell in panel.cells} for panel in panels]
    return ["", *names, "reap to best peer"], [[panel.label, *(text.get(name, "") for name in names), f"{panel.to_best:.2f}" if panel.state else ""]
                                               for panel, text in zip(panels, texts)]


def counted(panels):
    """How often ours is first, level, behind."""
    states = [panel.state for panel in panels if panel.state]
    words = [f"{'not settled' if state == ratios.OPEN else state} in {states.count(state)}" for state in TILES if state in states]
    return f"Of {len(states)} cases reap is {', '.join(words)}." if len(states) > 1 else ""


# --- all of it ---------------------------------------------------------------------------------------------------------------

def failures(view):
    """What failed, each line once."""
    found = {}
    for block in view.blocks:
        for run in (run for round_ in block.rounds for run in round_.runs.values() if "failed" in run):
            line = (run.get("told") or run["failed"]).splitlines()[0]
            found[line] = found.get(line, 0) + 1
    return [f"{line}{f' ({n} times)' if n > 1 else ''}" for line, n in found.items()]


def overview_rows(view):
    for group, panels in view.summary():
        dots = [(panel.label, panel.to_best, "reap" if panel.to_best < 0.97 else "worse" if panel.to_best > 1.03 else "glibc", "o", False)
                for panel in panels if panel.to_best > 0]
        if dots:
            told = f"{len(dots)} case{'s' * (len(dots) != 1)}, mean {ratios.geometric_mean([dot[1] for dot in dots]):.2f}"
            yield draw.Row(group.short, sorted(dots, key=lambda dot: dot[1]), told, told, "soft")


def overview(rows):
    """The picture as a function of its width."""
    return functools.partial(draw.marks, "Where reap stands", rows, "the best peer", key=False)


def page(view, facts, notes, told):
    """told: lines for the top: what kind of report it is, whether it was interrupted, how busy the machine was."""
    environment = jinja2.Environment(loader=jinja2.FileSystemLoader(HERE), autoescape=True, trim_blocks=True, undefined=jinja2.StrictUndefined)
    environment.filters["slug"] = slug
    questions = [(question, [(group, view.panels[id(group)]) for group in question.groups if view.panels[id(group)]]) for question in view.questions]
    return environment.get_template("page.html").render(
        globals(), view=view, facts=facts, notes=notes, told=told, questions=[both for both in questions if both[1]], rows=list(overview_rows(view)),
        states=[panel.state for _, panels in view.summary() for panel in panels], style=colours() + (HERE / "page.css").read_text(encoding="utf-8"))


# --- pictures for other pages ----------------------------------------------------------------------------------------------------

def sheet(title, panels, columns, caption):
    """Panels (title, svg) in columns as a file of their own, with colours for light and dark, a title, and what it was measured on."""
    sizes = [tuple(map(int, re.search(r'viewBox="0 0 (\d+) (\d+)"', svg).groups())) for _, svg in panels]
    broad, parts, y = max(width for width, _ in sizes) + 24, [], 44
    for i, ((head, svg), (width, height)) in enumerate(zip(panels, sizes)):
        x, below = 16 + i % columns * broad, 22 * bool(head)
        parts += [f'<text x="{x}" y="{y + 14}" class="strong">{escape(head)}</text>\n',
                  str(svg).replace("<svg ", f'<svg x="{x}" y="{y + below}" width="{width}" height="{height}" ', 1)]
        if i % columns == columns - 1 or i == len(panels) - 1:
            y += max(height for _, height in sizes[i - i % columns:i + 1]) + below + 18
    width = columns * broad + 8
    lines = [part for line in caption for part in textwrap.wrap(line, width // 7)]
    parts += [f'<text x="16" y="{y + 10 + 17 * i}" class="soft">{escape(line)}</text>\n' for i, line in enumerate(lines)]
    height = y + 10 + 17 * len(lines)
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" '
            f'aria-label="{escape(title)}">\n<style>\n{colours()}svg {{ font: 12.5px system-ui, "DejaVu Sans", sans-serif; fill: var(--ink); }} '
            '.title { font-size: 17px; } .title, .strong { font-weight: 700; } .soft { fill: var(--soft); }\n</style>\n'
            f'<rect width="100%" height="100%" style="fill: var(--card)"/>\n<text x="16" y="28" class="title">{escape(title)}</text>\n'
            + "".join(parts) + "</svg>\n")


MAIN = ["Programs: CPU time", "Programs: peak memory", "Two threads: time", "Threads: peak memory", "Regions", "Regions with frees"]


def pictures(view, caption):
    """The main figures, by file name: where ours stands, and everybody's geometric means."""
    found, rows, panels = {}, list(overview_rows(view)), []
    if rows:
        found["report-overview.svg"] = sheet("What reap needs, over what the best peer of each case needs", [("", overview(rows)(940))], 1, caption)
    for group, of_group in view.summary():
        bars, _ = means(group, of_group, peers_alone=True)
        if group.short in MAIN and len(bars) > 2 and len(of_group) > 1:
            panels.append((f"{group.short}; {group.base or 'best peer'} = 1", draw.bars(group.short, bars, 1)))
    if panels:
        found["report-means.svg"] = sheet("Geometric means over the cases of each kind; less is better", panels, 2, caption)
    return found
