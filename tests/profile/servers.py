# SPDX-License-Identifier: Apache-2.0
"""Compares sums of the heap profile with what the process counts itself. Prints what is wrong.

servers.py apache BYTES DIR: looks DIR/N.before, N.profile, N.after, N.usage: answers to `tags`, `profile`, `tags` and
`usage`, the first look without load, then under load, the last one after it; and DIR/status, what reap-status?json said
under load.
servers.py malloc BYTES DIR: DIR/PID.profile and PID.usage of the processes of a server without reaps.

An object of s bytes is sampled with the chance p = 1 - exp(-s / period), and stands for s / p bytes then. That varies by
s * s * (1 - p) / p, which is at most s * period. So a sum of n bytes has a standard deviation of at most
sqrt(n * period), whatever its objects are. Five of them are allowed, and five samples where a sum has few."""
import glob
import json
import math
import re
import sys

# What malloc gave before the profile was on, to ld.so by a pointer of its own, and to the profile itself.
UNSEEN = 512 * 1024


class Comparison:
    def __init__(self, period):
        self.period, self.wrong, self.n = period, [], 0

    def error(self, total):
        return 5 * math.sqrt(total * self.period) + 5 * self.period

    def between(self, what, has, low, high, total):
        """Not below low nor above high by more than the error of a sum of `total` bytes."""
        self.n += 1
        error = self.error(total)
        away = max(low - has, has - high, 0)
        deviations = away / math.sqrt(max(total, 1) * self.period)
        print(f"{what}: {has:.0f} by samples, counted {low:.0f}" + (f" to {high:.0f}" if high != low else "") +
              f", {deviations:.1f} deviations")
        if away > error:
            self.wrong.append(f"{what}: {has:.0f} by samples, counted {low:.0f} to {high:.0f}: more than {error:.0f} away")

    def among(self, what, has, counts):
        self.between(what, has, min(counts), max(counts), max(counts))


def read(path):
    with open(path) as file:
        return file.read()


def tags_of(text):
    """Live bytes, and bytes held, by name."""
    found = re.findall(r"^(.*): \d+ reaps, \d+ objects, (\d+) bytes, \d+ chunks, (\d+) held$", text, re.M)
    return {name: int(live) for name, live, _ in found}, sum(int(held) for _, _, held in found)


def profile_of(text):
    """Usable bytes of what lives, by name; those of malloc together, whomever a thread worked for."""
    sums = {}
    for name, usable in re.findall(r"^(.*): \d+ live objects, \d+ bytes, (\d+) usable; ", text, re.M):
        name = "malloc" if name.startswith("malloc for ") else name
        sums[name] = sums.get(name, 0) + int(usable)
    return sums


def live_of(text):
    return int(re.search(r"^reap: live (\d+) bytes", text, re.M)[1])


def rest_of(look):
    """What is neither in a pool's chunks nor in malloc's samples."""
    return look["live"] - look["held"] - look["profile"].get("malloc", 0)


def looks_in(folder):
    n = 0
    while glob.glob(f"{folder}/{n}.usage"):
        (before, held), (after, then) = tags_of(read(f"{folder}/{n}.before")), tags_of(read(f"{folder}/{n}.after"))
        yield {"before": before, "after": after, "held": held, "then": then, "live": live_of(read(f"{folder}/{n}.usage")),
               "profile": profile_of(read(f"{folder}/{n}.profile"))}
        n += 1


def counts_of(name, looks):
    return [look[when].get(name, 0) for look in looks for when in ("before", "after")]


def pools(look):
    return sum(bytes for name, bytes in look["profile"].items() if name != "malloc")


def compare_apache(comparison, folder):
    quiet, *loaded, after = looks_in(folder)
    names = set().union(*(look["before"] for look in loaded), *(look["profile"] for look in loaded)) - {"malloc"}
    if len(names) < 8 or "request" not in names:
        comparison.wrong.append(f"there are pools {sorted(names)} only")
    for name in sorted(names):
        comparison.among(f"{name}, after the load", after["profile"].get(name, 0), counts_of(name, [after]))
        if min(counts_of(name, loaded)) == 0:
            continue  # it comes and goes: what the profile finds, the counts before and after may miss
        middle = sum(look["profile"].get(name, 0) for look in loaded) / len(loaded)
        comparison.among(name, middle, counts_of(name, loaded))
    counted = [sum(look[when].values()) for look in loaded for when in ("before", "after")]
    for i, look in enumerate(loaded):
        comparison.among(f"all pools, look {i + 1}", pools(look), counted)

    # reap-status is from some moment under the load.
    status = json.loads(read(f"{folder}/status"))
    moved = max(counted) - min(counted)
    middle = sum(map(pools, loaded)) / len(loaded)
    live = status["totals"]["live_bytes"]
    comparison.between("all pools beside reap-status", middle, live - moved, live + moved, live)

    # malloc: the backend's live bytes are pools' chunks, malloc's blocks, and a rest that the load does not change.
    malloc = max(look["profile"].get("malloc", 0) for look in loaded)
    comparison.between("the rest of malloc", rest_of(quiet), 0, UNSEEN, malloc)
    held = [look[when] for look in loaded for when in ("held", "then")]
    live = [look["live"] for look in loaded]
    moved = max(live) - min(live) + max(held) - min(held)
    for i, look in enumerate(loaded):
        comparison.between(f"the rest of malloc, look {i + 1}", rest_of(look), rest_of(quiet) - moved, rest_of(quiet) + moved,
                           malloc + quiet["profile"].get("malloc", 0))


def compare_malloc(comparison, folder):
    """Processes that were forked from one: what malloc gave unseen is the same in each."""
    processes = []
    for path in glob.glob(f"{folder}/*.usage"):
        process = path[:-len(".usage")]
        processes.append((live_of(read(path)), profile_of(read(f"{process}.profile")).get("malloc", 0)))
    processes.sort()
    if len(processes) < 3 or processes[-1][0] < 1.5 * processes[0][0]:
        comparison.wrong.append(f"processes {processes} are too few, or too much alike")
    for live, sampled in processes:
        comparison.between("malloc", sampled, live - UNSEEN, live, live)
        grown = live - processes[0][0]
        comparison.between("more than in the least process", sampled - processes[0][1], grown, grown,
                           sampled + processes[0][1])


def main():
    comparison = Comparison(int(sys.argv[2]))
    {"apache": compare_apache, "malloc": compare_malloc}[sys.argv[1]](comparison, sys.argv[3])
    for line in comparison.wrong:
        print("wrong:", line)
    print(f"{comparison.n} sums compared")
    sys.exit(bool(comparison.wrong) or comparison.n < 6)


if __name__ == "__main__":
    main()
