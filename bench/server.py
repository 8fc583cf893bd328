# SPDX-License-Identifier: Apache-2.0
"""The suite of a server that searches, in three models of threads (server.c; McDowell, Eggers, Gribble, PPoPP 2003)."""
import contest
from contest import Case, Contestant, Work

# As many threads and processes as in the paper's 4.2, and the N of its figure 5.
MODELS = ["mt 8", "mp 8", "event 4"]
SHARED = ["mt 8", "event 4"]  # whose threads share heaps
ALLOCATIONS = [1, 10, 50, 100, 400, 1600, 6400, 25600]


def cases_of(build, labels, options):
    return contest.wanted([Case(label, label.split(), build + "/bench/server") for label in labels], options)


def dynamic(build):
    """Heaps that change after N allocations; roundrobin is N = 1 without a count, and thread is N without end."""
    for name in ["roundrobin", *(f"dynamic:{n}" for n in ALLOCATIONS), "thread"]:
        yield Contestant(name, preload=build + "/.libs/libreap-malloc.so", options=f"heaps={name}", ours=True)


def plan_server(build, options):
    offsets = [model + offset for model in MODELS for offset in ("", " offset")]
    return [Work(contest.mallocs(build, options), cases_of(build, offsets, options), 5),
            Work(list(dynamic(build)), cases_of(build, SHARED, options), 3)]
