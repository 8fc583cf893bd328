# SPDX-License-Identifier: Apache-2.0
"""The suites of pools: time, and memory (pools_run.h and what it includes, a pool_NAME.c each)."""
import os

import contest
import pictures
from contest import Case, Contestant, Work

POOLS = {"reap": "reap", "apr": "apr", "talloc": "talloc", "talloc_pool": "talloc pool", "obstack": "obstack",
         "mimalloc": "mi heap"}
YARDSTICKS = ["raw", "bump"]

# Where a mean is wanted of ratios to the best peer, what it is of; how large it and each of them may be.
FREES = ["churn", "phases", "vectors", "big", "passed", "perl"]
ONE = ["alone", "shared 1"]
TWO = ["shared 2", "messages"]


def out(labels):
    return [label + " out" for label in labels]


GROUPS = {
    "regions": (["request", "nested", "nested 2", "nested 4", "nested 8", "three", "fill", "clear", "trees", "httpd"], 0.80,
                1.00),
    "regions out of cache": (out(["request", "nested", "three", "fill", "clear", "trees", "httpd"]), 0.80, 1.00),
    "with frees": (FREES, 1.00, 1.20),
    "with frees, out of cache": (out(FREES), 1.00, 1.20),
    "one thread, shared or not": (ONE + out(ONE), None, None),
    "two threads": (TWO + out(TWO), None, None),
}
NEAR_RAW, NEAR_RAW_AT_MOST = ["request", "fill", "clear"], 1.30
NEAR_RAW += out(NEAR_RAW)


def built_beside(build, name, directory):
    """pool_reap as it is here, on the reap.h and the library of another build."""
    program = f"{build}/bench/beside-pool_reap-{name}"
    contest.compile_beside(directory, ["pool_reap.c"], program, "reap-malloc", f"{build}/.libs/libpools.a", "-llz4")
    return program


def of_regions(build, options):
    """Reaps first, and with other options, and of other builds; then the others' pools, and ours under APR's."""
    found = []
    for file, name in POOLS.items():
        program = f"{build}/bench/pool_{file}"
        absent = not os.path.exists(program)
        found.append(Contestant(name, program, ours=name == "reap", absent=absent))
        if absent:
            print(f"absent: {name}, for there is no bench/pool_{file}")
            continue
        if name == "reap":
            found += [Contestant(also, program, options=also, ours=True) for also in options.also]
            found += [Contestant(other, built_beside(build, other, directory), ours=True, beside=True)
                      for other, directory in contest.besides(options)]
        if name == "apr" and os.path.exists(f"{build}/.libs/libreap-apr.so"):
            libraries = [f"{build}/.libs/{library}" for library in ("libreap.so.0", "libreap-apr.so")]
            found.append(Contestant("apr on reaps", program, ":".join(libraries), ours=True))
    return found


def contestants_of(build, options):
    """Those; then malloc with a list on each malloc; then what is no peer, for it is no more than the least that an
    allocation can be."""
    found = of_regions(build, options)
    found += [Contestant(f"list {c.name}", f"{build}/bench/pool_malloc", c.preload, absent=c.absent)
              for c in contest.mallocs(build, options) if not c.ours]
    return found + [Contestant(name, f"{build}/bench/pool_{name}", yardstick=True) for name in YARDSTICKS]


# --- time ----------------------------------------------------------------------------------------------------------

def timed(build, contestant, case):
    run = contest.run_once(build, contestant, case)
    if run:
        run["cpu_ns"] /= run["operations"]
    return run


def plan_pools(build, options):
    cases = contest.wanted([Case(label, label.split()) for labels, _, _ in GROUPS.values() for label in labels], options)
    return [Work(contestants_of(build, options), cases, 5, timed)]


def show_pools(build, options, works):
    contestants, cases = works[0].contestants, works[0].cases
    groups = {group: [case for case in cases if case.label in labels] for group, (labels, _, _) in GROUPS.items()}
    for figure, how in (("ns", "by the clock"), ("cpu_ns", "of CPU time")):
        for group, of_group in groups.items():
            contest.print_figures(f"pools, {group}: ns per operation {how}, minimum", contestants, of_group, figure,
                                  "{:.1f}")
    contest.print_table("pools: time by the clock relative to reap's in the same round, median; above 1: slower",
                        [""] + [c.name for c in contestants],
                        [[case.label] + [contest.round_ratio(c, contestants[0], case) for c in contestants] for case in cases])
    contest.print_table("pools: peak RSS in MiB, median", [""] + [c.name for c in contestants], [
        [case.label] + [contest.middle(c, case, "rss", "{:.1f}") for c in contestants] for case in cases])
    print_wanted(contestants, groups)
    for group in ("regions", "with frees"):
        pictures.draw(build, f"pools-{group.split()[-1]}", "ns", f"pools, {group}: time relative to the best peer",
                      contestants, groups[group], 4)


