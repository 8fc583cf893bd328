# SPDX-License-Identifier: Apache-2.0
"""doc/figures.md: what stands between the marks of a part, <!-- NAME --> and <!-- end of NAME -->, is written anew from
what was measured of it, under a line with its dates, commit, machine and versions. Other parts stay as they are."""
import argparse
import re
import statistics

from . import machine, page, ratios
from .draw import number

median = statistics.median
REGIONS = [("request: child, objects, destroy", "request"), ("the same with nested children", "nested"), ("the same in 8 threads", "nested 8"),
           ("three objects", "three"), ("fill a region, destroy", "fill"), ("fill, clear", "clear"), ("compiler phases with trees", "trees"),
           ("what Apache did, replayed", "httpd"), ("random churn of 10,000 live objects", "churn"), ("vectors that double", "vectors"),
           ("fragmenting phases", "phases"), ("large objects", "big"), ("what perl did, replayed", "perl"),
           ("one region: a thread allocates, another frees", "passed"), ("objects that another CPU frees", "messages"),
           ("two threads in one region", "shared 2")]
REQUESTS = [(f"{n} objects, of which 0, 1, 2, 30 are freed", [(f"served {n} {frees}", "cpu_ns") for frees in (0, 1, 2, 30)]) for n in (10, 50, 200)]
REQUESTS += [("a buffer grows: by realloc; by copies; by a builder", [(way, "cpu_ns") for way in ("resized", "copied", "built")]),
             ("50 objects, and ten times five that go back to a mark", [("marked", "cpu_ns")]), ("50 objects below a limit", [("limited", "cpu_ns")])]
REQUESTS += [(f"KiB of {what} of a connection: new; after requests of 20 objects; of 200",
              [("waited 20", f"new_{key}"), ("waited 20", f"idle_{key}"), ("waited 200", f"idle_{key}")]) for what, key in (("RSS", "rss"), ("chunks", "held"))]
# By head of a column, who stands in it: of a list on each malloc the best.
POOLS = {"reap": "reap", "APR": "apr", "obstack": "obstack", "talloc": "talloc", "its pools": "talloc pool", "mimalloc heap": "mi heap",
         "malloc and a list": "list .*", "raw": "raw"}
MALLOCS = [("64 bytes, one after the other", "pairs"), ("500 of them, then 500 frees", "batch"),
           ("a thousand live, 16 to 1024 bytes", "sizes"), ("a hundred thousand live", "sizes 100000"),
           ("threadtest, 2 threads for each CPU", r"threadtest (?!1$)\d+"), ("larson, 2 threads for each CPU", r"larson \d+")]
SMALL = {"hello": "hello, world", "sqlite3": "sqlite3, a table of 1000 rows"}


def of(view, suite, label):
    return next((b for b in view.blocks if b.suite == suite and re.fullmatch(label, b.case.label) and b.rounds), None)


def value(block, who, key, summary=min, best=min):
    found = [block.figure(c.name, key, summary) for c in block.present() if re.fullmatch(who, c.name)] if block else []
    return best((figure.value for figure in found if figure), default=None)


def shown(figure):
    return "-" if figure is None else number(figure)


def table(heads, rows):
    """Rows of which nothing was measured are left out."""
    rows = [row for row in rows if any(cell.strip("-; ") for cell in row[1:])]
    return [f"| {' | '.join(row)} |" for row in ([heads, ["---"] * len(heads)] + rows)] if rows else []


def in_and_out(view, label, who):
    """In the second-level cache; and behind it."""
    blocks = [block for block in (of(view, "pools", label), of(view, "pools", label + " out")) if block]
    values = [value(block, who, "ns" if label == "shared 2" else "cpu_ns") for block in blocks]
    return "; ".join(map(shown, values)) if any(values) else "-"


def regions(view):
    lines = table(["a region"] + list(POOLS), [[text] + [in_and_out(view, label, who) for who in POOLS.values()] for text, label in REGIONS])
    lines += ["", "CPU time of an operation in ns, least of the rounds; behind the semicolon with 16 MB alive; the last row by the clock. To the "
              "best peer of each case, geometric mean and greatest:", ""]
    for group, panels in view.summary():
        if group.suite == "pools":
            worst = max(panels, key=lambda panel: panel.to_best)
            mean = ratios.geometric_mean(panel.to_best for panel in panels)
            lines.append(f"* {group.title}: {mean:.2f}, {worst.to_best:.2f} ({worst.label})")
    return lines


def requests(view):
    """CPU time, and KiB; dashes only where nobody of the column can do any of it."""
    rows = [(text, [[value(of(view, "requests", label), who, key) for label, key in wanted] for who in POOLS.values()]) for text, wanted in REQUESTS]
    return table(["ns of a request"] + list(POOLS), [[text] + ["; ".join(map(shown, cell)) if any(cell) else "-" for cell in cells] for text, cells in rows])


