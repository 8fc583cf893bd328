# SPDX-License-Identifier: Apache-2.0
"""The judge of growth of `make soak`, on series of memory that are made here: the same ones each time."""
import contextlib
import io
import random
import sys
import types

import endurance

ROUNDS = 200
MIB = 1024  # KiB


def series(start, more=0, noise=0, saws=0, at=0.0):
    """KiB of each round: `more` from the share `at` of the run to its end, in equal steps; noise of so much to either
    side; saws, as of restarts."""
    chance = random.Random(7)
    return [int(start + more * max(0, i / ROUNDS - at) / (1 - at) + chance.uniform(-noise, noise) + saws * (i % 10) / 10)
            for i in range(ROUNDS)]


# What it is, stock's, ours, and whether ours grows.
CASES = [
    ("flat", series(40 * MIB), series(40 * MIB), False),
    ("flat and noisy", series(40 * MIB), series(40 * MIB, noise=12 * MIB), False),
    ("flat, with saws", series(40 * MIB), series(40 * MIB, saws=30 * MIB), False),
    ("a start that ends in the first quarter", series(40 * MIB), [20 * MIB] * 40 + [60 * MIB] * 160, False),
    ("a peak of one round", series(40 * MIB), [40 * MIB] * 199 + [400 * MIB], False),
    ("a little server that doubles", series(3 * MIB), series(2 * MIB, more=4 * MIB), False),
    ("less than a tenth", series(200 * MIB), series(200 * MIB, more=20 * MIB), False),
    ("as stock grows", series(40 * MIB, more=40 * MIB), series(40 * MIB, more=40 * MIB), False),
    ("it shrinks", series(40 * MIB), series(80 * MIB, more=-40 * MIB), False),
    ("it doubles", series(40 * MIB), series(40 * MIB, more=40 * MIB), True),
    ("it doubles in noise", series(40 * MIB), series(40 * MIB, more=40 * MIB, noise=12 * MIB), True),
    ("it doubles under saws", series(40 * MIB), series(40 * MIB, more=40 * MIB, saws=30 * MIB), True),
    ("it grows in the second half", series(40 * MIB), series(40 * MIB, more=30 * MIB, at=0.5), True),
    ("twice as much as stock", series(40 * MIB, more=20 * MIB), series(40 * MIB, more=40 * MIB), True),
    ("stock shrinks", series(80 * MIB, more=-40 * MIB), series(40 * MIB, more=20 * MIB), True),
]


def judged(stock, reap, seconds=endurance.LONG, wrong=""):
    """What make soak's status has of it, by way of what it notes each round; and what it says."""
    soak = types.SimpleNamespace(name="server", wrong=wrong, memory=[])
    for i, (one, other) in enumerate(zip(stock, reap)):
        soak.memory += [(i, "stock", one), (i, "reap", other), (i, "mimalloc", 40 * MIB + i * MIB)]
    soak.medians = types.MethodType(endurance.Soak.medians, soak)
    with contextlib.redirect_stdout(io.StringIO()) as said:
        return endurance.grown([soak], seconds) != 0, said.getvalue()


bad = 0
for what, stock, reap, grows in CASES:
    found, said = judged(stock, reap)
    if found != grows or ("RSS grows under libreap-malloc" in said) != grows:
        print(f"wrong: {what}: {'' if found else 'not '}judged as growth; {said.strip()}")
        bad = 1
doubles = CASES[9]
assert doubles[0] == "it doubles"
if judged(doubles[1], doubles[2], seconds=endurance.LONG - 1)[0]:
    print("wrong: a short run is judged")
    bad = 1
if judged([40 * MIB], [40 * MIB])[0]:
    print("wrong: one round is judged as growth")
    bad = 1
print(f"{len(CASES)} series")
sys.exit(bad)
