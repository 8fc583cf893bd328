#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of Check programs that can never fail: assertless.py DIR, the directory tests/.

A test asserts if its text, or that of a function or macro that it names, in its own file or in what tests share,
has one of Check's assertions. Prints those that do not, and how many there are; the exit status is 1 if any is.
"""
import glob
import os
import re
import sys

ASSERTION = re.compile(r"\b(ck_assert\w*|ck_abort\w*)\b")


def parts(path):
    """What a file defines: names, with their text. Tests have a name that none else has."""
    text = re.sub(r"/\*.*?\*/", "", open(path, encoding="utf-8").read(), flags=re.S)
    found = {}
    for name, line, body in re.findall(r"^TEST\((\w+)[^{]*\)\s*\{(?:([^\n]*)\}$|\n(.*?)^\})", text, re.S | re.M):
        found["test " + name] = line + body
    function = r"^[a-z][^;{}#=]*?\b(\w+)\([^;{}]*\)\s*"
    for name, line, body in re.findall(function + r"\{(?:([^\n]*)\}$|\n(.*?)^\})", text, re.S | re.M):
        found[name] = found.get(name, "") + line + body
    for name, body in re.findall(r"^#define (\w+)((?:.*\\\n)*.*)", text, re.M):
        found[name] = body
    return found


def assertless(known):
    """The tests among them that assert nothing."""
    asserting = {name for name, body in known.items() if ASSERTION.search(body)}
    while True:
        more = {name for name, body in known.items()
                if name not in asserting and not asserting.isdisjoint(re.findall(r"\w+", body))}
        if not more:
            return sorted(name[5:] for name in known if name.startswith("test ") and name not in asserting)
        asserting |= more


def main():
    sources = sorted(glob.glob(os.path.join(sys.argv[1], "**", "*.[ch]"), recursive=True))
    programs = [path for path in sources if os.path.basename(path).startswith("check_") and path.endswith(".c")
                and re.search(r"^TEST\(", open(path, encoding="utf-8").read(), re.M)]
    shared = {}
    for path in sources:
        if path not in programs and re.search("/(support|model|fault)/", path):
            shared.update(parts(path))
    tests = bad = 0
    for path in programs:
        own = parts(path)
        tests += sum(name.startswith("test ") for name in own)
        for name in assertless({**shared, **own}):
            print(f"{path}: {name} asserts nothing")
            bad += 1
    print(f"{tests} tests in {len(programs)} programs, {bad} without an assertion")
    return 1 if bad or not tests else 0


if __name__ == "__main__":
    sys.exit(main())
