# SPDX-License-Identifier: Apache-2.0
"""What the rounds of a case say: a figure and its spread, ratios of the same rounds, and who is first."""
import statistics

LEVEL = 0.03    # who is not further apart than this is level
SETTLED = 0.04  # the spread at which no more rounds are wanted
CLEAR = 0.10    # a spread above this leaves open who is level
geometric_mean = statistics.geometric_mean


def middle_spread(values):
    """By how much the median moves if one of the rounds had not been, relative to it."""
    middle = statistics.median(values)
    if len(values) < 2 or not middle:
        return None
    without = [statistics.median(values[:i] + values[i + 1:]) for i in range(len(values))]
    return (max(without) - min(without)) / abs(middle)


def least_spread(values):
    """How far the second least is from the least: noise only adds, so two that agree have met none."""
    if len(values) < 2 or not min(values):
        return None
    first, second = sorted(values)[:2]
    return second / first - 1


class Figure:
    """What a contestant needed, over the rounds in which it ran: by minimum, where noise only adds, or by median."""

    def __init__(self, values, summary=min):
        self.values, self.summary = list(values), summary
        self.value = summary(self.values)
        self.spread = (least_spread if summary is min else middle_spread)(self.values)


def ratio(mine, theirs, summary=min):
    """Mine over theirs, each a dictionary by round: of the minima, or the median of ratios within rounds, so that what
    slows the machine for a while slows both."""
    both = sorted(set(mine) & set(theirs))
    if not both:
        return None
    if summary is min:
        least = min(theirs[n] for n in both)
        return min(mine[n] for n in both) / least if least > 0 else None
    if min(theirs[n] for n in both) <= 0:
        return None
    return statistics.median(mine[n] / theirs[n] for n in both)


def uncertainty(*figures):
    """What a ratio of these may be off by; None if one has a single round."""
    spreads = [figure.spread for figure in figures]
    return None if None in spreads else sum(spreads)


FIRST, ALONGSIDE, BEHIND, OPEN = "first", "level", "behind", "open"


def verdict(ours_to_best, doubt):
    """Where ours stands, less being better. Open: the difference is less than the noise, and is not small."""
    gap = abs(ours_to_best - 1)
    if gap <= LEVEL and (doubt is None or doubt <= CLEAR):
        return ALONGSIDE
    if doubt is not None and gap <= doubt:
        return OPEN if doubt > CLEAR else ALONGSIDE
    return FIRST if ours_to_best < 1 else BEHIND
