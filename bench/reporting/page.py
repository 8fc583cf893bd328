# SPDX-License-Identifier: Apache-2.0
"""The page: what was measured as HTML, with pictures and tables inside, and no other file."""
import os
import re
import textwrap
import time
from html import escape

from . import charts, draw, exhibits, machine, papers, ratios
from .draw import number

HERE = os.path.dirname(os.path.abspath(__file__))
HATCH = ('<svg class="definitions" aria-hidden="true"><defs><pattern id="hatch" width="5" height="5" '
         'patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><path class="hatch" d="M0 0V5"/></pattern></defs></svg>\n')


def style(name):
    with open(os.path.join(HERE, name), encoding="utf-8") as file:
        return file.read()


def slug(title):
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")


def paragraph(content, cls=""):
    return f'<p{f" class={chr(34)}{cls}{chr(34)}" if cls else ""}>{escape(content)}</p>\n' if content else ""


def table(heads, rows, cls=""):
    """Rows of texts; the first is the row's name."""
    head = "".join(f'<th scope="col">{escape(h)}</th>' for h in heads)
    body = "".join(f'<tr><th scope="row">{escape(row[0])}</th>' + "".join(f"<td>{cell}</td>" for cell in map(escape, row[1:])) + "</tr>\n"
                   for row in rows)
    return f'<table{f" class={chr(34)}{cls}{chr(34)}" if cls else ""}>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody></table>\n'


def details(title, content, columns):
    hint = '<p class="hint">The table goes on to the right: push it sideways.</p>\n' if columns > 4 else ""
    return f"<details><summary>{escape(title)}</summary>\n{hint}<div class=\"wide\">{content}</div></details>\n"


# --- panels ------------------------------------------------------------------------------------------------------------------

def meta(panel):
    """How sure it is: rounds, spread, and how busy the machine was."""
    told = panel.block.noise()
    rounds = max((len(cell.figure.values) for cell in panel.cells if cell.figure), default=0)
    spreads = [cell.figure.spread for cell in panel.cells if cell.figure and cell.figure.spread is not None]
    spread = f", spread up to {max(spreads):.0%}" if spreads else ""
    busy = "" if told is None or machine.is_quiet(told) else f"; busy machine: {machine.takers(told)} of the CPUs"
    cls = "meta busy" if busy else "meta"
    return f'<p class="{cls}">{rounds} round{"s" if rounds != 1 else ""}{spread}{busy}</p>\n'


def panel_html(panel):
    rows = panel.rows()
    base = panel.of(panel.group.base) if panel.group.base else panel.peer
    about = f"{panel.label}: {panel.group.unit}; " + ", ".join(f"{row.name} {row.shown}" for row in rows)
    picture = draw.bars(about, rows, base.figure.value if base else None)
    return (f'<div class="panel"><h4>{escape(panel.label)}</h4>\n{paragraph(panel.meaning(), "meta")}{picture}'
            f'{paragraph(panel.says())}{meta(panel)}</div>\n')


def legend(panels):
    """The marks of a picture of many cases."""
    marks = {}
    for panel in panels:
        for name, _, cls, bold, other in panel.case().marks:
            marks.setdefault("malloc and a list, in the malloc's colour" if name.startswith("list ") else name, (cls, bold, other))
    return '<p class="legend">' + " ".join(
        f'<span><svg viewBox="-8 -8 16 16" aria-hidden="true">{draw.mark(name, cls, 0, 0, bold, "", other)}</svg> {escape(name)}</span>'
        for name, (cls, bold, other) in marks.items()) + "</p>\n"


def means_rows(group, panels, peers_alone=False):
    """Bars of the geometric means over all cases, of those who ran them all; and who did not."""
    full, left = charts.means(panels, group.base)
    if peers_alone:
        full = [pair for i, pair in enumerate(full) if i == 0 or pair[0].contestant.peer]
    lists = [pair for pair in full if pair[0].name.startswith("list ")]
    least = min(lists, key=lambda pair: pair[1], default=None)
    full = [pair for pair in full if pair not in lists or pair is least]
    best = min((mean for cell, mean in full if not cell.contestant.yardstick), default=None)
    first = next((cell for cell, _ in full if cell.contestant.ours), None)
    return [draw.Bar(cell.name, mean, number(mean), "", draw.colour(cell.name, cell.contestant.ours), cell is first, mean == best)
            for cell, mean in full], left


def means_html(group, panels):
    rows, left = means_rows(group, panels)
    if len(panels) < 2 or len(rows) < 2:
        return ""
    note = f"Not all cases: {', '.join(left)}." if left else ""
    return (f'<div class="panel"><h4>All {len(panels)} together</h4>\n'
            + paragraph(f"Geometric mean of the ratios to {group.base or 'the best peer of each case'}.", "meta")
            + draw.bars(f"{group.title}: geometric means", rows, 1) + paragraph(note, "meta") + "</div>\n")


