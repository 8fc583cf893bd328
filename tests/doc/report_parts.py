#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Parts of bench/report.py: report_parts.py BENCH TMP. Results that were made up become bench/report.html in TMP."""
import argparse
import contextlib
import os
import pathlib
import re
import resource
import signal
import statistics
import sys

bench, tmp = sys.argv[1:]
sys.dont_write_bytecode = True
sys.path.insert(0, bench)
import report # noqa: E402, F401: finds the python3 that draws
import inputs # noqa: E402
import programs # noqa: E402
import run # noqa: E402
from contest import Case, Contestant, Work # noqa: E402
from reporting import charts, exhibits, figures, machine, page, papers, plan, ratios, results, rounds # noqa: E402

FIGURES = [("ns", "time", "ns", min), ("rss", "peak RSS", "MiB", statistics.median)]
wrong = []


def expect(holds, what):
    if not holds:
        wrong.append(what)


def check_ratios():
    least = ratios.Figure([12, 10, 10.5, 30])
    expect(least.value == 10 and abs(least.spread - 0.05) < 1e-9, "the spread of a least is how far the second one is")
    middle = ratios.Figure([10, 20, 30], statistics.median)
    expect(middle.value == 20 and middle.spread == 0.5, "the spread of a median is how far it moves without a round")
    expect(ratios.Figure([5]).spread is None, "one round has no spread")
    expect(ratios.ratio({1: 2, 2: 9}, {2: 3, 3: 1}) == 3, "minima are of rounds that both have")
    expect(ratios.ratio({1: 10, 2: 8}, {1: 5, 2: 8}, statistics.median) == 1.5, "medians are of the ratios within rounds")
    expect(ratios.ratio({1: 1}, {2: 1}) is None and ratios.ratio({1: 1}, {1: 0}) is None, "no ratio without a round, or to nothing")
    expect(ratios.uncertainty(least, ratios.Figure([1])) is None, "one round is uncertain")
    for told, ratio, doubt in (("first", 0.9, 0.02), ("behind", 1.1, 0.02), ("level", 1.02, 0.02), ("level", 0.95, 0.06),
                               ("open", 1.15, 0.2), ("behind", 1.3, 0.2), ("behind", 1.2, None), ("open", 1.02, 0.3)):
        expect(ratios.verdict(ratio, doubt) == told, f"{ratio} with a spread of {doubt} is {told}")


def stored(name, machine_="m"):
    store = results.Store(f"{tmp}/{name}", machine_)
    store.lock()
    return store.load()


def refused(kinds, call, *words):
    """With which words."""
    try:
        call(*words)
        return ""
    except kinds as problem:
        return str(problem)


def saved(store, case, runs, suite="s"):
    round_ = store.begin(suite, case, 1000.0)
    round_.runs = runs
    store.save(round_)
    return round_


def check_results():
    store = stored("results")
    run = {"of": "x", "figures": {"ns": 1.5}, "seconds": 0.1}
    first, second, third = (saved(store, "a b", {"reap": run}) for _ in range(3))
    expect(refused(results.InUse, stored, "results"), "two reports may not work on one directory")
    store.held.close()

    folder, whole = pathlib.Path(tmp, "results", "s"), pathlib.Path(first.path).read_text()
    pathlib.Path(first.path).write_text(whole[:len(whole) // 2])  # as after a power cut
    pathlib.Path(second.path).write_text(whole.replace('"format": 1', '"format": 99'))
    (folder / ".a_b.009.json.1234").write_text("of a report that was killed")
    (folder / "a_c.001.json").write_bytes(b"\xff\xfe not text")
    (folder / "a_d.001.json").write_text(whole.replace('"runs": {', '"runs": [{').replace("}}}}", "}}}]}"))
    store = stored("results")
    expect([r.number for r in store.rounds["s", "a b"]] == [3], "what is truncated or of another format is not used, the rest is")
    told = "\n".join(store.problems)
    expect("not used: 4 results that are damaged" in told, "what is not used is said")
    expect(os.path.exists(first.path) and os.path.exists(second.path), "nothing is thrown away")
    expect(not (folder / ".a_b.009.json.1234").exists(), "leftovers of a killed report go")
    expect(saved(store, "a c", {"reap": run}).number == 2, "a new round overwrites no file")
    store.held.close()
    store = stored("results", "another machine")
    expect(not store.rounds and "2 results that are of another machine" in "\n".join(store.problems), "another machine's results are not used")
    store.held.close()

    # A file system without room, as far as a user without one can have it: no file may be longer.
    store = stored("results")
    before = open(third.path).read()
    third.key, third.runs = ("s", "a b"), {"reap": {**run, "told": "x" * 100000}}
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limit[1]))
    expect(third.path in refused(results.CannotWrite, store.save, third), "a file that cannot be written is an error, which names the file")
    resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    expect(open(third.path).read() == before, "the old file is whole when the new one does not fit")
    expect(not [name for name in os.listdir(f"{tmp}/results/s") if name.startswith(".")], "no half file stays")
    store.held.close()


