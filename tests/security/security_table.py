# SPDX-License-Identifier: Apache-2.0
"""Runs each program of misuse under each malloc, and judges what it did.

    security_table.py --build DIR [--with NAME=PATH]... --page FILE     the table of doc/, of all mallocs
    security_table.py --build DIR --update FILE                         the same, of ours: others stay as the page has them
    security_table.py --build DIR --mode harden=1 --held FILE           a mode of ours (or "ours"), beside the page
    security_table.py --build DIR --held FILE                           the page alone: its rows, sums and words
"""
import argparse
import collections
import concurrent.futures
import datetime
import difflib
import os
import pathlib
import platform
import re
import signal
import subprocess
import sys

PEERS = {"jemalloc": ("libjemalloc.so.2", "libjemalloc2"), "mimalloc": ("libmimalloc.so.2", "libmimalloc2.0"),
         "mimalloc-secure": ("libmimalloc-secure.so.2", ""), "tcmalloc": ("libtcmalloc_minimal.so.4", "libtcmalloc-minimal4")}
FOLDERS = ["/usr/lib/" + platform.machine() + "-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/local/lib"]
OUR_MODES = ["default", "harden=1", "harden=2"]
SIZES = ["small", "medium", "large"]
PATIENCE = 60  # seconds, after which a program hangs, and nobody has told
LETTERS = {"told": "T", "stopped": "S", "harmless": "h", "missed": "-"}
WORDS = list(LETTERS)
TOLD = re.compile(r"reap: \w[^(]*\((0x[0-9a-f]+|\(nil\)).*\): .*[a-z]")


class Mode:
    """A malloc, and how it is set: what to preload ("" for glibc's own), and our options; or why it is absent."""

    def __init__(self, name, preload="", options=None, absent=""):
        self.name, self.preload, self.options, self.absent = name, preload, options, absent
        self.ours = options is not None

    def run(self, command):
        """Exit status (negative: a signal), output, and lines on standard error."""
        environment = {k: v for k, v in os.environ.items() if k not in ("REAP_OPTIONS", "LD_PRELOAD", "MALLOC_CONF")}
        environment.update({"LD_PRELOAD": self.preload} if self.preload else {})
        environment.update({"REAP_OPTIONS": self.options} if self.options else {})
        try:
            done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, timeout=PATIENCE, check=False)
        except subprocess.TimeoutExpired:
            return None, "", []
        lines = done.stderr.decode("latin-1").splitlines()
        return done.returncode, done.stdout.decode("latin-1").strip(), [line for line in lines if line.strip()]

    def look(self, program):
        """Sets absent, where this mode does not run a program that does nothing wrong in silence."""
        status, output, lines = self.run([program, "none", "small"])
        if status != 0 or not output.startswith("harmless") or lines:
            self.absent = self.absent or "not in this build: " + (lines[0] if lines else f"status {status}")


def judged(status, output, lines):
    """told, stopped, harmless or missed."""
    if lines: # of the malloc's, for the programs write none; whether it ends the process or refuses the call
        return "told"
    if status is None:
        return "missed" # hangs
    if status < 0:
        return "stopped"
    word = output.split(" ")[0]
    if status != 0 or word not in ("harmless", "missed"):
        raise RuntimeError(f"a program of misuse says nothing: status {status}, '{output}'")
    return word


class Kind:
    def __init__(self, part, program, group, name, what, sized):
        self.part, self.program, self.group, self.name, self.what = part, program, group, name, what
        self.sizes = SIZES if sized else ["small"]
        self.of_reaps = part == "reaps"
        self.results = {}  # by mode's name and size, a word
        self.otherwise = [] # what one of ours tells but in one line with the call and the pointer

    def commit(self, mode, size):
        status, output, lines = mode.run([self.program, self.name, size])
        self.results[mode.name, size] = judged(status, output, lines)
        if mode.ours and lines and not (len(lines) == 1 and TOLD.match(lines[0])):
            self.otherwise.append(f"{self.part} {self.name} {size} ({mode.name}) tells: {' | '.join(lines)}")


def letters_of(kind, mode):
    return "".join(LETTERS[kind.results[mode.name, size]] for size in kind.sizes)