def why_list(panels):
    """Where ours is not first, and why, each reason once."""
    reasons = {}
    for panel in panels:
        if panel.state in (ratios.BEHIND, ratios.OPEN) and panel.to_best > 1:
            found, told = reasons.setdefault(panel.why(), []), (panel.called, f"{panel.to_best:.2f} of {panel.peer.name}")
            found += [told] * (told not in found)
    if not reasons:
        return ""
    items = "".join("<li>" + ", ".join(f"<b>{escape(label)}</b> ({escape(told)})" for label, told in labels) + f": {escape(why)}</li>\n"
                    for why, labels in reasons.items())
    return f"<p>Where reap is not first, and why:</p>\n<ul class=\"why\">\n{items}</ul>\n"


def cell_text(cell):
    if not cell.figure:
        return cell.word
    spread = "" if cell.figure.spread is None else f" ±{cell.figure.spread:.0%}"
    failed = f", {len(cell.failed)} failed: {cell.failed[-1]}" if cell.failed else ""
    return f"{number(cell.figure.value)}{spread}{failed}"


def panels_table(panels):
    names = list(dict.fromkeys(cell.name for panel in panels for cell in panel.cells))
    rows = []
    for panel in panels:
        cells = {cell.name: cell_text(cell) for cell in panel.cells}
        to_best = f"{panel.to_best:.2f}" if panel.to_best is not None else ""
        rows.append([panel.label] + [cells.get(name, "") for name in names] + [to_best])
    return details("Numbers", table([""] + names + ["reap to best peer"], rows), len(names) + 2)


def counted_says(panels):
    """How often ours is first, level, behind."""
    states = [panel.state for panel in panels if panel.state]
    words = [f"{what} in {states.count(state)}" for state, what in (
        (ratios.FIRST, "first"), (ratios.ALONGSIDE, "level"), (ratios.BEHIND, "behind"), (ratios.OPEN, "not settled")) if state in states]
    return f"Of {len(states)} cases reap is {', '.join(words)}." if len(states) > 1 else ""


FEW = 4  # cases that are shown as bars at once


def group_html(group, panels):
    if not panels:
        return ""
    to = f"ratios to {group.base}'s" if group.base else "ratios to the best peer's"
    parts = [f'<section class="card" id="{slug(group.title)}"><h3>{escape(group.title)}</h3>\n',
             paragraph(f"In {group.unit}; less is better. {to[0].upper() + to[1:]}. {group.note}".strip(), "source"),
             paragraph(counted_says(panels))]
    grid = f'<div class="panels">\n{"".join(map(panel_html, panels))}</div>\n'
    if len(panels) > FEW:
        rows = [panel.case() for panel in panels]
        about = f"{group.title}: " + "; ".join(f"{row.label} {row.told[0]}" for row in rows)
        base = f"to {group.base} = 1" if group.base else "best peer = 1"
        parts += [legend(panels), '<div class="beside">', f'<div><div class="broad">{draw.cases(about, rows, base, 760)}</div>\n',
                  f'<div class="narrow">{draw.cases(about, rows, base)}</div></div>\n', means_html(group, panels), "</div>\n"]
        grid = f"<details><summary>Each case, as bars</summary>\n{grid}</details>\n"
        parts += [why_list(panels), grid]
    else:
        parts += [grid, why_list(panels)]
    return "".join(parts) + panels_table(panels) + "</section>\n"


# --- the papers -------------------------------------------------------------------------------------------------------------------

def exhibit_html(view, exhibit):
    shown = exhibits.shown(view, exhibit)
    half = " half" if len(shown.pictures) == 1 or exhibit.key == "smt-4" else ""
    parts = [f'<section class="card{half}" id="{exhibit.key}"><h3>{escape(exhibit.heading())}</h3>\n',
             paragraph(f"{exhibit.source}, {exhibit.place}.", "source"),
             paragraph(exhibit.text.replace("CPUS", str(len(machine.cpus())))), paragraph(shown.says)]
    if shown.pictures:
        parts.append('<div class="panels">\n')
    for picture in shown.pictures:
        sure = meta(picture.meta) if picture.meta else ""
        parts.append(f'<div class="panel"><h4>{escape(picture.label)}</h4>\n{picture.svg}{paragraph(picture.says)}'
                     f'{paragraph(picture.note, "meta")}{sure}</div>\n')
    if shown.pictures:
        parts.append("</div>\n")
        parts.append(why_list([p.meta for p in shown.pictures if p.meta and exhibit.relative]))
    for title, heads, rows in shown.tables:
        parts.append(details(title, table(heads, rows), len(heads)))
    if shown.missing:
        items = "".join(f"<li><b>{escape(', '.join(names))}</b>: {escape(why)}.</li>\n" for why, names in shown.missing.items())
        parts.append(f"<p>Not measured here:</p>\n<ul class=\"why\">\n{items}</ul>\n")
    return "".join(parts) + "</section>\n"


