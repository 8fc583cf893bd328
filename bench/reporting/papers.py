# SPDX-License-Identifier: Apache-2.0
"""The papers' tables and figures: their numbers, where they stand, and what of ours stands beside them.

A number of a figure is there only if the paper's text has it. A row says by patterns which suite and case of ours is
the same or the nearest, or why there is none; the first case that was measured serves, so a benchmark that is added to
run.py under such a name comes onto the page by itself."""
import collections

HOARD = "Berger, McKinley, Blumofe, Wilson: Hoard, ASPLOS 2000"
THESIS = "Berger: Memory Management for High-Performance Applications, PhD thesis, 2002"
SMT = "McDowell, Eggers, Gribble: Improving Server Software Support for SMT, PPoPP 2003"
A2 = "Kats, Hong: CSC469 Assignment 2, 2014"

NICKNAMES = {HOARD: "Hoard", THESIS: "Thesis", SMT: "SMT servers", A2: "Assignment"}

INPUTS = "the program or its inputs are of SPEC or of Wilson and Johnstone's collection, which Debian has not"
BEM = "BEMengine is a part of Coyote Systems' BEMSolver, a commercial product"
FOURTEEN = "a machine of 14 processors"


# A number of the paper's: its name and value, and the other end where the text gives a range or only a bound.
Paper = collections.namedtuple("Paper", "name value to told", defaults=(None, ""))


class Row:
    """A row of a table. ours: patterns of suite and case, and the figure; why: the reason if nothing fits. only: a
    pattern of the contestants that are shown; names: what they are called here."""

    def __init__(self, label, paper=(), ours=None, why="", only=".*", names=None, note=""):
        self.label, self.paper, self.ours, self.why, self.only, self.names, self.note = label, list(paper), ours, why, only, names or {}, note


class Exhibit:
    """A table or figure. figure: the key of our runs; base: whom both are relative to, as the paper has it and as we
    have it; inverse: more is better (throughput). table: the paper's own numbers."""

    def __init__(self, key, source, place, title, text, rows=(), figure="ns", unit="", base=None, summary="min", kind="time",
                 inverse=False, relative=True, table=None, lines=None, scale=1):
        self.key, self.source, self.place, self.title, self.text = key, source, place, title, text
        self.rows, self.figure, self.unit, self.base, self.summary, self.kind = list(rows), figure, unit, base, summary, kind
        self.inverse, self.relative, self.table, self.lines, self.scale = inverse, relative, table, lines, scale  # of what stands beside a ratio

    def heading(self):
        return f"{NICKNAMES[self.source]}, {self.place.split(', ')[0]}: {self.title}"


# --- Hoard, ASPLOS 2000 ---------------------------------------------------------------------------------------------------------

TABLE_2 = [("espresso", 6.806, 7.887), ("Ghostscript", 3.610, 3.993), ("LRUsim", 1615.413, 1570.488), ("p2c", 1.504, 1.586),
           ("threadtest", 16.549, 15.599), ("shbench", 12.730, 18.995), ("active-false", 18.844, 18.959),
           ("passive-false", 18.898, 18.955), ("BEMengine", 678.30, 614.94), ("Barnes-Hut", 192.51, 190.66)]
OURS_2 = {"Ghostscript": ("programs", "gs", "cpu"), "threadtest": ("scaling|threads", "threadtest 1", "ns"),
          "shbench": ("scaling|threads", "shbench 1", "ns"), "active-false": ("scaling|threads", "(thrash|active.*) 1", "ns"),
          "passive-false": ("scaling|threads", "(scratch|passive.*) 1", "ns"), "Barnes-Hut": ("scaling|threads", "barnes 1", "ns"),
          "espresso": (".*", "espresso.*", "cpu"), "LRUsim": (".*", "lrusim.*", "cpu"), "p2c": (".*", "p2c.*", "cpu")}
TABLE_4 = [("espresso", 1.47, 284520, 417032), ("Ghostscript", 1.15, 1171408, 1342240), ("LRUsim", 1.05, 1571176, 1645856),
           ("p2c", 1.20, 441432, 531912), ("threadtest", 1.24, 1068864, 1324848), ("shbench", 3.17, 556112, 1761200),
           ("Larson", 1.22, 8162600, 9928760), ("BEMengine", 1.02, 599145176, 613935296), ("Barnes-Hut", 1.18, 11959960, 14114040)]
