#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Seeded faults: does each of them turn a test red?

usage: mutants.py [--jobs N] [--only REGEX] [--list] [--fresh] --source DIR [--build DIR] [--work DIR] [--results FILE] LIST...

    LIST      files of faults, as tests/mutants/*.txt are (below)
    --source  the sources, as they are distributed
    --build   a build tree that is configured as the copies are to be
    --work    a directory that is kept, so that the next run compiles less
    --only    those in whose titles or files the expression is found
    --list    says which there are, and whether they still apply; nothing is built
    --results has a line for each fault that was tried: the next run goes on where this one stopped
    --fresh   tries again what is known, of those that --only takes

Each worker has a copy of the sources and builds it once. Then for one fault after the other: run its tests without it,
if that was not done for another, apply it, compile
what has changed, run the tests that are named until one is red, restore. What those let pass is shown to further
tests (FALLBACK), and survives if these do, too. A summary at the end; the exit status is 0 if all faults apply
and were seen. `make mutants` calls this.

A result holds as long as its key: a hash of the fault's lines, of the files that it changes, of its tests' sources, of
those of the test that saw it, and of configure's options. What else of lib/ changes leaves it, so that a commit does not
cost hours; a release takes --fresh.

A fault is

    # Title: what is wrong, in one line
    at: lib/heap/heap_reclaim.c pull_out; tests: check_protocol check_heap; states: lib/heap/heap.h
    - the old lines
    + the new ones, if any

`states` names the header, or the page, with the invariant or the promise that the fault breaks; without it, it is the
header of the file that `at` names first. Without `tests` it is the first test that the table of tests/README.md names
for that module. `at` names a file, and a function, macro or variable in it. The old lines stand there exactly once, but white space does not count: so a fault
still applies when a line is broken anew. What is not defined in the file is looked for in all of that top folder.
Without a name the old lines may stand anywhere in the file. What stands between semicolons may have lines of its own. A fault may have several edits: further "-" lines after
"+" lines, or after another `at:` line. Tests have the names that they have in the folders of tests/, scripts with .sh.
Lines that begin with "##" are remarks.

Who finds a bug that no test saw adds it here as well, with the test that sees it now.
"""
import argparse
import collections
import fcntl
import filecmp
import hashlib
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time

FALLBACK = """check_protocol check_sections check_superblock check_bin check_words check_lines check_levels
    check_outbox check_heap check_hoard check_fork check_ended check_counts check_arena check_large check_chunk
    check_reap check_reap_free check_reap_life check_reap_limit check_reap_mark check_reap_move fuzz.sh
    check_reap_shared check_reap_threads check_lent""".split()
FIRST_SECONDS, LEAST_SECONDS, TIMES = 300, 60, 5  # a fault may make a test hang: it has five times its own time
BUILD_SECONDS = 900
seconds = {}  # that a test takes without a fault
broken = set()  # tests that are red without one
measuring = collections.defaultdict(threading.Lock)  # by test: one worker runs it without a fault


# A string, a character or a comment, in which brackets and semicolons mean nothing; or one of those that do.
PIECE = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|//[^\n]*|/\*.*?\*/|[][(){};]', re.S)
SUFFIXES = (".c", ".h", ".cc", ".hpp")


class Fault:
    def __init__(self, title, where):
        self.title, self.where, self.states, self.tests, self.edits = title, where, None, [], []

    def missing(self, source):
        """What the fault names and the sources do not have, or None."""
        if not os.path.exists(os.path.join(source, self.states)):
            return f"there is no {self.states}"
        return next((f"there is no test {test}" for test in self.tests if not path_of(source, test)), None)


def first_tests(readme):
    """For each module, what the table of tests/README.md names first."""
    with open(readme, encoding="utf-8") as lines:
        return {row[1]: [row[2]] for row in (re.match(r"\| `([^`]+/[^`]+)` \| `([^`]+)`", line) for line in lines) if row}