# --- pictures for other pages ----------------------------------------------------------------------------------------------------

def alone(svg, width, height, title, caption):
    """A picture as a file of its own, with its colours for light and dark, a title, and what it was measured on."""
    rules = style("picture.css")
    lines = [part for line in caption for part in textwrap.wrap(line, width // 7)]
    inner = svg.replace("<svg ", f'<svg x="16" y="44" width="{width}" height="{height}" ', 1)
    texts = draw.text(16, 28, title, cls="title") + "".join(
        draw.text(16, 44 + height + 18 + 17 * i, line, cls="soft") for i, line in enumerate(lines))
    total = 44 + height + 18 + 17 * len(lines)
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width + 32} {total}" width="{width + 32}" height="{total}" role="img" '
            f'aria-label="{escape(title)}">\n<style>\n{rules}svg {{ font-family: system-ui, "DejaVu Sans", sans-serif; }} svg text.title {{ font-size: 17px; '
            f'font-weight: 700; }}\n</style>\n<rect width="100%" height="100%" fill="var(--card)"/>\n{texts}\n{inner}</svg>\n')


def size_of(svg):
    return tuple(map(int, re.search(r'viewBox="0 0 (\d+) (\d+)"', svg).groups()))


def side_by_side(pictures, columns, gap=24):
    """Panels (title, svg) in columns, as one picture."""
    parts, y = [], 0
    for i in range(0, len(pictures), columns):
        row = pictures[i:i + columns]
        for column, (title, svg) in enumerate(row):
            x, (width, height) = column * (draw.WIDE + gap), size_of(svg)
            parts.append(draw.text(x, y + 14, title, cls="strong"))
            parts.append(svg.replace("<svg ", f'<svg x="{x}" y="{y + 22}" width="{width}" height="{height}" ', 1))
        y += 22 + max(size_of(svg)[1] for _, svg in row) + 22
    return draw.svg(columns * (draw.WIDE + gap) - gap, y, "Geometric means", parts)


MAIN = ["Programs: CPU time", "Programs: peak memory", "Two threads: time", "Threads: peak memory", "Regions", "Regions with frees"]


def pictures(view, caption):
    """The main figures, by file name: where ours stands, and everybody's geometric means."""
    found = {}
    rows = list(strips_of(view))
    if rows:
        svg = draw.strips("Where reap stands", rows, 940)
        found["report-overview.svg"] = alone(svg, *size_of(svg), "What reap needs, over what the best peer of each case needs", caption)
    panels = []
    for group, of_group in view.summary():
        bars, _ = means_rows(group, of_group, peers_alone=True)
        if group.short in MAIN and len(bars) > 2 and len(of_group) > 1:
            panels.append((f"{group.short}; {group.base or 'best peer'} = 1", draw.bars(group.short, bars, 1)))
    if panels:
        svg = side_by_side(panels, 2)
        found["report-means.svg"] = alone(svg, *size_of(svg), "Geometric means over the cases of each kind; less is better", caption)
    return found


# --- the page ------------------------------------------------------------------------------------------------------------------------

def strips_of(view):
    for group, panels in view.summary():
        dots = [(panel.label, panel.to_best) for panel in panels if panel.to_best > 0]
        if dots:
            mean = ratios.geometric_mean([ratio for _, ratio in dots])
            yield draw.Strip(group.short, dots, f"{len(dots)} case{'s' * (len(dots) != 1)}, mean {mean:.2f}")


def count(view):
    states = [panel.state for _, panels in view.summary() for panel in panels]
    return {state: states.count(state) for state in (ratios.FIRST, ratios.ALONGSIDE, ratios.BEHIND, ratios.OPEN)}


