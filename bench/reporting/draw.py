# SPDX-License-Identifier: Apache-2.0
"""Pictures as SVG: bars, lines, and dots. Colours are classes, which page.css gives for light and
dark; each mark has its name or number beside it, so none is needed to read a picture."""
import math
from html import escape

WIDE = 340           # of a panel; on a telephone that is about a pixel a unit
LABEL, BAR, VALUE, RATIO = 112, 230, 290, 338  # where labels end, bars end, numbers end
ROW = 19
CUT = 4              # bars of more than this many times the best are cut off

# Each allocator has one colour everywhere; whoever is not known gets one of the last, by its name's place.
NAMED = {"reap": "reap", "glibc": "glibc", "jemalloc": "jemalloc", "mimalloc": "mimalloc", "mi heap": "mimalloc",
         "tcmalloc": "tcmalloc", "tbb": "tbb", "apr": "apr", "talloc": "talloc", "talloc pool": "talloc", "obstack": "obstack",
         "raw": "yardstick", "bump": "yardstick", "own": "yardstick", "apr on reaps": "reap"}
SPARE = ["spare1", "spare2", "spare3", "spare4"]


def colour(name, ours=False):
    base = name.removeprefix("list ")
    if base in NAMED:
        return NAMED[base]
    return "reap" if ours else SPARE[sum(map(ord, base)) % len(SPARE)]


def number(value):
    """Three digits, and no more than a reader needs."""
    size = abs(value)
    if size >= 1e6:
        return f"{value / 1e6:.{0 if size >= 1e8 else 1}f} M"
    if size >= 1e4:
        return f"{value:,.0f}"
    digits = 0 if size >= 100 else 1 if size >= 10 else 2
    return f"{value:.{digits}f}"


LETTER = 6.9  # a wide one; a name that has no room ends in dots


def fitted(name, room):
    most = max(int(room / LETTER), 2)
    return name if len(name) <= most else name[:most - 1] + "…"


def text(x, y, content, anchor="start", cls=""):
    cls = f' class="{cls}"' if cls else ""
    anchor = "" if anchor == "start" else f' text-anchor="{anchor}"'
    return f'<text x="{x:.1f}" y="{y:.1f}"{anchor}{cls}>{escape(content)}</text>'


def svg(width, height, about, parts, more=""):
    return (f'<svg viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-label="{escape(about)}"{more}>\n'
            + "\n".join(parts) + "\n</svg>\n")


# --- bars ----------------------------------------------------------------------------------------------------------------

class Bar:
    """A row: its name, its value or the word in its place, the texts of value and ratio, and how it looks. high is the
    end of what a paper says as a range, or of the spread."""

    def __init__(self, name, value=None, shown="", ratio="", cls="glibc", bold=False, best=False, high=None):
        self.name, self.value, self.shown, self.ratio = name, value, shown, ratio
        self.cls, self.bold, self.best, self.high = cls, bold, best, high


def draw_bar(bar, y, place, most):
    base, parts = y + ROW * 0.7, []
    strong = "strong" if bar.bold else ""
    parts.append(text(LABEL - 6, base, fitted(bar.name, LABEL), "end", strong))
    if bar.value is None:
        return parts + [text(LABEL, base, bar.shown, cls="word")]
    end = place(min(bar.value, most))
    parts.append(f'<rect class="{bar.cls}" x="{LABEL}" y="{y + 2}" width="{max(end - LABEL, 1):.1f}" height="{ROW - 5}"/>')
    if bar.value > most:
        parts.append(text(BAR - 2, base, "»", "end", "cut"))
    elif bar.high and bar.high > bar.value * 1.01:
        high, middle = place(min(bar.high, most)), y + ROW / 2 - 0.5
        parts.append(f'<path class="whisker" d="M{end:.1f} {middle}H{high:.1f}M{high:.1f} {middle - 3}v6"/>')
    parts.append(text(VALUE, base, bar.shown, "end", "best" if bar.best else strong))
    parts.append(text(RATIO, base, bar.ratio, "end", "best" if bar.best else "soft"))
    return parts


def bars(about, rows, line=None):
    """Rows of bars on one scale from 0; a thin line at one value, which the others are compared with."""
    values = [row.value for row in rows if row.value is not None]
    if not values:
        return svg(WIDE, ROW * len(rows) + 4, about, [part for i, row in enumerate(rows) for part in draw_bar(row, i * ROW, None, 0)])
    least = min((value for value in values if value > 0), default=1)
    most = min(max(values), (line or least) * CUT) or 1

    def place(value):
        return LABEL + (BAR - LABEL) * value / most

    parts = []
    for i, row in enumerate(rows):
        parts += draw_bar(row, i * ROW + 2, place, most)
    if line and line <= most:
        parts.append(f'<path class="base" d="M{place(line):.1f} 0V{ROW * len(rows) + 2}"/>')
    return svg(WIDE, ROW * len(rows) + 4, about, parts)