def kinds_of(part, program):
    """What the program lists; a line without a name begins a group."""
    found, group = [], ""
    for line in subprocess.run([program, "list"], stdout=subprocess.PIPE, check=True).stdout.decode().splitlines():
        name, what, sized = line.split("|")
        if name:
            found.append(Kind(part, program, group, name, what, sized == "1"))
        else:
            group = what
    return found


def parts(build, only=None):
    """The programs that are built, by part."""
    programs = {"malloc": "misuses", "new": "misuses_new", "reaps": "misuses_reaps"}
    paths = {part: os.path.join(build, "tests", "security", name) for part, name in programs.items()}
    return {part: path for part, path in paths.items() if os.path.exists(path) and (not only or part in only)}


def ours(build):
    preload = os.environ.get("REAP_PRELOAD") or os.path.join(build, ".libs", "libreap-malloc.so")
    if not os.path.exists(preload):
        sys.exit(f"no {preload}")
    preload = os.path.realpath(preload)
    return [Mode(name, preload, "" if name == "default" else name) for name in OUR_MODES]


def peers(extra):
    """glibc's malloc, and the others, there or absent."""
    found, given = [Mode("glibc")], dict(pair.split("=", 1) for pair in extra)
    for name, (library, package) in PEERS.items():
        if name in given:
            found.append(Mode(name, given[name], absent="" if os.path.exists(given[name]) else f"no {given[name]}"))
            del given[name]
            continue
        path = next((path for path in (os.path.join(f, library) for f in FOLDERS) if os.path.exists(path)), "")
        hint = f"Debian: {package}" if package else "no package of Debian 12; --with " + name + "=PATH"
        found.append(Mode(name, path, absent="" if path else f"no {library} ({hint})"))
    return found + [Mode(name, path, absent="" if os.path.exists(path) else f"no {path}") for name, path in given.items()]


def commit_all(kinds, modes, jobs):
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        waiting = [pool.submit(kind.commit, mode, size) for kind in kinds for mode in modes for size in kind.sizes
                   if not mode.absent and (mode.ours or not kind.of_reaps)]
        for done in waiting:
            done.result()


# --- the page ---------------------------------------------------------------------------------------------------------

INTRODUCTION = """\
# What each malloc does about misuse

`make security-table` made this page on {date}
({machine}). Do not edit it. Each letter is what became of one small program of
`tests/security/`, which makes one mistake in a fresh process and goes on as a program would.

| letter | what became of it |
|---|---|
| `T` | **told**: the malloc wrote a line, at the mistake or later, and ended the process or refused the call |
| `S` | **stopped**: a signal ended the process, without a line |
| `h` | **harmless**: the program went on, and the mistake had no effect, by the rules below |
| `-` | **missed**: the program went on, or hung, and none of the above |

Three letters are a block of 64 bytes, of 8 KiB, of 1 MiB; one letter is a mistake without a size. A line that comes
after the damage counts as told, because the process ends.

The rules of harmless are the same for every malloc. All else counts as missed, also without damage.

* A wrong free or resize: the program then allocates and frees up to 9,000 blocks. No two live blocks share a byte, and no
  bytes of other live blocks change.
* A write outside: all bytes lie in what `malloc_usable_size` gives the block. Free memory, or the malloc's own, does
  not count as part of the block.
* A read outside: the bytes that were read contain no 8 bytes of a neighbour.
* A write after free: the next 20,000 blocks of its size, or 64 MiB of them, did not reuse the memory. With a new owner
  between: the owner's bytes did not change, or no block reused the memory.
* A read after free, or of a fresh block: the first 4 KiB contain no 8 bytes of the old contents. Zeros, or a pattern of
  the malloc's, are harmless.
* An impossible size: NULL, an error number or `bad_alloc`, and the program goes on.
* new and delete that do not match: as for a wrong free.

The table does not measure how hard it is to guess an address. A malloc that misses a mistake after one order of calls may
report it after another.
"""

MODES = """\
`default`, `harden=1` and `harden=2` are modes of this library (`REAP_OPTIONS`); the others are preloaded, with their
own defaults{given}.
Each program ran once under each malloc: addresses that the kernel chooses at random can change a cell of a malloc that
keeps its data in the blocks.
"""