def block_of(label, contestants, suite="threads", wanted=2):
    case = Case(label, label.split(), f"{tmp}/no-program")
    return rounds.Block(tmp, suite, FIGURES, Work(contestants, [case], 2), case, wanted)


def check_blocks():
    ours, peer, other = Contestant("reap", ours=True), Contestant("glibc"), Contestant("far", preload="x")
    store = stored("blocks")
    block = block_of("w", [ours, peer, other]).use(store)
    of = block.of

    def add(**ns):
        runs = {name: {"of": of[name], "seconds": 2, **({"figures": {"ns": v}} if v else {"failed": "crash"})} for name, v in ns.items()}
        round_ = saved(store, "w", runs, "threads")
        block.use(store)
        return round_

    expect(rounds.missing(block) == 2 and not block.settled(), "nothing was run yet")
    add(reap=10, glibc=20, far=None)
    expect(block.complete() == 1 and block.spread() is None, "one round is not settled")
    add(reap=10.1, glibc=30, far=None)
    expect([c.name for c in block.running()] == ["reap", "glibc"], "who failed twice is left out")
    expect(block.settled() and rounds.missing(block) == 0, "who is far behind need not settle")
    expect(block.seconds() == 4, "a round takes as long as it took, without who is left out")
    broken = add(reap=5, glibc=9)
    expect(not block.settled() and rounds.missing(block) == 1, "one more round while it has not settled")
    broken.runs["reap"]["of"] = "another build"
    block.use(store)
    expect(block.stale == 1 and block.figure("glibc", "ns").value == 20, "a round of another build does not count for anybody")
    far = block_of("v", [ours, peer]).use(store)
    expect(rounds.next_block([block, far], 100) is far, "what has the fewest rounds comes first")
    expect(rounds.next_block([far], 1) is None, "what would not end in time is not begun")
    store.held.close()

    store, runs = stored("sums"), []
    work = Work([ours, peer], [Case("s", ["s"], f"{tmp}/none")], 1, lambda build, c, case: {"ns": 1.0, "sum": len(c.name)})
    block = rounds.Block(tmp, "threads", FIGURES, work, work.cases[0], 1).use(store)
    rounds.run_round(store, block, lambda *a: runs.append(a), 1e18)
    told = block.rounds[0].runs
    expect("figures" in told["reap"] and "failed" in told["glibc"], "who reads other than the first has failed")
    expect(len(store.rounds["threads", "s"]) == 1 and len(os.listdir(f"{tmp}/sums/threads")) == 1, "a round is one file")

    ran = []

    def interrupted(build, contestant, case):
        ran.append(contestant.name)
        if len(ran) == 2:
            raise KeyboardInterrupt
        return {"ns": 1.0}

    work.once = interrupted
    with contextlib.suppress(KeyboardInterrupt):
        rounds.run_round(store, block, lambda *a: None, 1e18)
    again = results.Store(f"{tmp}/sums", "m").load().rounds["threads", "s"]
    expect([list(r.runs) for r in again] == [["reap", "glibc"], ran[:1]], "an interrupt loses the run under way, and no other")
    work.once = lambda build, c, case: {"ns": 1 / 0}
    rounds.run_round(store, block, lambda *a: None, 1e18)
    expect(block.rounds[-1].runs["reap"]["failed"] == "no figures", "a program that tells no figures has failed")
    store.held.close()