def print_wanted(contestants, groups):
    """The issue's figures in a line each, of minima."""
    print("\nreap's time to that of the best peer of each workload, to raw and to bump; wanted: not above")
    for group, cases in groups.items():
        _, mean, most = GROUPS[group]
        for figure, how in (("ns", "clock"), ("cpu_ns", "CPU")):
            ratios = {case.label: contest.ratio(contestants[0], contestants, case, figure) for case in cases}
            ratios = {label: r for label, r in ratios.items() if r}
            if mean and ratios:
                greatest = max(ratios, key=ratios.get)
                print(f"  {group}, {how}: geometric mean {contest.geometric_mean(ratios.values()):.3f} (wanted {mean}), "
                      f"greatest {ratios[greatest]:.3f}, {greatest}" + (f" (wanted {most})" if most else ""))
    print_share(contestants, groups)
    print_shared(contestants[0], groups)
    for yardstick in [c for c in contestants if c.yardstick]:
        for figure, how in (("ns", "clock"), ("cpu_ns", "CPU")):
            near = [(case.label, contest.to_other(contestants[0], yardstick, case, figure))
                    for cases in groups.values() for case in cases if case.label in NEAR_RAW]
            told = ", ".join(f"{label} {r:.2f}" for label, r in near if r)
            if told:
                print(f"  {yardstick.name}, {how}: {told} (wanted {NEAR_RAW_AT_MOST})")


def print_share(contestants, groups):
    """What a workload costs without an allocator: as a share of our time, and of the best peer's."""
    bump = next(c for c in contestants if c.name == "bump")
    for group, cases in groups.items():
        shares = []
        for case in cases:
            own, ours = bump.figures(case, "cpu_ns"), contestants[0].figures(case, "cpu_ns")
            best = contest.best_peer(contestants, case, "cpu_ns")
            if own and ours and best:
                shares.append((case.label.removesuffix(" out"), min(own) / min(ours), min(own) / best))
        if shares:
            told = ", ".join(f"{label} {ours:.2f} ({best:.2f})" for label, ours, best in shares)
            print(f"  {group}: of reap's CPU time (and of the best peer's) bump needs {told}")


def print_shared(ours, groups):
    """What it costs that a reap is shared, and what a second thread brings."""
    found = {case.label: case for cases in groups.values() for case in cases}
    for beyond in ("", " out"):
        cases = [found.get(label + beyond) for label in ("alone", "shared 1", "shared 2")]
        if not all(case and ours.figures(case, "ns") for case in cases):
            continue
        own, one, two = (min(ours.figures(case, "ns")) for case in cases)
        print(f"  shared{beyond}: one thread {one / own:.2f} of an ordinary reap (wanted 1.50), "
              f"two threads {one / two:.2f} of one's throughput (wanted 1.80)")


# --- memory --------------------------------------------------------------------------------------------------------

IDLE = [10000, 100000]
KIB_FORM, SHARE_FORM = "{:.2f}", "{:.3f}"


def remembered(build, contestant, case):
    """KiB a pool; held over asked for; the share that came back of what was there when all was alive."""
    run = contest.run_once(build, contestant, case)
    if run is None:
        return None
    if case.label.startswith("idle"):
        run["a_pool"] = run["grown"] / run["operations"]
    if "asked" in run:
        run["rss_asked"] = run["grown"] / run["asked"]
    for total, part, name in (("full", "fell", "back_fell"), ("full", "later", "back_later"),
                              ("full_held", "fell_held", "held_back_fell"), ("full_held", "later_held", "held_back_later")):
        if total in run:
            run[name] = 1 - run[part] / run[total]
    if "asked" in run and "held" in run:
        run["held_asked"] = run["held"] / run["asked"]
    return run


def plan_memory(build, options):
    cases = [Case(label, label.split()) for label in (*(f"idle {n}" for n in IDLE), "hold", "fall")]
    return [Work(contestants_of(build, options), contest.wanted(cases, options), 2, remembered)]


def show_memory(build, options, works):
    contestants = works[0].contestants
    idle, hold, fall = ([case for case in works[0].cases if case.label.startswith(label)]
                        for label in ("idle", "hold", "fall"))

    def table(title, cases, figures, form):
        rows = [[what or case.label] + [contest.middle(c, case, figure, form) for c in contestants]
                for case in cases for figure, what in figures]
        contest.print_table(title, [""] + [c.name for c in contestants], rows)

    table("memory: KiB of RSS for each of so many pools with three objects of 16 to 128 bytes", idle,
          [("a_pool", "")], KIB_FORM)
    table("memory: a pool with 64 MB of such objects, over the sum of their sizes, each rounded up to 16", hold,
          [("rss_asked", "growth of RSS"), ("held_asked", "what it says that it holds")], SHARE_FORM)
    table("memory: random ones of 200,000 objects replaced while they become a tenth: what share of the memory came back",
          fall, [("back_fell", "of RSS, when a tenth is left"), ("back_later", "of RSS, that replaced 12 times over"),
                 ("held_back_fell", "of what it says that it holds, a tenth left"),
                 ("held_back_later", "of that, the tenth replaced 12 times over")], SHARE_FORM)
    print_memory_wanted(contestants, idle, hold, fall)


def print_memory_wanted(contestants, idle, hold, fall):
    """The issue's figures: an idle reap is to be no larger than APR's pool."""
    ours, peers = contestants[0], [c for c in contestants if c.name == "apr"]
    print("\nreap's memory")
    for case in idle:
        wanted = "".join(f" (wanted: APR's, {contest.middle(c, case, 'a_pool', KIB_FORM)})" for c in peers)
        print(f"  {case.label}: {contest.middle(ours, case, 'a_pool', KIB_FORM)} KiB a pool{wanted}")
    for case in hold:
        print(f"  over what was asked for: {contest.middle(ours, case, 'rss_asked', SHARE_FORM)} in RSS (wanted 1.02)")
    for case in fall:
        back = contest.middle(ours, case, "held_back_later", SHARE_FORM)
        print(f"  back of its chunks when a tenth lives: {back} (wanted 0.80)")
