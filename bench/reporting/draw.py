# SPDX-License-Identifier: Apache-2.0
"""Pictures as SVG, by matplotlib: bars, lines, and rows of marks. Each mark has its name or number beside it, so no colour is needed to
read a picture. Colours are variables of the page's style, which has others for the dark."""
import collections
import io
import itertools
import re
from html import escape

import matplotlib
from markupsafe import Markup
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

WIDE = 340           # of a panel; on a telephone that is about a pixel a unit
NAMES, NUMBERS = 112, 110  # the room for names left of bars, and for numbers right of them
ROW = 19
CUT = 4              # bars of more than this many times the best are cut off
LETTER = 6.9         # a wide one; a name that has no room ends in dots

# By name, for light and for dark.
COLOURS = {
    "ink": ("#1b2026", "#e7e9eb"), "soft": ("#56606a", "#a5afb8"), "paper": ("#f7f6f2", "#13171a"), "card": ("#ffffff", "#1b2125"),
    "line": ("#dedbd2", "#39424a"), "worse": ("#b4530a", "#f39a54"), "reap": ("#0b62a8", "#5fb2f2"), "glibc": ("#6f6f6f", "#a6a6a6"),
    "jemalloc": ("#c85a00", "#f39a55"), "mimalloc": ("#00805c", "#37c79b"), "tcmalloc": ("#ad4a8c", "#e491c8"), "tbb": ("#857000", "#d6bf48"),
    "apr": ("#7c4a1c", "#cd9a68"), "talloc": ("#5a4bb0", "#aca0f6"), "obstack": ("#7b7f00", "#cdd150"), "yardstick": ("#c4c2ba", "#545c63"),
    "spare1": ("#a3123a", "#ff8aa4"), "spare2": ("#007f86", "#52d0d8"), "spare3": ("#3d5a00", "#a5cc5c"), "spare4": ("#8a2be2", "#cc9cff")}
LIGHT = {name: light for name, (light, _) in COLOURS.items()}
VARIABLES = {light: f"var(--{name})" for name, light in LIGHT.items()}
# Each allocator has one colour and one shape everywhere; whoever is not known gets one of the last, by its name's letters.
LOOKS = {"reap": ("reap", "o"), "glibc": ("glibc", "s"), "jemalloc": ("jemalloc", "^"), "mimalloc": ("mimalloc", "D"), "mi heap": ("mimalloc", "D"),
         "tcmalloc": ("tcmalloc", "v"), "tbb": ("tbb", "P"), "apr": ("apr", "d"), "talloc": ("talloc", "p"), "talloc pool": ("talloc", "*"),
         "obstack": ("obstack", "h"), "raw": ("yardstick", "o"), "bump": ("yardstick", "o"), "own": ("yardstick", "o"), "apr on reaps": ("reap", "X")}
SPARE = [("spare1", "<"), ("spare2", ">"), ("spare3", "8"), ("spare4", "H")]

matplotlib.rcParams.update({
    "svg.fonttype": "none", "text.parse_math": False, "font.size": 12.5, "text.color": LIGHT["ink"], "ytick.color": LIGHT["ink"],
    "xtick.color": LIGHT["soft"], "grid.color": LIGHT["line"], "hatch.color": LIGHT["ink"], "axes.spines.left": False, "axes.spines.right": False,
    "axes.spines.top": False, "axes.spines.bottom": False, "xtick.major.size": 0, "ytick.major.size": 0, "xtick.minor.size": 0,
    "legend.frameon": False, "legend.handlelength": 1, "legend.handletextpad": 0.3, "legend.columnspacing": 1.2, "legend.borderpad": 0})


def look(name, ours=False):
    """Colour and shape."""
    base = name.removeprefix("list ")
    colour, shape = LOOKS.get(base) or (("reap", "X") if ours else SPARE[sum(map(ord, base)) % len(SPARE)])
    return colour, "X" if base != name else shape


def number(value):
    """Three digits, and no more than a reader needs."""
    size = abs(value)
    if size >= 1e6:
        return f"{value / 1e6:.{0 if size >= 1e8 else 1}f} M"
    return f"{value:,.0f}" if size >= 1e4 else f"{value:.{0 if size >= 100 else 1 if size >= 10 else 2}f}"


def fitted(name, room):
    most = max(int(room / LETTER), 2)
    return name if len(name) <= most else name[:most - 1] + "…"


# --- what all have ---------------------------------------------------------------------------------------------------------

def canvas(width, height, left, right, top=2, bottom=2):
    """An empty picture in pixels, and its axes between these margins."""
    figure = Figure((width / 72, height / 72))
    axes = figure.add_axes((left / width, bottom / height, 1 - (left + right) / width, 1 - (top + bottom) / height))
    figure.patch.set_visible(False)
    axes.patch.set_visible(False)
    return figure, axes


