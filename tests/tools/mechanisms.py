#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints how many lines each mechanism has: mechanisms.py, in the root of the sources.

Each section of doc/design/decisions.md names the mechanism's own files after "Files:", and after "in part" those that
it shares. The exit status is 1 if a section names none, if a file is not there, or if two sections own it.
"""
import pathlib
import re
import sys

FILES = [path.as_posix() for top in ("lib", "tools", "apache_module") for path in sorted(pathlib.Path(top).glob("**/*.*"))]
LIB = {path for path in FILES if re.match(r"lib/.*\.[ch]$", path)}
wrong = []
owners = {}


def paths(names, section):
    """Of the files in a list of names; a name that ends in a slash is a folder's."""
    found = []
    for name in re.findall(r"`([^`]+)`", names):
        those = [path for path in FILES if path.startswith(name) or ("/" + path).endswith("/" + name)]
        found += [path for path in those if path in LIB] or those
        if not those:
            wrong.append(f"{section}: there is no {name}")
    return found


def lines(found):
    return sum(len(pathlib.Path(path).read_text(encoding="utf-8").splitlines()) for path in found)


print("   own  in part")
page = pathlib.Path("doc/design/decisions.md").read_text(encoding="utf-8")
for section, text in re.findall(r"^### (.*)\n((?:(?!^#).*\n)*)", page, re.MULTILINE):
    files = re.search(r"^Files: (.*?)\.$", text, re.MULTILINE | re.DOTALL)
    own, _, shared = (files.group(1) if files else "").partition("in part")
    own, shared = paths(own, section), paths(shared, section)
    wrong += [f"{section}: no files"] if not own + shared else []
    wrong += [f"{section} and {owners[path]} own {path}" for path in own if path in owners]
    owners.update((path, section) for path in own)
    print(f"{lines(own):6} {lines(shared):8}  {section}")
print(f"{lines(LIB - set(owners)):6} of {lines(LIB)} lines of lib/ are in no mechanism's own files")
sys.exit("\n".join(wrong) or 0)
