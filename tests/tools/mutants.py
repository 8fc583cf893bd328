#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Seeded faults: does each of them turn a test red?

usage: mutants.py [--jobs N] [--only REGEX] [--list] --source DIR [--build DIR] [--work DIR] LIST...

    LIST      files of faults, as tests/mutants/*.txt are (below)
    --source  the sources, as they are distributed
    --build   a build tree that is configured as the copies are to be
    --work    a directory that is kept, so that the next run compiles less
    --only    those in whose titles or files the expression is found
    --list    says which there are, and whether they still apply; nothing is built

Each worker has a copy of the sources and builds it once. Then for one fault after the other: apply it, compile
what has changed, run the tests that are named until one is red, restore. What those let pass is shown to further
tests (FALLBACK), and survives if these do, too. A summary at the end; the exit status is 0 if all faults apply
and were seen. `make mutants` calls this.

A fault is

    # Title: what is wrong, in one line
    file: lib/heap/heap_reclaim.c
    tests: check_protocol check_heap
    <<<<
    the old lines
    ====
    the new ones
    >>>>

with exact text, which has to be in the file exactly once. Further <<<< blocks, with a `file:` line before them
where that is another one, belong to the same fault. Names of tests are those in the folders of tests/, with .sh for
scripts.
Lines that begin with "##" are remarks.

Who finds a bug that no test saw adds it here as well, with the test that sees it now.
"""
import argparse
import filecmp
import os
import re
import shlex
import shutil
import subprocess
import sys
import threading
import time

FALLBACK = """check_protocol check_sections check_superblock check_bin check_words check_lines check_levels
    check_outbox check_heap check_hoard check_fork check_ended check_counts check_arena check_large check_chunk
    check_reap check_reap_free check_reap_life check_reap_limit check_reap_mark check_reap_move check_reap_model
    check_reap_shared check_reap_threads check_lent""".split()
FIRST_SECONDS, LEAST_SECONDS, TIMES = 300, 60, 5  # a fault may make a test hang: it has five times its own time
BUILD_SECONDS = 900
seconds = {}  # that a test takes without a fault
broken = set()  # tests that are red without one


class Fault:
    def __init__(self, title, where):
        self.title, self.where, self.tests, self.edits = title, where, [], []

    def files(self):
        return sorted({file for file, _, _ in self.edits})


def read_faults(path):
    """The faults of a list; ends the program at what is not one."""
    faults, file, block, part = [], None, None, None
    for number, line in enumerate(open(path, encoding="utf-8"), 1):
        line, where = line.rstrip("\n"), f"{path}:{number}"
        if block is not None:
            if line == "====" and part == 0:
                part = 1
            elif line == ">>>>":
                faults[-1].edits.append((file, *("".join(text) for text in block)))
                block = None
            else:
                block[part].append(line + "\n")
        elif line.startswith("##") or not line.strip():
            continue
        elif line.startswith("# "):
            faults.append(Fault(line[2:], where))
        elif line.startswith("file: ") and faults:
            file = line[6:].strip()
        elif line.startswith("tests: ") and faults:
            faults[-1].tests += line[7:].split()
        elif line == "<<<<" and faults and file:
            block, part = ([], []), 0
        else:
            raise SystemExit(f"{where}: not a line of a fault: {line}")
    for fault in faults:
        if not fault.edits or not fault.tests:
            raise SystemExit(f"{fault.where}: a fault needs tests and an edit")
    return faults


def mutate(source, fault):
    """The files' new contents, or (None, why it does not apply)."""
    texts = {}
    for file, old, new in fault.edits:
        path = os.path.join(source, file)
        if file not in texts:
            if not os.path.exists(path):
                return None, f"{file} is not there"
            texts[file] = open(path, encoding="utf-8").read()
        count = texts[file].count(old)
        if count != 1:
            return None, f"its text is {count} times in {file}"
        texts[file] = texts[file].replace(old, new)
    return texts, None


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
        os.makedirs(self.build, exist_ok=True)
        copy_sources(args.source, self.source)
        self.log = open(os.path.join(self.dir, "log"), "w", encoding="utf-8")
        self.configure(args.build)

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
        process = subprocess.Popen(command, cwd=self.build, stdin=subprocess.DEVNULL, stdout=self.log,
                                   stderr=subprocess.STDOUT, start_new_session=True)
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.wait()
            return -1

    def path_of(self, test):
        """The test's name for make: a test is in one folder of tests/."""
        name = re.sub(r"[.]sh$", "", test)
        sources = [test] if test != name else [name + ".c", name + ".cc"]
        for folder, _, files in os.walk(os.path.join(self.source, "tests")):
            if any(source in files for source in sources):
                return os.path.join(os.path.relpath(folder, self.source), name)
        return f"tests/{name}"

    def run(self, test):
        """Is it red? None if it does not build."""
        name = self.path_of(test)
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
        return os.path.exists(os.path.join(self.build, self.path_of(test) + ".trs"))

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
        try:
            self.write(texts)
            red = self.first_red(fault.tests)
            if red and not self.was_built(red):
                return "does not apply", f"it does not compile, or there is no {red}: {self.log.name}"
            if red:
                return "seen", "by " + red + (", which did not end" if self.took >= LEAST_SECONDS else "")
            red = self.first_red([test for test in FALLBACK if test not in fault.tests])
            if red:
                return "seen", f"by {red}, and not by {' '.join(fault.tests)}"
            return "survived", f"{fault.where}"
        finally:
            self.write(originals)

    def write(self, texts):
        for file, text in texts.items():
            with open(os.path.join(self.source, file), "w", encoding="utf-8") as out:
                out.write(text)


def main():
    parser = argparse.ArgumentParser(description="Seeded faults: does each turn a test red?")
    parser.add_argument("lists", nargs="+")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", default="")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--source", required=True)
    parser.add_argument("--build", default=".")
    parser.add_argument("--work", default="mutants-work")
    args = parser.parse_args()
    args.source, args.build, args.work = map(os.path.abspath, (args.source, args.build, args.work))
    os.environ["CK_TIMEOUT_MULTIPLIER"] = "1"
    os.environ.setdefault("REAP_TEST_SHORT", "1")  # as in make check
    faults = [f for path in args.lists for f in read_faults(path)
              if re.search(args.only, f.title + " " + " ".join(f.files()))]
    counts = {"seen": 0, "survived": 0, "does not apply": 0}
    start, lock, left = time.monotonic(), threading.Lock(), list(faults)

    def note(fault, what, word):
        counts[what] += 1
        done = sum(counts.values())
        print(f"{done:3}/{len(faults)} {time.monotonic() - start:5.0f} s  {what:9} {fault.title}: {word}", flush=True)

    if args.list:
        for fault in faults:
            texts, why = mutate(args.source, fault)
            note(fault, "seen" if texts else "does not apply", why or "applies")
        return 1 if counts["does not apply"] else 0

    tests = sorted({test for fault in faults for test in fault.tests})

    def take(queue):
        with lock:
            return queue.pop(0) if queue else None

    def work(number):
        worker = Worker(args, number)
        while (test := take(tests)) is not None:
            if worker.first_red([test]):
                print(f"without any fault {test} does not pass, and is not asked: see {worker.log.name}", flush=True)
                broken.add(test)
            elif worker.took > LEAST_SECONDS / TIMES:
                worker.first_red([test])  # again, since all that it needs was built before the first time
            seconds[test] = worker.took
        while (fault := take(left)) is not None:
            what, word = worker.try_fault(fault)
            with lock:
                note(fault, what, word)

    print(f"{len(faults)} faults, {args.jobs} at a time; first {len(tests)} tests without any", flush=True)
    threads = [threading.Thread(target=work, args=(number,)) for number in range(args.jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(f"{len(faults)} faults, {counts['seen']} seen, {counts['survived']} survived, "
          f"{counts['does not apply']} do not apply")
    return 0 if counts["seen"] == len(faults) and not broken else 1


if __name__ == "__main__":
    sys.exit(main())
