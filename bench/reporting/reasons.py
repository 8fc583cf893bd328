# SPDX-License-Identifier: Apache-2.0
"""Why ours is not first, as far as that is known: by suite, case and figure, the first that fits."""
import pathlib
import re


# Instructions of calls, as bench/check.sh holds them to.
EXPECTED = pathlib.Path(__file__).parent.parent / "steps.expected"
STEPS = {call: count for count, call in re.findall(r"^(\d+) (.+)$", EXPECTED.read_text(encoding="utf-8"), re.MULTILINE)}
CHECKS = (f"each free looks at the block and ends the program if it was freed before; a malloc has {STEPS['malloc 64']} instructions "
          f"and a free {STEPS['free 64']}, mimalloc's 16 and 26")
HEAP = ("a free in a reap finds the object by the chunk's bitmaps, since objects have no header: reapFree takes "
        f"{STEPS['reapFree, in the middle']} instructions and reapMalloc of a free block {STEPS['reapMalloc 64, a free block']}, and five "
        "loads wait for one another")
PAGE = ("each reap is a chunk of 8 KiB of its own, with its bitmap: of thousands of small regions each touches its own pages, "
        "where lists of malloc's objects share them")
SUPERBLOCKS = ("each size class has superblocks of 64 KiB on each CPU's heap: for programs of a few MB the touched parts of "
               "these are what is more")
WAITS = ("threads that the scheduler moves find their objects on another CPU's heap: their frees travel in batches. Threads beside "
         "others lose their CPU inside of calls, everybody's do")

KNOWN = [
    (r"threads|scaling", r"threadtest.*", "time", CHECKS),
    (r"threads|scaling", r"larson.*", "time", "two thirds is free's look at a block that has left the cache, which finds a second "
     "free; jemalloc does not touch a block that it frees. A fifth to a half of the frees are remote, as threads move between CPUs"),
    (r"threads|scaling", r"shbench.*", "time", CHECKS),
    (r"threads", r"bleeding.*", "time", "a fifth to a quarter is free's look at a block that another CPU wrote; 13 % of the mallocs "
     "leave the fast path, because blocks come back from elsewhere"),
    (r"threads", r"storm.*", "time", "nine tenths is the kernel's, for starts and ends of threads"),
    (r"threads", r"storm.*", "memory", "52 classes on each of two heaps, each carved for the most that one class ever had at once"),
    (r"threads|scaling", r"shbench.*", "memory", "0.7 MB live in 30 classes on two heaps, a superblock of 64 KiB each, of which only "
     "carved pages are touched"),
    (r"threads|scaling|fragmentation|fourteen", r"threadtest.*", "memory", "objects of 8 bytes take 16, since hoard.h promises that alignment"),
    (r"threads|scaling|fragmentation|fourteen", r".*", "memory", SUPERBLOCKS),
    (r"pools", r"three.*", "time", f"a reap with one object costs {STEPS['reapCreate, reapMalloc 64, reapDestroy']} instructions, and a page; "
     "malloc's three objects cost three calls and no page of their own"),
    (r"pools", r"(request|nested|httpd|three|clear|fill|trees) out", "time", PAGE),
    (r"pools", r"churn.*|perl.*|phases.*|vectors.*|big.*", "time", HEAP),
    (r"pools", r"passed.*", "time", "a shared reap's free enters and leaves the part of its CPU, and puts objects of others on their "
     "lists; mimalloc's free of another thread's object is one atomic instruction"),
    (r"pools", r"shared 1.*", "time", "each call on a shared reap checks the handle, and enters and leaves a part: reapMalloc takes "
     f"{STEPS['reapMalloc 64, shared']} instructions there, and {STEPS['reapMalloc 64']} in an ordinary reap"),
    (r"pools", r"messages.*", "time", "what another thread frees goes to the reap's remote list, whose blocks the owner then reads "
     "from the other CPU's cache"),
    (r"requests", r"served .* [1-9].*", "time", "the fourth free that no object has taken makes a heap of a reap, whose objects are calls then"),
    (r"requests", r"waited.*", "memory", "a connection's reap has a chunk of 1 KiB, and talloc and malloc put several on one page"),
    (r"memory", r"idle.*", "memory", "an idle reap touches one page, that of its first chunk; talloc and malloc put several regions' "
     "objects on one page"),
    (r"small", r".*", "memory", "220 KiB are pages of the library's file, which processes share; its variables and descriptors are 36 "
     "KiB, and each size class in use touches a page of its own"),
    (r"busy", r".*", "time", WAITS),
    (r"programs", r"bc", "memory", "51 size classes are in use at its end, 42 of them empty, and each class keeps a page at least"),
    (r"programs", r"sqlite3", "memory", "its objects take 5 % more in reap's size classes than in glibc's"),
    (r"mallocs", r".*", "time", CHECKS),
]
UNKNOWN = "The reason is not known."


def reason(suite, case, kind):
    """Kind is time or memory."""
    for suites, cases, kinds, why in KNOWN:
        if kinds == kind and re.fullmatch(suites, suite) and re.fullmatch(cases, case):
            return why[0].upper() + why[1:] + "."
    return UNKNOWN