def read_faults(path):
    """The faults of a list; ends the program at what is not one."""
    faults, at, before, table = [], None, None, first_tests(os.path.join(os.path.dirname(path), "../README.md"))
    words = ((number, word) for number, line in enumerate(open(path, encoding="utf-8"), 1)
             for word in (line.rstrip("\n").split("; ") if line.startswith(("at: ", "tests: ", "states: ")) else [line.rstrip("\n")]))
    for number, line in words:
        where = f"{path}:{number}"
        if line.startswith("##") or not line.strip():
            continue
        if line.startswith("# "):
            faults.append(Fault(line[2:], where))
            at = None
        elif line.startswith("states: ") and faults:
            faults[-1].states = line[8:].strip()
        elif line.startswith("tests: ") and faults:
            faults[-1].tests += line[7:].split()
        elif line.startswith("at: ") and faults:
            at = (line[4:].split() + [None])[:2]
        elif line[0] == "-" and at:
            if before != "-":
                faults[-1].edits.append((*at, [], []))
            faults[-1].edits[-1][2].append(line[2:])
        elif line[0] == "+" and before in ("-", "+"):
            faults[-1].edits[-1][3].append(line[2:])
        else:
            raise SystemExit(f"{where}: not a line of a fault: {line}")
        before = line[0]
    for fault in faults:
        module = os.path.splitext(fault.edits[0][0])[0] if fault.edits else ""
        fault.states = fault.states or module + ".h"
        fault.tests = fault.tests or table.get(module.removeprefix("lib/"), [])
        if not fault.edits or not fault.tests:
            raise SystemExit(f"{fault.where}: a fault needs tests and an edit")
    return faults


def definitions(text, name):
    """Where a function, macro or variable is defined: pairs of begin and end."""
    for match in re.finditer(rf"^#define {name}\b(?:\\\n|[^\n])*", text, re.M):
        yield match.span()
    for match in re.finditer(rf"^[A-Za-z_][^\n;={{]*?\b{name}\b(?=\s*[(\[={{])", text, re.M):
        depth, braces = 0, False
        for piece in PIECE.finditer(text, match.end()):
            depth += (piece[0] in ("(", "[", "{")) - (piece[0] in (")", "]", "}"))
            braces |= piece[0] == "{"
            if depth == 0 and piece[0] in (";", "}"):
                if braces or "=" in text[match.end():piece.start()]:
                    yield match.start(), piece.end()
                break


def pattern_of(lines):
    """Matches these lines, however white space divides them."""
    tokens = re.findall(r"\w+|[^\w\s]", "\n".join(lines))
    text = re.escape(tokens[0])
    for one, next_one in zip(tokens, tokens[1:]):
        both_words = re.match(r"\w", one) and re.match(r"\w", next_one)
        text += (r"\s+" if both_words else r"\s*") + re.escape(next_one)
    return re.compile(rf"(?<!\w){text}" if re.match(r"\w", tokens[0]) else text)


class Sources:
    """Texts of files, which are read once."""

    def __init__(self, source):
        self.source, self.texts = source, {}

    def text(self, file):
        if file not in self.texts:
            path = os.path.join(self.source, file)
            self.texts[file] = open(path, encoding="utf-8").read() if os.path.exists(path) else None
        return self.texts[file]

    def places(self, file, name):
        """The definitions of a name: (file, begin, end). All of a file, where no name is given."""
        text = self.text(file)
        if name is None:
            return [(file, 0, len(text))] if text is not None else []
        found = [(file, *span) for span in definitions(text or "", name)]
        if found:
            return found
        for folder, _, files in os.walk(os.path.join(self.source, file.split("/")[0])):
            for one in sorted(files):
                if one.endswith(SUFFIXES):
                    other = os.path.relpath(os.path.join(folder, one), self.source)
                    if name in self.text(other):
                        found += [(other, *span) for span in definitions(self.text(other), name)]
        return found