OURS_4 = {"Ghostscript": ("fragmentation-2", "gs"), "threadtest": ("fourteen|fragmentation", "threadtest (14|16)"),
          "shbench": ("fourteen|fragmentation", "shbench (14|16)"), "Larson": ("fourteen|fragmentation", "larson (14|16)"),
          "Barnes-Hut": ("fourteen|fragmentation", "barnes (14|16)")}
TABLE_5 = [("threadtest", 1.27, 1.28, 1.19), ("shbench", 1.45, 1.50, 1.44), ("BEMengine", 86.85, 87.49, 88.03),
           ("Barnes-Hut", 16.52, 16.13, 16.41), ("Larson", 1 / 4407654, 1 / 4416303, 1 / 4352163)]
TABLE_6 = [("threadtest", 1.22, 1.24, 1.22), ("shbench", 3.17, 3.17, 3.16), ("Larson", 1.22, 1.22, 1.61),
           ("BEMengine", 1.02, 1.02, 1.02), ("Barnes-Hut", 1.18, 1.18, 1.18)]
OURS_56 = {"threadtest": "threadtest", "shbench": "shbench", "Larson": "larson", "Barnes-Hut": "barnes"}
FRACTIONS = ("f = 1/8", "f = 1/4", "f = 1/2")


def why_not(program):
    return BEM if program == "BEMengine" else INPUTS if program in ("espresso", "LRUsim", "p2c", "Ghostscript") else "not in this run"


def hoard_2():
    for program, solaris, hoard in TABLE_2:
        ours = OURS_2.get(program)
        note = "Ghostscript draws a page of ours (bench/programs/work.ps), not the paper's." if program == "Ghostscript" else ""
        yield Row(program, [Paper("Hoard", hoard / solaris)], ours, why_not(program), note=note)


def hoard_4():
    for program, fragmentation, _, _ in TABLE_4:
        ours = OURS_4.get(program)
        yield Row(program, [Paper("Hoard", fragmentation)], ours and (*ours, None), why_not(program))


def hoard_fractions(table, figure, suite):
    for program, *by_fraction in table:
        base = by_fraction[1] if figure == "ns" else 1
        paper = [Paper(f, value / base) for f, value in zip(FRACTIONS, by_fraction)]
        ours = OURS_56.get(program)
        yield Row(program, paper, ours and (suite, f"{ours} 14", figure), why_not(program))


# --- the thesis, 2002 -------------------------------------------------------------------------------------------------------------

GENERAL = ("Kingsley", "KingsleyHeap", "KHeap + coal.", "Lea", "LeaHeap")
TABLE_4_3 = [("cfrac", 19.02, 19.75, 25.94, 19.09, 20.14), ("espresso", 40.66, 40.91, 44.56, 41.12, 46.33),
             ("lindsay", 3.05, 3.04, 3.16, 3.01, 3.03), ("LRUsim", 836.67, 827.10, 826.44, 831.98, 828.36),
             ("perl", 66.94, 70.01, 73.61, 66.32, 68.60), ("roboop", 10.81, 11.19, 17.89, 10.89, 13.08)]
TABLE_4_4 = [("cfrac", 270336, 280640, 271944, 208896, 241272), ("espresso", 974848, 992032, 541696, 462848, 448808),
             ("lindsay", 2158592, 2120752, 1510688, 1515520, 1506720), ("LRUsim", 2555904, 2832272, 1887512, 1585152, 1887440),
             ("perl", 425984, 454024, 342344, 331776, 337408), ("roboop", 45056, 20760, 11440, 20480, 11616)]


def thesis_general(table, figure):
    for program, *values in table:
        paper = [Paper(name, value / values[3]) for name, value in zip(GENERAL, values) if name != "Lea"]
        ours = ("programs", "perl", figure) if program == "perl" else (".*", program.lower() + ".*", figure)
        note = "Perl is Debian's, with a script of ours (bench/programs/work.pl), not 253.perlbmk." if program == "perl" else ""
        yield Row(program, paper, ours, INPUTS, note=note)