def overview(view):
    rows = list(strips_of(view))
    if not rows:
        return ""
    counted = count(view)
    tiles = "".join(f"<li><b>{counted[state]}</b> {what}</li>\n" for state, what in (
        (ratios.FIRST, "first: less than the best peer"), (ratios.ALONGSIDE, f"level: within {ratios.LEVEL:.0%} or the noise"),
        (ratios.BEHIND, "behind the best peer"), (ratios.OPEN, "not settled: one round, or more noise than gap")))
    summary = []
    for group, panels in view.summary():
        means = [panel.to_best for panel in panels if panel.to_best > 0]
        worst = max(panels, key=lambda panel: panel.to_best)
        states = [panel.state for panel in panels]
        summary.append([group.short, str(len(panels)), f"{ratios.geometric_mean(means):.2f}" if means else "",
                        *(str(states.count(s)) for s in (ratios.FIRST, ratios.ALONGSIDE, ratios.BEHIND, ratios.OPEN)),
                        f"{worst.label}, {worst.to_best:.2f} of {worst.peer.name}"])
    heads = ["", "cases", "geometric mean", "first", "level", "behind", "not settled", "greatest"]
    return (f'<ul class="tiles">\n{tiles}</ul>\n<section class="card" id="overview"><h3>Where reap stands</h3>\n'
            + paragraph("A dot is a case: what reap needs, over what the best peer of that case needs, which no single peer is. "
                        "Left of the line is better.", "source")
            + f'<div class="broad">{draw.strips("Where reap stands", rows, 940)}</div>\n'
            + f'<div class="narrow">{draw.strips("Where reap stands, narrow", rows)}</div>\n'
            + details("Numbers", table(heads, summary), len(heads)) + "</section>\n")


def navigation(view):
    items = [(slug(question.title), question.title) for question in view.questions
             if any(view.panels[id(group)] for group in question.groups)]
    items += [("the-papers", "The papers' tables and figures"),
              ("not-run", "What could not be run"), ("how", "How it was measured, and on what")]
    links = "".join(f'<li><a href="#{where}">{escape(title)}</a></li>\n' for where, title in items)
    return f'<nav aria-label="Contents"><ul>\n{links}</ul></nav>\n'


def question_html(view, question):
    groups = "".join(group_html(group, view.panels[id(group)]) for group in question.groups)
    if not groups:
        return ""
    return f'<h2 id="{slug(question.title)}">{escape(question.title)}</h2>\n{paragraph(question.text)}{groups}'


def failures(view):
    """What failed, each line once."""
    found = {}
    for block in view.blocks:
        for round_ in block.rounds:
            for name, run in round_.runs.items():
                if "failed" in run:
                    line = run.get("told", "").splitlines()[0] if run.get("told") else run["failed"]
                    found[line] = found.get(line, 0) + 1
    return [f"{line}{f' ({n} times)' if n > 1 else ''}" for line, n in found.items()]


def how_html(facts, notes, failed):
    rows = "" if not facts else table(["", ""], facts, "facts").replace('<thead><tr><th scope="col"></th><th scope="col"></th></tr></thead>\n', "")
    text = ("Each round runs every contestant of a case once, the next round begins with another one, and ratios are of the same rounds. "
            "A time is the least of its rounds, since noise only adds; memory, and times of rounds that differ by chance, are medians. "
            "The spread of a least is how far the second least is away; that of a median is how far it moves without one of the rounds. "
            f"A case is run again until the spread of reap and of the peers near it is at most {ratios.SETTLED:.0%}, or the time is up. "
            f"Level means within {ratios.LEVEL:.0%} or within the spread. ! marks a contestant that failed in some of its rounds.")
    lines = "".join(f"<li>{escape(line)}</li>\n" for line in failed + notes)
    return (f'<h2 id="how">How it was measured, and on what</h2>\n<section class="card">\n<div class="wide">{rows}</div>{paragraph(text)}'
            + (f"<p>What failed or is not here:</p>\n<ul class=\"why\">\n{lines}</ul>\n" if lines else "") + "</section>\n")


def page(view, facts, notes, told):
    """told: lines for the top: what kind of report it is, whether it was interrupted, how busy the machine was."""
    top = "".join(f'<p class="warning">{escape(line)}</p>\n' if warns else paragraph(line) for line, warns in told)
    rules = style("picture.css") + style("page.css")
    not_run = "".join(f"<li><b>{escape(what)}</b>: {escape(why)}</li>\n" for what, why in papers.NOT_RUN)
    exhibits_html = "".join(exhibit_html(view, exhibit) for exhibit in papers.exhibits())
    return (f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<meta name="viewport" content="width=device-width, '
            f'initial-scale=1">\n<title>reap: the report</title>\n<style>\n{rules}</style>\n</head>\n<body>\n{HATCH}'
            f"<h1>reap, measured beside others</h1>\n{top}{overview(view)}{navigation(view)}"
            + "".join(question_html(view, question) for question in view.questions)
            + f'<h2 id="the-papers">The papers\' tables and figures</h2>\n'
            + paragraph("Hatched bars are the papers' numbers, as far as their tables or texts have them. They are of other machines, "
                        "programs' versions and inputs, so what can be compared is which way a ratio goes, and about how far.")
            + f'<div class="cards">\n{exhibits_html}</div>\n'
            + f'<h2 id="not-run">What could not be run</h2>\n<section class="card"><ul class="why">\n{not_run}</ul></section>\n'
            + how_html(facts, notes, failures(view)) + "</body>\n</html>\n")


def date(seconds):
    return time.strftime("%-d %B %Y, %H:%M", time.localtime(seconds))
