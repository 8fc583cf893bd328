# SPDX-License-Identifier: Apache-2.0
"""The suites of pools: time, requests, and memory (pools_run.h and what it includes, a pool_NAME.c each)."""
import os
import statistics

import contest
from contest import Case, Contestant, Work

POOLS = {"reap": "reap", "apr": "apr", "talloc": "talloc", "talloc_pool": "talloc pool", "obstack": "obstack",
         "mimalloc": "mi heap"}
YARDSTICKS = ["raw", "bump"]

FREES = ["churn", "phases", "vectors", "big", "passed", "perl"]
ONE = ["alone", "shared 1"]
TWO = ["shared 2", "messages"]


def out(labels):
    return [label + " out" for label in labels]


GROUPS = {
    "regions": ["request", "nested", "nested 2", "nested 4", "nested 8", "three", "fill", "clear", "trees", "httpd"],
    "regions out of cache": out(["request", "nested", "three", "fill", "clear", "trees", "httpd"]),
    "with frees": FREES,
    "with frees, out of cache": out(FREES),
    "one thread, shared or not": ONE + out(ONE),
    "two threads": TWO + out(TWO),
}


def built_beside(build, name, directory):
    """pool_reap as it is here, on the reap.h and the library of another build."""
    program = f"{build}/bench/beside-pool_reap-{name}"
    contest.compile_beside(directory, ["pool_reap.c"], program, "reap-malloc", f"{build}/.libs/libpools.a", *contest.setting(build, "LZ4_LIBS").split())
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
    cases = contest.wanted([Case(label, label.split()) for labels in GROUPS.values() for label in labels], options)
    return [Work(contestants_of(build, options), cases, 5, timed)]


# --- requests ------------------------------------------------------------------------------------------------------

REQUESTS = [f"served {objects} {frees}" for objects in (10, 50, 200) for frees in (0, 1, 2, 30)]
REQUESTS += ["resized", "copied", "built", "marked", "limited"]
WAITED = ["waited 20", "waited 200"]
REQUEST_FIGURES = [("cpu_ns", "CPU time of a request", "ns", min), ("ns", "time of a request by the clock", "ns", min)] + [
    (f"{when}_{what}", f"{text} of a connection that {waits}", "KiB a pool", statistics.median)
    for when, waits in (("new", "has had no request"), ("idle", "has had five")) for what, text in (("rss", "RSS"), ("held", "memory"))]


def requested(build, contestant, case):
    """Times of requests; or KiB of a connection, and no time, for most of it is a connection's first requests."""
    run = timed(build, contestant, case)
    if run and "idle_rss" in run:
        run = {name: value / 1024 if name.startswith(("new_", "idle_")) else value for name, value in run.items() if name not in ("ns", "cpu_ns")}
    return run


def plan_requests(build, options):
    everybody = [c for c in contestants_of(build, options) if c.name != "bump"]
    return [Work(everybody, contest.wanted([Case(label, label.split()) for label in REQUESTS + WAITED], options), 5, requested)]


# --- memory --------------------------------------------------------------------------------------------------------

IDLE = [10000, 100000]
FIGURES = [("a_pool", "RSS of a pool with three objects of 16 to 128 bytes", "KiB a pool", statistics.median),
           ("rss_asked", "RSS of 64 MB of such objects over the sum of their sizes, each rounded up to 16", "ratio", statistics.median),
           ("left_fell", "RSS, when random ones of 200,000 objects were replaced and a tenth is left", "ratio", statistics.median),
           ("left_later", "the same, that tenth replaced 12 times over within a second", "ratio", statistics.median)]


def remembered(build, contestant, case):
    """KiB a pool; growth over asked for; what is left of what was there when all was alive."""
    run = contest.run_once(build, contestant, case)
    if run and case.label.startswith("idle"):
        run["a_pool"] = run["grown"] / run["operations"]
    if run and "asked" in run:
        run["rss_asked"] = run["grown"] / run["asked"]
    for name in ("fell", "later") if run and "full" in run else ():
        run[f"left_{name}"] = run[name] / run["full"]
    return run


def plan_memory(build, options):
    cases = [Case(label, label.split()) for label in (*(f"idle {n}" for n in IDLE), "hold", "fall")]
    return [Work(contestants_of(build, options), contest.wanted(cases, options), 2, remembered)]