def say(axes, x, y, text, colour="ink", bold=False, across=True, **more):
    """A text; across: x is a share of the axes' width."""
    axes.text(x, y, text, color=LIGHT[colour], weight="bold" if bold else "normal", va="center_baseline",
              transform=axes.get_yaxis_transform() if across else axes.transData, **more)


PICTURES = itertools.count()  # so that none has the names of another's parts


def svg(figure, about):
    """As a part of a page: without a size of its own, with variables for colours, the page's font, and a title for each mark's tip."""
    out = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": str(next(PICTURES))}):
        figure.savefig(out, format="svg")
    inner = re.sub(r"<!--.*?-->\s*", "", out.getvalue().split("</defs>", 1)[1], flags=re.DOTALL)
    inner = re.sub(r'<g id="tip:([^"]*)">', r"<g><title>\1</title>", inner)
    inner = re.sub(r' id="(?![a-z][0-9a-f]{10}")[^"]*"', "", inner).replace("xlink:href", "href")
    inner = re.sub(r"font: (italic )?(\d+ )?([\d.]+px) [^;\"]*", lambda f: f"font-size: {f[3]}" + f"; font-weight: {f[2]}" * bool(f[2])
                   + "; font-style: italic" * bool(f[1]), inner)
    inner = re.sub("#[0-9a-f]{6}", lambda found: VARIABLES.get(found[0], found[0]), re.sub(r"\s*\n\s*", " ", inner))
    width, height = figure.get_size_inches() * 72
    return Markup(f'<svg viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-label="{escape(about)}">{inner}\n')


# --- bars ------------------------------------------------------------------------------------------------------------------

# A row: its name, its value or the word in its place, the texts of value and ratio, and how it looks. high is the end of what a paper
# says as a range, or of the spread.
Bar = collections.namedtuple("Bar", "name value shown ratio colour bold best high", defaults=(None, "", "", "glibc", False, False, None))


def draw_bar(axes, y, bar, most):
    if bar.value is None:
        return say(axes, 0, y, bar.shown, "soft", style="italic")
    hatched = {"facecolor": "none", "edgecolor": LIGHT["ink"], "hatch": "////"}
    axes.barh(y, min(bar.value, most), 0.74, clip_on=False, **(hatched if bar.colour == "paper" else {"color": LIGHT[bar.colour]}))
    if bar.value > most:
        say(axes, 0.99, y, "»", "card", True, ha="right")
    elif bar.high and bar.high > bar.value * 1.01:
        axes.plot((bar.value, min(bar.high, most)), (y, y), "-|", color=LIGHT["ink"], lw=1.1, markevery=[1], clip_on=False)
    room = WIDE - NAMES - NUMBERS
    say(axes, (290 - NAMES) / room, y, bar.shown, bold=bar.best or bar.bold, ha="right")
    say(axes, (WIDE - 2 - NAMES) / room, y, bar.ratio, "ink" if bar.best else "soft", bar.best, ha="right")


def bars(about, rows, line=None):
    """Rows of bars on one scale from 0; a thin line at one value, which the others are compared with."""
    values = [row.value for row in rows if row.value is not None]
    most = min(max(values, default=1), (line or min((value for value in values if value > 0), default=1)) * CUT) or 1
    figure, axes = canvas(WIDE, ROW * len(rows) + 4, NAMES, NUMBERS)
    axes.set(xlim=(0, most), ylim=(len(rows) - 0.5, -0.5), xticks=[], yticks=[])
    for y, row in enumerate(rows):
        say(axes, -6 / (WIDE - NAMES - NUMBERS), y, fitted(row.name, NAMES - 6), bold=row.bold, ha="right")
        draw_bar(axes, y, row, most)
    if line and line <= most:
        axes.axvline(line, color=LIGHT["ink"], lw=1, ls=(0, (3, 3)), clip_on=False)
    return svg(figure, about)


# --- lines -----------------------------------------------------------------------------------------------------------------

def apart(wanted, distance, least):
    """Places for labels, in the order of what they stand for, and not on one another."""
    places = dict.fromkeys(range(len(wanted)))
    for i in sorted(places, key=lambda i: wanted[i]):
        places[i] = least = max(wanted[i], least)
        least += distance
    return list(places.values())