def check_plan():
    """Names in the report's tables are those of the suites: a case that was renamed would leave the page unseen."""
    inputs.make = lambda *_: None
    for program in programs.ALL:
        program.path = program.path or "/bin/true"
    os.makedirs(f"{tmp}/.libs", exist_ok=True)
    open(f"{tmp}/.libs/libreap-trace.so", "w").close()
    options = run.options_parser().parse_args(["--build", tmp])
    blocks, notes = plan.plan(tmp, options, False)
    expect(any("absent" in note for note in notes), "a peer that is not there is named")
    labels = {}
    for block in blocks:
        labels.setdefault(block.suite, []).append(block.case.label)
    expect(len({b.key for b in blocks}) == len(blocks), "a case has one place")
    for name, choice in plan.CHOICES.items():
        if choice.cases == "none":
            continue
        found = [label for suite, all_ in labels.items() if name in (suite, suite.split("-")[0]) for label in all_]
        expect(found, f"plan: no case of {name} is chosen")
        parts = re.split(r"\|(?![^(]*\))", choice.quick or "none")  # the alternatives outside of parentheses
        for part in parts if parts != ["none"] else ():
            expect(any(re.fullmatch(part, label) for label in found), f"plan: nothing of {name} is {part}")
    quick, _ = plan.plan(tmp, options, True)
    expect({b.key for b in quick} <= {b.key for b in blocks} and len(quick) < len(blocks) / 2, "the quick report is a part")
    view = charts.View(blocks)
    for question in view.questions:
        for group in question.groups:
            expect(any(b.suite == group.suite and re.fullmatch(group.cases, b.case.label) for b in blocks),
                   f"charts: no case for {group.title}")
    for exhibit in papers.exhibits():
        for row in exhibit.rows:
            if row.ours and row.ours[0] != ".*":
                suites, cases = row.ours[:2]
                expect(any(re.fullmatch(suites, b.suite) and re.fullmatch(cases, b.case.label) for b in blocks),
                       f"papers: {exhibit.key}, {row.label}: no case is {cases} of {suites}")


def run_of(failed=None, **figures):
    told = {"of": "", "seconds": 0.5, "others": 0.4, "steal": 0.0}
    return {**told, **({"failed": failed, "told": f"w on x: <{failed}> & more"} if failed else {"figures": figures})}


def made_up():
    """Blocks of what went well and of what did not."""
    ours, glibc = Contestant("reap", ours=True), Contestant("glibc")
    peers = [Contestant("jemalloc", preload="j"), Contestant("mimalloc", preload="m"), Contestant("tbb", absent=True),
             Contestant('odd <b> & "c"', preload="o")]
    everybody = [ours, glibc, *peers]
    made = []

    def add(block, *by_round):
        block.rounds = [results.Round(i, {"at": 1e9 + i, "runs": runs}) for i, runs in enumerate(by_round)]
        made.append(block)

    for i, label in enumerate(f"{w} {n}" for n in (1, 2, 16) for w in ("threadtest", "larson", "shbench", "storm", "scratch", "thrash")):
        runs = {"reap": run_of(ns=10.0 + i, rss=4.0), "glibc": run_of(ns=12.0, rss=3.0), "jemalloc": run_of("crash"),
                "mimalloc": run_of("hang") if i % 2 else run_of(ns=11.0, rss=0.0), 'odd <b> & "c"': run_of(ns=3.0 if i else 3e7, rss=9.0)}
        add(block_of(label, everybody, "scaling" if label.endswith(" 1") else "threads"), runs, {**runs, "reap": run_of(ns=10.5 + i, rss=4.1)})
    add(block_of("gs", everybody, "programs"), {"glibc": run_of(cpu=1.0, rss=30.0), "reap": run_of("status 1")})
    add(block_of("python3", everybody, "programs"))
    add(block_of("hello", everybody, "small"), {"reap": run_of(shared_out=100), "glibc": run_of(shared_out=0)})
    regions = [ours, Contestant("apr", "p"), Contestant("list glibc", "p"), Contestant("raw", "p", yardstick=True)]
    for label in ("request", "trees", "churn", "fall", "httpd"):
        add(block_of(label, regions, "memory" if label == "fall" else "pools"),
            {"reap": run_of(cpu_ns=3.0, ns=3.0, rss=2.0, left_later=0.5), "apr": {"of": "", "none": True} if label == "churn" else
             run_of(cpu_ns=4.0, ns=4.0, rss=2.0, left_later=0.9), "raw": run_of(cpu_ns=2.0, rss=2.0), "list glibc": run_of(cpu_ns=9.0, ns=9.0, rss=9.0)})
    add(block_of("larson 14", everybody, "fourteen"), {"reap": run_of(held_asked=1.9, rss_asked=1.5), "glibc": run_of(rss_asked=2.0)})
    return made