def cell(kind, mode):
    if mode.absent or (kind.of_reaps and not mode.ours):
        return ""
    return "`" + letters_of(kind, mode) + "`"


def row(first, cells):
    return "| " + " | ".join([first] + cells) + " |"


def totals(kinds, modes, title):
    """A line for each word, for the modes that ran."""
    lines = [row(title, [mode.name for mode in modes]), row("---", ["---"] * len(modes)).replace(" ", "")]
    for word in WORDS:
        counts = [sum(kind.results[mode.name, size] == word for kind in kinds for size in kind.sizes) for mode in modes]
        bold = "**" if word == "missed" else ""
        lines.append(row(bold + word + bold, [f"{bold}{n}{bold}" for n in counts]))
    return lines


def today():
    machine = f"{platform.system()} {platform.release()}, {platform.machine()}, {' '.join(platform.libc_ver())}"
    return datetime.date.today().isoformat(), machine


def page(kinds, modes, without, given, when):
    there = [mode for mode in modes if not mode.absent]
    mallocs, reaps = [k for k in kinds if not k.of_reaps], [k for k in kinds if k.of_reaps]
    named = ", from Debian's packages" + "".join(f"; {name} is a build of one's own" for name in given)
    lines = [INTRODUCTION.format(date=when[0], machine=when[1]), MODES.format(given=named)]
    lines += [f"**Missing: {mode.name}**, {mode.absent}.\n" for mode in modes if mode.absent]
    lines += [f"**Missing: the part {part}**, for its program was not built.\n" for part in without]
    if mallocs:
        lines += [f"## malloc, free, new and delete: {sum(len(k.sizes) for k in mallocs)} programs\n"]
        lines += totals(mallocs, there, "") + [""] + rows(mallocs, there)
    if reaps:
        own = [mode for mode in there if mode.ours]
        lines += [f"## Objects and handles of reaps: {sum(len(k.sizes) for k in reaps)} programs\n"]
        lines += ["No other malloc has reaps; an object here is one of `reapMalloc`, freed by `reapFree`.\n"]
        lines += totals(reaps, own, "") + [""] + rows(reaps, own)
    return "\n".join(lines).rstrip() + "\n"


def rows(kinds, modes):
    """A table of rows, with a group's name before its kinds."""
    lines = [row("", [mode.name for mode in modes]), row("---", ["---"] * len(modes)).replace(" ", "")]
    group = None
    for kind in kinds:
        if kind.group != group:
            group = kind.group
            lines.append(row(f"**{group}**", [""] * len(modes)))
        lines.append(row(kind.what, [cell(kind, mode) for mode in modes]))
    return lines + [""]


# --- beside the page --------------------------------------------------------------------------------------------------

def beside(kinds, modes, text):
    """Prints what differs from the page's cells; returns how many do."""
    differ, (_, cells) = 0, cells_of(text.splitlines())
    for kind in kinds:
        for mode in modes:
            wanted = cells.get((kind.of_reaps, kind.group, kind.what), {}).get(mode.name, "nothing")
            if letters_of(kind, mode) != wanted:  # where a block lies at the edge of a page by chance: once more
                for size in kind.sizes:
                    kind.commit(mode, size)
            if letters_of(kind, mode) != wanted:
                print(f"{kind.part} {kind.name} {letters_of(kind, mode)}   the page has {wanted} ({mode.name})")
                differ += 1
    told = [line for kind in kinds for line in kind.otherwise]
    print("\n".join(told), end="\n" if told else "")
    return differ + len(told)


def cells_of(lines):
    """From a page: its mallocs, and by table, group and kind the letters of each."""
    names, cells, group, of_reaps = [], {}, "", False
    for line in lines:
        fields = [field.strip() for field in line.strip("|").split("|")]
        if line.startswith("## "):
            of_reaps = line.startswith("## Objects")
        elif line.startswith("|  |"):
            columns = fields[1:]
            names += [name for name in columns if name not in names]
        elif line.startswith("| **") and not any(fields[1:]):
            group = fields[0].strip("*")
        elif line.startswith("| ") and fields[-1].startswith("`") and names:
            cells[of_reaps, group, fields[0]] = dict(zip(columns, (field.strip("`") for field in fields[1:])))
    return names, cells