def lines(about, series, x_label, y_label, ticks, height=230):
    """Lines (name, points, look, bold) with their names at their ends. ticks: places on x with their texts, at equal distances."""
    right = min(max(len(name) for name, *_ in series) * LETTER + 14, 140)
    figure, axes = canvas(WIDE, height, 40, right, 24, 36)
    places = {x: i for i, (x, _) in enumerate(ticks)}
    for name, points, (colour, shape), bold in series:
        axes.plot([places[x] for x, _ in points], [y for _, y in points], marker=shape, ms=6 if bold else 4.5, lw=3 if bold else 1.7,
                  color=LIGHT[colour], clip_on=False, zorder=3 if bold else 2)
    top = axes.get_ylim()[1] * 1.02
    axes.set(xlim=(-0.2, max(len(ticks) - 1, 1)), ylim=(0, top), xticks=range(len(ticks)), xticklabels=[told for _, told in ticks])
    axes.locator_params(axis="y", nbins=5)
    axes.set_xlabel(x_label, color=LIGHT["soft"])
    axes.set_title(y_label, loc="left", color=LIGHT["soft"], x=-36 / (WIDE - 40 - right), fontsize=12.5)
    axes.grid(axis="y")
    axes.tick_params(axis="y", labelcolor=LIGHT["soft"])
    unit = top / (height - 60)
    for (name, points, (colour, _), bold), y in zip(series, apart([points[-1][1] for _, points, *_ in series], 13 * unit, 0)):
        axes.plot((places[points[-1][0]], axes.get_xlim()[1] * (1 + 8 / (WIDE - 40 - right))), (points[-1][1], y), color=LIGHT[colour], lw=0.7,
                  alpha=0.6, clip_on=False)
        say(axes, 1 + 10 / (WIDE - 40 - right), y, fitted(name, right - 12), colour, bold)
    return svg(figure, about)


# --- many cases at once ------------------------------------------------------------------------------------------------------

# Its label; marks as (name, ratio, colour, shape, bold); and what is told at its end, at length, in short, in a colour.
Row = collections.namedtuple("Row", "label marks told short colour")
TICKS = (1, 0.25, 0.5, 2, 4, 0.35, 0.7, 1.5, 0.8, 1.25, 0.9, 1.1, 3)  # those that come first have the room
LESS, MORE = 0.25, 4


def key_of(figure, rows, columns):
    """A legend of all shapes."""
    looks = {"malloc and a list" if name.startswith("list ") else name: look_ for row in rows for name, _, *look_ in row.marks}
    figure.legend([Line2D([], [], ls="", marker=shape, color=LIGHT[colour], ms=8 if bold else 6.5) for colour, shape, bold in looks.values()],
                  [fitted(name, 130) for name in looks], loc="upper left", bbox_to_anchor=(0, 1), ncol=columns)


def marks(about, rows, base, width=WIDE, key=True):
    """Ratios of many cases on one logarithmic axis; what is beyond its ends stands at them. On a telephone a label stands above its row."""
    wide, columns = width > 500, 6 if width > 500 else 3
    named = len({name for row in rows for name, *_ in row.marks})
    left, right, tall = (230 if not key else 150, 215, 26) if wide else (8, 8, 40)
    top = 40 + 18 * -(-named // columns) * key
    figure, axes = canvas(width, top + tall * len(rows) + 4, left, right, top, 4)
    ratios = [ratio for row in rows for _, ratio, *_ in row.marks if ratio > 0]
    low, high = max(min(ratios + [0.9]), LESS) * 0.97, min(max(ratios + [1.1]), MORE) * 1.03
    axes.set(xscale="log", xlim=(low, high), ylim=(len(rows) - 0.5, -0.5), yticks=[])
    axes.xaxis.tick_top()
    place, ticks = (lambda ratio: axes.transData.transform((ratio, 0))[0]), []
    for ratio in TICKS:
        if low < ratio < high and all(abs(place(ratio) - place(other)) > 36 for other in ticks):
            ticks.append(ratio)
    axes.set_xticks(ticks, [f"{ratio:g}" for ratio in ticks])
    axes.set_xticks([], minor=True)
    axes.grid(axis="x")
    axes.axvline(1, color=LIGHT["ink"], lw=1, ls=(0, (3, 3)))
    say(axes, 0, -0.5 - 27 / tall, f"◂ less than {base}", "soft")
    say(axes, 1, -0.5 - 27 / tall, "more ▸", "soft", ha="right")
    for y, row in enumerate(rows):
        at = y if wide else y + 0.2
        axes.axhline(at, color=LIGHT["line"], lw=1)
        say(axes, -8 / (width - left - right) if wide else 0, at if wide else y - 0.22, fitted(row.label, left - 8 if wide else 200), bold=not key,
            ha="right" if wide else "left", bbox=None if wide else {"color": LIGHT["card"], "pad": 1})
        say(axes, 1 + 8 / (width - left - right) if wide else 1, at if wide else y - 0.22, row.told if wide else row.short, row.colour,
            row.colour == "reap", ha="left" if wide else "right")
        for name, ratio, colour, shape, bold in sorted(row.marks, key=lambda mark: mark[4]):
            axes.plot(min(max(ratio, low), high), at, shape, ms=9 if bold else 7, color=LIGHT[colour], mec=LIGHT["ink" if bold else "card"], mew=0.8,
                      alpha=1 if key else 0.7, clip_on=False, gid=f"tip:{row.label}, {name}: {ratio:.2f}" if key else f"tip:{name}: {ratio:.2f}")
    if key:
        key_of(figure, rows, columns)
    return svg(figure, about)