def check_page():
    view = charts.View(made_up())
    html = page.page(view, machine.describe(), ["absent: tbb, for <it> is not there"], [("Interrupted & so on <here>.", True)])
    pictures = page.pictures(view, ["A machine & <a day>"])
    expect([text.count("<svg x=") for text in pictures.values()] == [1, 3], "doc/figures.md has two pictures, of one part and of three")
    for name, text in {"report.html": html, "empty.html": page.page(charts.View([]), [], [], []), **pictures}.items():
        pathlib.Path(tmp, name).write_text(text)
        outside = re.findall(r'(?:src|href|srcset|data|action)\s*=\s*["\'](?!#)[^"\']*|url\((?!#)[^)]*|@import|<script|<link|<iframe', text)
        expect(not outside, f"the page names what is outside of it: {outside[:3]}")
        expect(not re.search(r"\bNone\b|\bnan\b|\binf\b", text), "a missing value is on the page")
    for word in ("crash", "hang", "absent", "not yet run", "cannot", "status 1", "busy machine: others use 40%",
                 "w on x: &lt;crash&gt; &amp; more (36 times)", "Interrupted &amp; so on &lt;here&gt;.", "odd &lt;b&gt; &amp; &quot;c&quot;",
                 "BEMengine", "30.0 M"):
        expect(word in html, f"the page does not have: {word}")
    panel = charts.Panel(view.block("threads", "larson 2"), charts.Group("t", "threads", ".*", "ns", "ns", base="glibc"))
    expect(panel.says() == 'reap is behind: 5.7 times the time of odd <b> & "c", the best peer (spread 3%).', "who is behind is said")
    expect(panel.why() != "" and page.reasons([panel]) == {panel.why(): {"larson 2": '5.67 of odd <b> & "c"'}}, "and why")
    words = {cell.name: cell.word for cell in panel.cells}
    expect(words["jemalloc"] == "crash" and words["tbb"] == "absent", "a cell says how a peer failed")
    shown = exhibits.shown(view, next(e for e in papers.exhibits() if e.key == "hoard-2"))
    expect([p.label for p in shown.pictures] == ["Ghostscript", "threadtest", "shbench", "active-false", "passive-false"],
           "table 2 has what was measured")
    expect(any("BEMengine" in names for names in shown.missing.values()), "and says what was not")


def check_figures():
    """A part of doc/figures.md is what was measured of it, under a line that says when and where; the others stay."""
    marks = "".join(f"\n<!-- {name} -->\nold {name}\n<!-- end of {name} -->\n" for name in figures.PARTS)
    view, blocks = charts.View(made_up()), made_up()
    for block in blocks:
        for round_ in block.rounds:
            round_.commit = "commit abc"
    view.blocks = blocks
    text, stayed = figures.write("before" + marks + "after", view, ["regions", "small", "malloc"], tmp, bench, True)
    expect("| request: child, objects, destroy | 3.00 | 4.00 | - | - | - | - | 9.00 | 2.00 |" in text, "the page has the regions' figures")
    expect("| random churn of 10,000 live objects | 3.00 | - | - " in text, "and who cannot do it")
    expect("| hello, world | - | - | 0.00 | 100 | - | - |" in text, "and small programs")
    expect(text.count("at commit abc: ") == 2 and "of the quick report" in text and "others used 40%" in text, "each under when, where and beside what")
    expect("old memory" in text and "old regions" not in text and text.startswith("before") and text.endswith("after"), "other parts stay")
    expect(stayed == ["malloc"] and "old malloc" in text, "and so does what was not measured")
    for names, page_ in (("regions", "no marks"), ("nonsense", marks)):
        expect(refused((ValueError, argparse.ArgumentTypeError), lambda: figures.write(page_, view, figures.names_of(names), tmp, bench, False)),
               f"{names} of a page that has it not is written")


for check in (check_ratios, check_results, check_blocks, check_plan, check_page, check_figures):
    check()
print(*wrong, sep="\n", end="\n" * bool(wrong))
sys.exit(bool(wrong))