# --- lines -----------------------------------------------------------------------------------------------------------------

class Line:
    def __init__(self, name, points, cls, bold=False):
        self.name, self.points, self.cls, self.bold = name, points, cls, bold


def step_of(most, about=4):
    """A round distance of which about so many reach the greatest value."""
    raw = (most or 1) / about
    power = 10 ** math.floor(math.log10(raw))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= raw * 0.999)


def apart(wanted, distance, least, most):
    """Places for labels, in the order of what they stand for, and not on one another."""
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    places = [0.0] * len(wanted)
    for before, i in zip([None] + order, order):
        places[i] = max(wanted[i], least if before is None else places[before] + distance)
    for i in reversed(order):
        places[i] = min(places[i], most)
        most = places[i] - distance
    return places


def lines(about, series, x_label, y_label, ticks=None, height=230):
    """Lines with their names at their ends. ticks: places on x with their texts, at equal distances."""
    longest = max(len(line.name) for line in series) * LETTER
    left, right, top, bottom = 44, min(262, max(WIDE - 14 - longest, 200)), 22, height - 34
    x_most = max(x for line in series for x, _ in line.points) or 1
    y_most = max(y for line in series for _, y in line.points) or 1
    step = step_of(y_most)
    y_most = math.ceil(y_most / step - 1e-9) * step
    places = {x: i for i, (x, _) in enumerate(ticks)} if ticks else None

    def at_x(x):
        return left + (right - left) * (places[x] / max(len(places) - 1, 1) if places else x / x_most)

    def at_y(y):
        return bottom - (bottom - top) * y / y_most

    parts = [text(left - 38, 12, y_label, cls="soft")]
    for i in range(round(y_most / step) + 1):
        y = at_y(i * step)
        parts += [f'<path class="grid" d="M{left} {y:.1f}H{right}"/>', text(left - 5, y + 4, f"{i * step:g}", "end", "soft")]
    x_step = step_of(x_most, 4)
    for x, told in ticks or [(i * x_step, f"{i * x_step:g}") for i in range(int(x_most / x_step + 1e-9) + 1)]:
        parts.append(text(at_x(x), bottom + 15, told, "middle", "soft"))
    parts.append(text((left + right) / 2, bottom + 30, x_label, "middle", "soft"))
    ends = apart([at_y(line.points[-1][1]) + 4 for line in series], 13, top, bottom + 6)
    for line, y in zip(series, ends):
        d = "M" + "L".join(f"{at_x(x):.1f} {at_y(v):.1f}" for x, v in line.points)
        end_x, end_y = at_x(line.points[-1][0]), at_y(line.points[-1][1])
        parts.append(f'<path class="line {line.cls}{" bold" if line.bold else ""}" d="{d}"/>')
        parts.append(f'<path class="lead {line.cls}" d="M{end_x:.1f} {end_y:.1f}L{right + 8} {y - 4:.1f}"/>')
        if ticks:
            parts += [f'<circle class="{line.cls}" cx="{at_x(x):.1f}" cy="{at_y(v):.1f}" r="2.6"/>' for x, v in line.points]
        parts.append(text(right + 11, y, fitted(line.name, WIDE - right - 11), cls=f"name {line.cls}{' strong' if line.bold else ''}"))
    return svg(WIDE, height, about, parts)


# --- many cases at once --------------------------------------------------------------------------------------------------------

SHAPES = {"glibc": "M-4.5 -4.5h9v9h-9z", "jemalloc": "M0 -6L5.6 4.4H-5.6z", "mimalloc": "M0 -6.3L6.3 0L0 6.3L-6.3 0z",
          "tcmalloc": "M0 6L5.6 -4.4H-5.6z", "tbb": "M-6 -2h4v-4h4v4h4v4h-4v4h-4v-4h-4z", "apr": "M-3.6 -6h7.2v12h-7.2z",
          "talloc": "M-6 -3.6h12v7.2h-12z", "talloc pool": "M-6.5 -1.5h13v3h-13z", "obstack": "M0 -6.2L5.9 -1.9L3.6 5H-3.6L-5.9 -1.9z"}
CROSS = "M-6 -4L-4 -6L0 -2L4 -6L6 -4L2 0L6 4L4 6L0 2L-4 6L-6 4L-2 0z"
ROUND = "M-5.4 0a5.4 5.4 0 1 0 10.8 0a5.4 5.4 0 1 0 -10.8 0z"


def mark(name, cls, x=0.0, y=0.0, bold=False, told="", other=False):
    """A shape of one's own, so that no colour is needed; other: a second one of the same colour."""
    d = CROSS if other else SHAPES.get(name) or SHAPES.get(cls, ROUND if cls == "reap" else CROSS)
    size = 1.15 if bold else 0.85
    title = f"<title>{escape(told)}</title>" if told else ""
    return (f'<path class="mark {cls}{" bold" if bold else ""}{" other" if other else ""}" d="{d}" '
            f'transform="translate({x:.1f} {y:.1f}) scale({size})">{title}</path>')