def mutate(source, fault, sources=None):
    """The files' new contents, or (None, why it does not apply)."""
    sources, changed = sources or Sources(source), {}
    for file, name, old, new in fault.edits:
        places = sources.places(file, name)
        if not places:
            return None, f"there is no {name or file}" + (f" in {file}, or elsewhere" if name else "")
        hits = set()
        for where, begin, end in places:
            text = changed.get(where, sources.text(where))
            if where in changed:  # an earlier edit may have moved it
                spans = [(0, len(text))] if name is None else list(definitions(text, name))
            else:
                spans = [(begin, end)]
            pattern = pattern_of(old)
            hits |= {(where, m.start(), m.end()) for b, e in spans for m in pattern.finditer(text, b, e)}
        if len(hits) != 1:
            return None, f"its text is {len(hits)} times in {name or file}"
        where, begin, end = hits.pop()
        text = changed.get(where, sources.text(where))
        changed[where] = text[:begin] + "\n".join(new) + text[end:]
    return changed, None


def path_of(source, test):
    """The test's name for make: a test is in one folder of tests/. None: there is none."""
    name = re.sub(r"[.]sh$", "", test)
    names = [test] if test != name else [name + ".c", name + ".cc"]
    for folder, _, files in os.walk(os.path.join(source, "tests")):
        if any(one in files for one in names):
            return os.path.join(os.path.relpath(folder, source), name)
    return None


def sources_of(source, test):
    """The test's own files, and those of tests/ that a script names; of a program without a file of its name, its folder's."""
    name, found = path_of(source, test), set()
    files = [name + end for end in (".sh", ".c", ".cc") if os.path.exists(os.path.join(source, name + end))] if name else []
    for file in files:
        text = open(os.path.join(source, file), encoding="utf-8").read() if file.endswith(".sh") else ""
        for word in re.findall(r"tests/[\w./-]*\w", text):
            own = [one for one in (word, word + ".c", word + ".cc") if os.path.isfile(os.path.join(source, one))]
            folder = os.path.dirname(word)
            if not own and os.path.isdir(os.path.join(source, folder)):
                own = [os.path.join(folder, one) for one in os.listdir(os.path.join(source, folder)) if one.endswith(SUFFIXES)]
            found.update(own)
    return sorted(found.union(files))


class Results:
    """What came of faults, kept in a file: a line for each, KEY RESULT TITLE WORD, of which the last one counts."""

    def __init__(self, args, sources):
        self.path, self.sources, self.known = args.results, sources, {}
        status = os.path.join(args.build, "config.status")
        self.options = subprocess.run([status, "--config"], capture_output=True, text=True, check=True).stdout
        if os.path.exists(self.path):
            for line in open(self.path, encoding="utf-8"):
                fields = line.rstrip("\n").split("\t")
                if line.endswith("\n") and len(fields) == 4:  # an earlier run may have met a full disk
                    self.known[fields[2]] = (fields[0], fields[1], fields[3])

    def key(self, fault, word):
        """Of the fault's result, which the test that a word names has seen."""
        also = re.match(r"by ([\w.-]+)", word)
        tests = sorted(set(fault.tests + ([also[1]] if also else [])))
        files = [edit[0] for edit in fault.edits] + [file for test in tests for file in sources_of(self.sources.source, test)]
        parts = [self.options, repr(fault.edits), repr(tests), *(self.sources.text(file) or "" for file in files)]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:20]

    def of(self, fault):
        """(result, word), or None: it is not known, or was another one's."""
        key, what, word = self.known.get(fault.title, (None, None, None))
        return (what, word) if key and key == self.key(fault, word) else None

    def add(self, fault, what, word):
        """One write: a run that is ended leaves whole lines, and so do two at once."""
        line = "\t".join((self.key(fault, word), what, fault.title, word.replace("\t", " "))) + "\n"
        fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        size = os.fstat(fd).st_size
        os.write(fd, (b"\n" if size and os.pread(fd, 1, size - 1) != b"\n" else b"") + line.encode())
        os.close(fd)


def copy_sources(source, target):
    """Makes target what source is, and touches only what differs, so that make does the least."""
    os.makedirs(target, exist_ok=True)
    for name in set(os.listdir(target)) - set(os.listdir(source)):
        path = os.path.join(target, name)
        shutil.rmtree(path) if os.path.isdir(path) and not os.path.islink(path) else os.remove(path)
    for name in os.listdir(source):
        a, b = os.path.join(source, name), os.path.join(target, name)
        if os.path.isdir(a) and not os.path.islink(a):
            copy_sources(a, b)
        elif not os.path.exists(b):
            shutil.copy2(a, b)
        elif not filecmp.cmp(a, b, shallow=False):
            shutil.copy2(a, b)
            if re.search(r"\.(c|h|cc|hpp)$", b):
                os.utime(b)  # its object may be younger than the original, and of a fault