# By program: what does the same in the suite of programs with allocators of their own, and what the text says of time and of memory.
REGION_PROGRAMS = [
    ("197.parser", "parser", [Paper("Windows", 1.6, told=">1.6")], []),
    ("boxed-sim", "boxed", [Paper("Windows", 1.0, 1.1, "<1.1")], []),
    ("C-Breeze", None, [Paper("Lea", 1.0, told="<1")], []),
    ("175.vpr", None, [Paper("Windows", 1.0, 1.1, "<1.1")], [Paper("Lea", 1.09, told="1.09")]),
    ("176.gcc", "gcc", [Paper("Lea", 1.02, told="≈1.02")], [Paper("Lea", 1.47, told="1.47")]),
    ("apache", "httpd", [Paper("Windows", 1.0, 1.1, "<1.1")], []),
    ("lcc", "lcc", [Paper("Lea", 1.21, 1.47, "1.21–1.47"), Paper("reaps", 1.0, 1.08, "<1.08")], []),
    ("mudlle", "lcc", [Paper("Windows", 1.6, told=">1.6"), Paper("Lea", 1.21, 1.47, "1.21–1.47"), Paper("reaps", 1.0, 1.08, "<1.08")],
     []),
]
NO_REGIONS = "no program of ours does what it does, and the paper's is SPEC's or not in Debian"
LIKE = "It is written anew after what the thesis tells of the program; mallocs have an emulator of regions."
MUDLLE = "Here as in lcc: a compiler's regions, written anew."


def note_of(program):
    return MUDLLE if program == "mudlle" else LIKE


def thesis_regions(figure, of_memory):
    for program, case, time, memory in REGION_PROGRAMS:
        yield Row(program, memory if of_memory else time, case and ("custom", case, figure), "not in this run" if case else NO_REGIONS,
                  note=note_of(program))


def thesis_similar():
    for program, windows, vmalloc in (("lcc", 2.0, 4.0), ("mudlle", 1.68, 1.43)):
        yield Row(program, [Paper("reaps", 1.0, 1.08, "<1.08"), Paper("Windows heaps", windows), Paper("Vmalloc", vmalloc)],
                  ("custom", "lcc", "cpu_ns"), "not in this run", note=note_of(program))


# --- PPoPP 2003 ---------------------------------------------------------------------------------------------------------------------

POLICIES = {"single, block": "one heap", "roundrobin, block": "RoundRobin", "dynamic:100, block": "DynamicHeap",
            "thread, block": "StaticHeap", "cid": "reap's default"}
LOCKS = {"thread, block": "Static, block", "thread, spin": "Static, spin", "thread, both": "Static, both",
         "dynamic:100, block": "Dynamic, block", "dynamic:100, spin": "Dynamic, spin", "dynamic:100, both": "Dynamic, both"}


def smt_allocators():
    yield Row("a server with 8 threads", [Paper("BaseAlloc", 0.07 / 1.26), Paper("FirstFit", 0.29 / 1.26), Paper("RoundRobin", 1 / 1.17),
                          Paper("DynamicHeap", 0.96), Paper("processes", 1 / 1.26)],
              ("policies", "mt 8|larson 16", "ns"), "not in this run", "|".join(POLICIES), POLICIES)


def smt_locks():
    static = 1.26 * 130.9
    yield Row("a server with 8 threads", [Paper("Static, both", 167.6 / static), Paper("Static, lockbox", 166.9 / static),
                          Paper("Dynamic, both", 170.7 / static), Paper("Dyn., lockbox", 174.1 / static)],
              ("policies", "mt 8|larson 16", "ns"), "not in this run", "|".join(LOCKS), LOCKS,
              "lockbox is a lock in the processor's hardware with a time-out, which this processor has not.")


def smt_events():
    yield Row("a server of events", [Paper("DynamicHeap", 1.13, 1.34, "1.13–1.34")], ("policies", "event 4", "ns"), "not in this run",
              "|".join(POLICIES), POLICIES)