class Case:
    """A row: its label, a mark for each contestant (name, ratio, class, bold, other), and what is told at its end."""

    def __init__(self, label, marks, told, state):
        self.label, self.marks, self.told, self.state = label, marks, told, state


TICKS = (0.25, 0.35, 0.5, 0.7, 0.8, 0.9, 1, 1.1, 1.25, 1.5, 2, 3, 4)


def cases(about, rows, to, width=WIDE):
    """Ratios of many cases on one logarithmic axis; what is beyond its ends stands at them."""
    wide = width > 500
    longest = max(len(row.label) for row in rows) * LETTER + 10
    left, right = max(longest, 90), width - (210 if wide else 84)
    left, top, tall = (150 if wide else min(left, 136)), 34, 24
    ratios = [ratio for row in rows for _, ratio, *_ in row.marks if ratio > 0]
    low = max(min(ratios + [0.9]) * 0.97, TICKS[0] * 0.97)
    high = min(max(ratios + [1.1]) * 1.03, TICKS[-1] * 1.03)

    def place(ratio):
        return left + (right - left) * math.log(min(max(ratio, low), high) / low) / math.log(high / low)

    parts, shown = [], []
    for ratio in (1, *TICKS):
        x = place(ratio)
        if low <= ratio <= high and not any(abs(x - there) < 30 for there in shown):
            shown.append(x)
            parts.append(f'<path class="{"base" if ratio == 1 else "grid"}" d="M{x:.1f} {top - 6}V{top + tall * len(rows)}"/>')
            parts.append(text(x, top - 10, f"{ratio:g}" if x > left + 14 else "", "middle", "soft"))
    parts.append(text(left - 8, top - 10, to, "end", "soft"))
    parts.append(text(width - 2, top - 10, "reap, to the best peer" if wide else "reap to", "end", "soft"))
    for i, row in enumerate(rows):
        y = top + tall * i + tall / 2
        parts.append(f'<path class="grid" d="M{left} {y}H{right}"/>')
        parts.append(text(left - 8, y + 4, fitted(row.label, left - 8), "end"))
        for name, ratio, cls, bold, other in sorted(row.marks, key=lambda m: m[3]):
            parts.append(mark(name, cls, place(ratio), y, bold, f"{row.label}, {name}: {ratio:.2f}", other))
        parts.append(text(width - 2, y + 4, row.told[0] if wide else row.told[1], "end", row.state))
    return svg(width, top + tall * len(rows) + 4, about, parts)


# --- where ours stands, in one picture -----------------------------------------------------------------------------------------

class Strip:
    """A row of dots: a ratio for each case, and a summary."""

    def __init__(self, name, dots, told):
        self.name, self.dots, self.told = name, dots, told


LOW, HIGH = 0.25, 4.0


def strips(about, rows, width=WIDE):
    """Ratios on a logarithmic axis; 1 is the best peer."""
    wide = width > 500
    left, right, top = (230, width - 150, 34) if wide else (14, width - 14, 34)
    tall = 30 if wide else 46

    def place(ratio):
        share = math.log(min(max(ratio, LOW), HIGH) / LOW) / math.log(HIGH / LOW)
        return left + (right - left) * share

    parts = [text(place(1) - 6, 14, "◂ less than the best peer", "end", "soft"), text(place(1) + 6, 14, "more ▸", cls="soft")]
    for ratio in (0.25, 0.5, 1, 2, 4):
        parts.append(f'<path class="{"base" if ratio == 1 else "grid"}" d="M{place(ratio):.1f} {top - 4}V{top + tall * len(rows)}"/>')
        parts.append(text(place(ratio), top - 8, f"{ratio:g}", "middle", "soft"))
    for i, row in enumerate(rows):
        y = top + tall * i + (tall / 2 if wide else 32)
        if wide:
            parts += [text(left - 14, y + 4, row.name, "end", "strong"), text(right + 12, y + 4, row.told, cls="soft")]
        else:
            parts += [text(left, y - 15, row.name, cls="strong"), text(right, y - 15, row.told, "end", "soft")]
        parts.append(f'<path class="grid" d="M{left} {y}H{right}"/>')
        for label, ratio in sorted(row.dots, key=lambda dot: dot[1]):
            kind = "better" if ratio < 0.97 else "worse" if ratio > 1.03 else "even"
            parts.append(f'<circle class="dot {kind}" cx="{place(ratio):.1f}" cy="{y}" r="4.5"><title>{escape(label)}: '
                         f'{ratio:.2f}</title></circle>')
    return svg(width, top + tall * len(rows) + 6, about, parts)