class Worker:
    """A copy of the tree, and faults in it."""

    def __init__(self, args, number):
        self.dir = os.path.join(args.work, str(number))
        self.source, self.build = os.path.join(self.dir, "source"), os.path.join(self.dir, "build")
        self.process = None
        os.makedirs(self.build, exist_ok=True)
        self.end_others()
        copy_sources(args.source, self.source)
        self.log = open(os.path.join(self.dir, "log"), "w", encoding="utf-8")
        self.configure(args.build)

    def end_others(self):
        """What a run that was killed has left running in the copy would change what this one sees."""
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                if (os.readlink(f"/proc/{pid}/cwd") + "/").startswith(self.dir + "/"):
                    os.kill(int(pid), signal.SIGKILL)
            except OSError:
                continue  # it has ended, or is another user's

    def configure(self, like):
        """As the build tree was, all compilers and options."""
        if os.path.exists(os.path.join(self.build, "config.status")):
            return
        asked = subprocess.run([os.path.join(like, "config.status"), "--config"], capture_output=True, text=True,
                               check=True).stdout
        self.call(["../source/configure", *shlex.split(asked)], BUILD_SECONDS)

    def call(self, command, seconds):
        self.log.write(f"$ {shlex.join(command)}\n")
        self.log.flush()
        process = self.process = subprocess.Popen(command, cwd=self.build, stdin=subprocess.DEVNULL, stdout=self.log,
                                                  stderr=subprocess.STDOUT, start_new_session=True)
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.wait()
            return -1

    def run(self, test):
        """Is it red? None if it does not build."""
        name = path_of(self.source, test) or f"tests/{test}"
        result = os.path.join(self.build, name + ".trs")
        for old in (os.path.join(self.build, name + ".log"), result):
            if os.path.exists(old):
                os.remove(old)
        self.call(["make", "-s", name], BUILD_SECONDS)  # if it is a program
        limit = max(LEAST_SECONDS, int(TIMES * seconds[test])) if test in seconds else FIRST_SECONDS
        start = time.monotonic()
        # Not check-TESTS, which compiles all programs.
        self.call(["make", "-s", name + ".log", f"TEST_SECONDS={limit}"], BUILD_SECONDS)
        self.took = time.monotonic() - start
        if not os.path.exists(result):
            return None
        return re.search(r"^:test-result: (FAIL|ERROR)", open(result, encoding="utf-8").read(), re.M) is not None

    def was_built(self, test):
        name = path_of(self.source, test)
        return name is not None and os.path.exists(os.path.join(self.build, name + ".trs"))

    def measure(self, tests):
        """Runs those without any fault of which it is not known yet what they do then."""
        for test in tests:
            with measuring[test]:
                if test in seconds:
                    continue
                if self.run(test) is not False and self.run(test) is not False:  # not by chance, or by other work here
                    print(f"without any fault {test} does not pass, and is not asked: see {self.log.name}", flush=True)
                    broken.add(test)
                elif self.took > LEAST_SECONDS / TIMES:
                    self.run(test)  # again, since all that it needs was built before the first time
                seconds[test] = self.took

    def first_red(self, tests):
        """The first that is red, or that does not build; "" if all are green."""
        for test in tests:
            if test not in broken and self.run(test) is not False:
                return test
        return ""

    def try_fault(self, fault):
        """What came of it, and a word."""
        texts, why = mutate(self.source, fault)
        if texts is None:
            return "does not apply", why
        originals = {file: open(os.path.join(self.source, file), encoding="utf-8").read() for file in texts}
        others = [test for test in FALLBACK if test not in fault.tests and path_of(self.source, test)]
        try:
            for tests in (fault.tests, others):
                self.measure([test for test in tests if path_of(self.source, test)])
                self.write(texts)
                red = self.first_red(tests)
                if red and not self.was_built(red):
                    return "does not apply", f"it does not compile, or there is no {red}: {self.log.name}"
                if red and tests is others:
                    return "seen", f"by {red}, and not by {' '.join(fault.tests)}"
                if red:
                    return "seen", "by " + red + (", which did not end" if self.took >= LEAST_SECONDS else "")
                self.write(originals)
            return "survived", f"{fault.where}"
        finally:
            self.write(originals)

    def write(self, texts):
        for file, text in texts.items():
            with open(os.path.join(self.source, file), "w", encoding="utf-8") as out:
                out.write(text)