# --- Kats and Hong, 2014 --------------------------------------------------------------------------------------------------------------

def kats_larson():
    yield Row("larson, two threads", [Paper("a2alloc", 3.00 / 4.29)], ("threads", "larson 2", "ns"), "not in this run")


def kats_memory():
    yield Row("larson", [Paper("a2alloc", 5.1)], ("fourteen|fragmentation", "larson (14|16)", None), "not in this run")


# --- all of it ----------------------------------------------------------------------------------------------------------------------------

def exhibits():
    return [
        Exhibit("hoard-2", HOARD, "table 2, section 5.1", "Runtimes on one processor", "Time relative to the system's malloc: in the "
                "paper Hoard to Solaris 7's, here each malloc to glibc's.", hoard_2(), unit="of the system's malloc", base="glibc",
                table=(("program", "Solaris, s", "Hoard, s"), TABLE_2)),
        Exhibit("hoard-figures", HOARD, "figures 3 and 4, section 5.2", "Speedup with threads", "Throughput relative to glibc's malloc "
                "with one thread. At 14 processors the paper's Hoard is 278 % faster than Ptmalloc in threadtest, 85 % faster "
                "in shbench, 18 times in Larson. This machine has CPUS CPUs: beyond as many threads a curve can only stay level.",
                lines=("threadtest", "shbench", "larson", "thrash", "scratch")),
        Exhibit("hoard-4", HOARD, "table 4, section 5.4", "Fragmentation", "The most held over the most asked for, with as many threads "
                "as the paper had processors. Of the paper's Hoard and of reap, held, that is what the allocator counts; for all, the "
                "growth of RSS from the start of main to its peak.", hoard_4(), figure=None, unit="A / U", kind="memory",
                relative=False, table=(("program", "A/U", "U, bytes", "A, bytes"), TABLE_4)),
        Exhibit("hoard-5", HOARD, "table 5, section 5.5", "Runtime by empty fraction", "Time with 14 threads, relative to f = 1/4. "
                "Larson's throughput is turned into a time.", hoard_fractions(TABLE_5, "ns", "fractions"), unit="of f = 1/4", base="f = 1/4",
                summary="median", table=(("program", *FRACTIONS), [r for r in TABLE_5 if r[0] != "Larson"])),
        Exhibit("hoard-6", HOARD, "table 6, section 5.5", "Fragmentation by empty fraction", "The most held over the most asked for, "
                "with 14 threads.", hoard_fractions(TABLE_6, "held_asked", "fractions-2"), figure="held_asked", unit="A / U", kind="memory",
                relative=False, table=(("program", *FRACTIONS), TABLE_6)),
        Exhibit("thesis-4.3", THESIS, "table 4.3, page 47", "Runtimes of general allocators", "Relative to Lea's allocator in the thesis, "
                "and to glibc's here, which descends from it.", thesis_general(TABLE_4_3, "cpu"), figure="cpu", base="glibc",
                unit="of Lea's, glibc's", table=(("program", *GENERAL), TABLE_4_3)),
        Exhibit("thesis-4.4", THESIS, "table 4.4, page 47", "Memory of general allocators", "Relative to Lea's allocator in the thesis, "
                "where it is what was asked of the system; here peak RSS relative to glibc's.", thesis_general(TABLE_4_4, "rss"),
                figure="rss", base="glibc", unit="of Lea's, glibc's", summary="median", kind="memory",
                table=(("program", *GENERAL), TABLE_4_4)),
        Exhibit("thesis-6.3a", THESIS, "figures 5.3(a) and 6.3(a), pages 64 and 77", "Programs with allocators of their own: time", "Relative "
                "to the program's own allocator. The figures' bars have no numbers; those here are of the text.",
                thesis_regions("cpu_ns", False), figure="cpu_ns", base="own", unit="of its own allocator"),
        Exhibit("thesis-6.3b", THESIS, "figures 5.3(b) and 6.3(b), pages 64 and 77", "Programs with allocators of their own: memory", "Peak "
                "memory, in the thesis that of Lea's allocator relative to the program's own (obstacks save 32 % in gcc, vpr's "
                "arena 8 %); here RSS.", thesis_regions("rss", True), figure="rss", base="own",
                summary="median", kind="memory", unit="of its own allocator"),
        Exhibit("thesis-6.4", THESIS, "figure 6.4, page 79", "Allocators with regions and frees", "Time of the two programs with most "
                "allocations, relative to their own regions.", thesis_similar(), figure="cpu_ns", base="own", unit="of its own regions"),
        Exhibit("smt-1", SMT, "figure 1, section 5.1", "Heaps of a server with threads", "Throughput relative to StaticHeap, by the text: "
                "BaseAlloc 7 % and FirstFit 29 % of a server with processes, StaticHeap 126 %, 17 % above RoundRobin, DynamicHeap 4 % "
                "below StaticHeap. The server is a search engine on a simulated processor of four contexts. All locks block.",
                smt_allocators(), base="thread, block", inverse=True, scale=1e-6, unit="of StaticHeap's throughput"),
        Exhibit("smt-2", SMT, "figure 2, section 5.2; table 4, section 5.3", "How a thread waits for a lock", "Throughput relative to "
                "StaticHeap with locks that block (by the text 1.26 times the 130.9 of processes). Spinning alone is far below all "
                "others; both is spinning for a while and then blocking.", smt_locks(), base="thread, block", inverse=True, scale=1e-6,
                unit="of blocking StaticHeap's"),
        Exhibit("smt-offsets", SMT, "table 4, section 5.3, and section 5.4", "Stacks that begin elsewhere", "Throughput with an offset of each "
                "thread's stack over throughput without. The paper's threads share one first-level cache of 64 KB, two ways."),
        Exhibit("smt-3", SMT, "figure 3, section 5.4", "An event-based server", "Throughput relative to StaticHeap. Objects pass between "
                "threads there, and DynamicHeap is 13 to 34 % above StaticHeap.", smt_events(), base="thread, block", inverse=True, scale=1e-6,
                unit="of StaticHeap's throughput"),
        Exhibit("smt-4", SMT, "figure 4, section 5.5", "The number of heaps", "DynamicHeap with 8 heaps in the place of 4 doubles the "
                "throughput of four contexts, and more heaps give little. The library has two heaps for each CPU, and no option for "
                "another number, so this figure has no counterpart here."),
        Exhibit("smt-5", SMT, "figure 5, section 5.5", "How often a thread gets another heap", "Throughput of DynamicHeap with another heap "
                "after each N allocations, relative to N = 50. In the paper it is level from 50 to 6400, and less on both sides.",
                lines=("N",)),
        Exhibit("kats-1", A2, "section 4.1", "Larson: throughput", "By the text 3.00 million operations a second more with each core, "
                "libc's malloc 4.29.", kats_larson(), base="glibc", inverse=True, unit="of libc's throughput"),
        Exhibit("kats-2", A2, "section 4.1", "Larson: memory", "A blowup of about 5.1, since the least object takes 64 bytes; here A/U as in "
                "Hoard's table 4.", kats_memory(), figure=None, kind="memory", relative=False, unit="A / U"),
        Exhibit("kats-3", A2, "sections 4.1 to 4.3", "cache-scratch, cache-thrash, threadtest", "By the text slightly slower than libc's "
                "malloc in each, and as scalable. Their curves are those of the figures 3 and 4 of the Hoard paper above: thrash is "
                "active-false, scratch is passive-false."),
    ]


NOT_RUN = [("BEMengine", BEM + "."), ("espresso, LRUsim, p2c, cfrac, lindsay, roboop", INPUTS[0].upper() + INPUTS[1:] + "."),
           (FOURTEEN[0].upper() + FOURTEEN[1:], "This one has fewer. Threads are as many as the paper's processors where memory is looked at; what "
            "only depends on which processor allocates is counted by one thread that acts as many (tests/model)."),
           ("The simulated SMT processor, its hardware locks, cache misses by context", "It was simulated. Two hardware threads of "
            "one core, where this machine has them, are the nearest."),
           ("Windows XP's allocator and heaps, Solaris', MTmalloc, Vmalloc, Lea's 2.7.0", "They do not run here, or are not Debian's; their numbers are "
            "the papers'.")]