def memory(view):
    rows = [("idle, three objects: KiB of RSS", "idle 10000", "a_pool", min, shown),
            ("64 MB of small objects: RSS over their sizes, rounded up to 16", "hold", "rss_asked", min, shown),
            ("a tenth lives on: of RSS back within a second", "fall", "left_later", min, lambda v: "-" if v is None else f"{max(1 - v, 0):.0%}")]
    return table(["memory of a region"] + list(POOLS), [
        [text] + [form(value(of(view, "memory", label), who, key, median, best)) for who in POOLS.values()] for text, label, key, best, form in rows])


def malloc(view):
    names = list(dict.fromkeys(c.name for b in view.blocks if b.suite == "mallocs" for c in b.present()))
    rows = [[text] + [shown(value(of(view, "mallocs", label), re.escape(name), "ns", median)) for name in names] for text, label in MALLOCS]
    return table(["ns a malloc and its free, median"] + names, rows)


def small(view):
    figures = {"resident": "RSS", "shared_out": "PSS", "private": "private dirty"}
    heads = ["KiB, median"] + [f"{what}: {name}" for what in figures.values() for name in ("glibc", "libreap-malloc")]
    return table(heads, [[SMALL.get(b.case.label, b.case.label)] + [shown(value(b, name, key, median)) for key in figures for name in ("glibc", "reap")]
                         for b in view.blocks if b.suite == "small"])


def peers(view):
    """Geometric means of everybody's ratios to the best peer of each case, of who ran all of them."""
    groups = [(group, panels) for group, panels in view.summary() if group.suite in ("programs", "threads")]
    names = list(dict.fromkeys(cell.name for _, panels in groups for panel in panels for cell in panel.cells))

    def mean(panels, name):
        found = [cell.to_best for panel in panels for cell in panel.cells if cell.name == name and cell.to_best]
        return f"{ratios.geometric_mean(found):.3f}" if len(found) == len(panels) else "-"

    return table(["to the best peer of each case"] + names, [
        [f"{group.title}, {len(panels)} cases"] + [mean(panels, name) for name in names] for group, panels in groups])


# By name: the suites that are measured for it, and what it writes. The report's has pictures beside.
PARTS = {"regions": (["pools"], regions), "requests": (["requests"], requests), "memory": (["memory"], memory), "malloc": (["mallocs"], malloc), "small": (["small"], small),
         "peers": (["programs", "threads"], peers), "report": ([], lambda view: [])}


def names_of(text):
    unknown = [name for name in text.split() if name not in PARTS]
    if unknown:
        raise argparse.ArgumentTypeError(f"no part {', '.join(unknown)}: they are {', '.join(PARTS)}")
    return text.split() or list(PARTS)


def suites_of(names):
    """None, that is all, for the report."""
    return None if "report" in names else [suite for name in names for suite in PARTS[name][0]]


def told(blocks, build, source, quick):
    """When, at which commit, on what, with whom, beside what else."""
    rounds = [r for b in blocks for r in b.rounds]
    commits = sorted({r.commit for r in rounds if r.commit}) or ["unknown"]
    days = list(dict.fromkeys(page.date(at).split(",")[0] for at in (min(r.at for r in rounds), max(r.at for r in rounds))))
    facts, least = machine.describe(), min(len(b.rounds) for b in blocks if b.rounds)
    versions = dict.fromkeys(version if version[0] != "/" else name for name, version in
                             machine.versions([c for b in blocks for c in b.contestants], build, source) if name not in ("reap", "compiler"))
    missing = sum(1 for b in blocks if not b.rounds)
    noise = machine.in_words(machine.noise([run for r in rounds for run in r.runs.values() if "seconds" in run]))
    return (f"Measured on {' to '.join(days)} at {', '.join(commits)}: {facts[0][1]}, {facts[2][1]}; {', '.join(versions)}; {least} or more "
            f"interleaved rounds{' of the quick report' * quick}{f', {missing} of {len(blocks)} cases not yet' * bool(missing)}; {noise}.")


def write(text, view, names, build, source, quick):
    """The page with these parts, and the names of those that have nothing new."""
    stayed = []
    for name in names:
        suites, of_part = PARTS[name]
        blocks = [b for b in view.blocks if b.suite in suites]
        lines = of_part(view) if any(b.rounds for b in blocks) else []
        marks = f"<!-- {name} -->", f"<!-- end of {name} -->"
        if suites and not all(mark in text for mark in marks):
            raise ValueError(f"the page has no {' ... '.join(marks)}")
        if not lines:
            stayed += [name] * bool(suites)
            continue
        before, rest = text.split(marks[0], 1)
        text = f"{before}{marks[0]}\n" + "\n".join([told(blocks, build, source, quick), "", *lines]) + f"\n{marks[1]}" + rest.split(marks[1], 1)[1]
    return text, stayed