def report(faults, counts, known):
    left = len(faults) - sum(counts.values())
    print(f"{len(faults)} faults: {counts['seen']} seen, {counts['survived']} unseen, {counts['does not apply']} do not apply, "
          f"{left} left; {known} were known", flush=True)


def stop(workers, *_):
    for worker in workers:
        if worker.process and worker.process.poll() is None:
            os.killpg(worker.process.pid, signal.SIGKILL)
    os._exit(130)


def main():
    parser = argparse.ArgumentParser(description="Seeded faults: does each turn a test red?")
    parser.add_argument("lists", nargs="+")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", default="")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--fresh", action="store_true")
    parser.add_argument("--source", required=True)
    parser.add_argument("--build", default=".")
    parser.add_argument("--work", default="mutants-work")
    parser.add_argument("--results", default="mutants-results.txt")
    args = parser.parse_args()
    args.source, args.build, args.work = map(os.path.abspath, (args.source, args.build, args.work))
    os.environ["CK_TIMEOUT_MULTIPLIER"] = "1"
    os.environ.setdefault("REAP_TEST_SHORT", "1")  # as in make check
    faults = [f for path in args.lists for f in read_faults(path)
              if re.search(args.only, f.title + " " + " ".join(edit[0] for edit in f.edits))]
    counts, known = {"applies": 0, "seen": 0, "survived": 0, "does not apply": 0}, 0
    start, lock, left, sources, workers = time.monotonic(), threading.Lock(), [], Sources(args.source), []

    def note(fault, what, word):
        counts[what] += 1
        done = sum(counts.values())
        print(f"{done:3}/{len(faults)} {time.monotonic() - start:5.0f} s  {what:9} {fault.title}: {word}", flush=True)

    if args.list:
        titles = collections.Counter(fault.title for fault in faults)
        for fault in faults:
            texts, why = mutate(args.source, fault, sources)
            why = why or fault.missing(args.source) or (titles[fault.title] > 1 and "another one has its title")
            note(fault, "does not apply" if why else "applies", why or fault.where)
        return 1 if counts["does not apply"] else 0

    os.makedirs(args.work, exist_ok=True)
    alone = open(os.path.join(args.work, "lock"), "w", encoding="utf-8")
    try:
        fcntl.flock(alone, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise SystemExit(f"another run is at work in {args.work}")
    results = Results(args, sources)
    for fault in faults:
        before = None if args.fresh else results.of(fault)
        known += before is not None
        if before is None:
            left.append(fault)
        elif before[0] == "seen":
            counts["seen"] += 1
        else:
            note(fault, *before)

    def work(number):
        worker = Worker(args, number)
        workers.append(worker)
        while True:
            with lock:
                if not left:
                    return
                fault = left.pop(0)
            what, word = worker.try_fault(fault)
            silent = [test for test in fault.tests if test in broken]
            word += f", and {' '.join(silent)} could not be asked" if silent and what == "survived" else ""
            with lock:
                if not silent or what == "seen":
                    results.add(fault, what, word)
                note(fault, what, word)

    def interrupted(*_):
        report(faults, counts, known)
        stop(workers)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:  # of nohup
            signal.signal(number, interrupted)
    print(f"{len(faults)} faults, {known} known from {args.results}, {args.jobs} at a time", flush=True)
    threads = [threading.Thread(target=work, args=(number,)) for number in range(min(args.jobs, len(left)))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    report(faults, counts, known)
    return 0 if counts["seen"] == len(faults) and not broken else 1


if __name__ == "__main__":
    sys.exit(main())
