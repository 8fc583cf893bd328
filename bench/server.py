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


def served(build, contestant, case):
    run = contest.run_once(build, contestant, case)
    run["rate"] = 1e9 / run["ns"]
    return run


def dynamic(build):
    """Heaps that change after N allocations; roundrobin is N = 1 without a count, and thread is N without end."""
    for name in ["roundrobin", *(f"dynamic:{n}" for n in ALLOCATIONS), "thread"]:
        yield Contestant(name, preload=build + "/.libs/libreap-malloc.so", options=f"heaps={name}", ours=True)


def plan_server(build, options):
    offsets = [model + offset for model in MODELS for offset in ("", " offset")]
    return [Work(contest.mallocs(build, options), cases_of(build, offsets, options), 5, served),
            Work(list(dynamic(build)), cases_of(build, SHARED, options), 3, served)]


def print_offsets(contestants, cases):
    """What a shifted stack brings, round by round."""
    found = {case.label: case for case in cases}
    rows = []
    for model in MODELS:
        plain, shifted = found.get(model), found.get(model + " offset")
        if not plain or not shifted:
            continue
        row = []
        for c in contestants:
            rates = zip(c.figures(plain, "rate"), c.figures(shifted, "rate"))
            row.append(contest.middle_of([b / a for a, b in rates], c, shifted, "{:.2f}"))
        rows.append([model] + row)
    contest.print_table("server: requests a second with an offset of the stacks to those without, median of rounds",
                        [""] + [c.name for c in contestants], rows)


def show_server(build, options, works):
    contestants, cases = works[0].contestants, works[0].cases
    heads = [""] + [c.name for c in contestants]
    contest.print_table("server: requests a second, median", heads,
                        [[case.label] + [contest.middle(c, case, "rate", "{:.0f}") for c in contestants] for case in cases])
    contest.print_figures("server: CPU time in s, user and system, minimum", contestants, cases, "cpu", "{:.3f}")
    contest.print_table("server: peak RSS in MiB, median; with processes that of the largest", heads,
                        [[case.label] + [contest.middle(c, case, "rss", "{:.1f}") for c in contestants] for case in cases])
    print_offsets(contestants, cases)
    contest.print_table("server: heaps=, requests a second, median", [""] + [case.label for case in works[1].cases],
                        [[c.name] + [contest.middle(c, case, "rate", "{:.0f}") for case in works[1].cases]
                         for c in works[1].contestants])