def remade(kinds, text):
    """The page anew: rows, totals and words from the programs that there are; cells that were not tried, date and machine
    from the page."""
    lines = text.splitlines()
    names, cells = cells_of(lines)
    words = {word: letter for letter, word in LETTERS.items()}
    modes = [Mode(name, options="") for name in OUR_MODES] + [Mode(name) for name in names if name not in OUR_MODES]
    modes += [Mode(name, absent=why) for name, why in re.findall(r"^\*\*Missing: (\S+)\*\*, (.*)\.$", text, re.M)]
    for kind in kinds:
        for mode in modes:
            found = cells.get((kind.of_reaps, kind.group, kind.what), {})
            for size, letter in zip(kind.sizes, found.get(mode.name, "").ljust(len(kind.sizes), "-")):
                kind.results.setdefault((mode.name, size), words.get(letter, "missed"))
    date, machine = (re.search(rule, text, re.M) for rule in (r"made this page on (\S+)$", r"^\((.*)\)\. Do not edit"))
    given = re.findall(r"; (\S+) is a build of one's own", text)
    return page(kinds, modes, [], given, (date.group(1) if date else "?", machine.group(1) if machine else "?"))


def page_differs(kinds, text):
    """Prints what a page has that it would not have today; returns how many lines."""
    told = difflib.unified_diff(text.splitlines(), remade(kinds, text).splitlines(), "the page", "today", lineterm="", n=0)
    told = [line for line in told if not line.startswith("@@")]
    print("\n".join(told), end="\n" if told else "")
    return len(told)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default=".")
    parser.add_argument("--page")
    parser.add_argument("--held", type=pathlib.Path, help="a page to compare with")
    parser.add_argument("--update", type=pathlib.Path, help="a page whose cells of ours are found anew")
    parser.add_argument("--mode")
    parser.add_argument("--parts")
    parser.add_argument("--only", default="", help="kinds whose name has this expression")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--with", dest="extra", action="append", default=[], metavar="NAME=PATH")
    options = parser.parse_args()
    have = parts(options.build, options.parts and options.parts.split(","))
    without = [part for part in ("malloc", "new", "reaps") if part not in have]
    if "malloc" not in have and not options.parts:
        sys.exit("tests/security/misuses is not built")
    kinds = [kind for part, program in have.items() for kind in kinds_of(part, program)]
    kinds = [kind for kind in kinds if re.search(options.only, kind.name)]
    text = (options.held or options.update).read_text(encoding="utf-8") if options.held or options.update else ""
    if text and without and not options.mode:
        sys.exit(f"the page cannot be compared: the part {without[0]} is not built")
    if options.held and not options.mode:
        sys.exit(page_differs(kinds, text) > 0)
    if options.update:
        options.mode = "ours"
    modes = ours(options.build) + (peers(options.extra) if options.mode != "ours" else [])
    if options.mode and options.mode != "ours":
        modes = [mode for mode in modes if mode.name == options.mode] or sys.exit(f"no mode {options.mode}")
    for mode in modes:
        if not mode.absent:
            mode.look(next(iter(have.values())))
    for mode in modes:
        if options.mode and mode.absent:
            sys.exit(f"{mode.name}: {mode.absent}")
    commit_all(kinds, modes, options.jobs)
    if options.page:
        with open(options.page, "w", encoding="utf-8") as file:
            file.write(page(kinds, modes, without, [pair.split("=")[0] for pair in options.extra], today()))
    counts = collections.Counter((m, word) for kind in kinds for (m, _), word in kind.results.items())
    for mode in modes:
        print(f"{mode.name}: " + (mode.absent or ", ".join(f"{counts[mode.name, word]} {word}" for word in WORDS)))
    for part in without:
        print(f"skipped: no program (Debian: {'g++' if part == 'new' else 'gcc'}): the part {part}")
    if options.update:
        options.update.write_text(remade(kinds, text), encoding="utf-8")
    sys.exit(bool(options.held) and beside(kinds, modes, text) > 0)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    main()
