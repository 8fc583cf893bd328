#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The order of files within a folder of lib/: a file includes, and calls, only files that stand before it in the list of
lib/README.md. A header and the source of the same name are one file here. And no two files have a static function of one
name, so that a name in the code is one function.

    file_order.py TREE
"""
import collections
import pathlib
import re
import sys

HEAD = re.compile(r"^(?!typedef|return|else)([A-Za-z_][^;{}=#()]*?(?:__attribute__\(\(.*?\)\))?[^;{}=#()]*?\b(\w+)\([^;{}]*?\)[^;{}()]*\{)", re.M)


def code(path):
    """The text without comments and strings."""
    return re.sub(r'"(?:\\.|[^"\\\n])*"', '""', re.sub(r"/\*.*?\*/", " ", path.read_text(), flags=re.S))


lib = pathlib.Path(sys.argv[1]) / "lib"
order = {folder: re.findall(r"\w+", files) for folder, files in
         re.findall(r"^\* `(\w+)/`: ((?:`\w+`[,\s]+)+)", (lib / "README.md").read_text(), re.M)}
sources = sorted(lib.glob("*/*.[ch]"))
text = {path: code(path) for path in sources}
place = {path: (path.parent.name, re.sub(r"_(x86_64|aarch64)$", "", path.stem)) for path in sources}
wrong = [] if order else ["lib/README.md has no order of files"]

static, home = collections.defaultdict(set), {}
for path in sources:
    for head, name in HEAD.findall(text[path]):
        if name == "_Atomic":
            continue
        if path.suffix == ".c" and re.match(r"(\w+ )*static\b", head):
            static[name].add(place[path])
        else:
            home[name] = place[path]
for name, places in static.items():
    places |= {home[name]} if name in home else set()
    if len(places) > 1:
        wrong.append(f"{name} is a function of {', '.join(sorted('/'.join(p) for p in places))}")

edges = 0
for folder, files in order.items():
    there = {name for at, name in place.values() if at == folder}
    wrong += [f"the order of {folder}/ has {name}, the folder has not" for name in files if name not in there]
    wrong += [f"the order of {folder}/ has no {name}" for name in there if name not in files]
    rank = {(folder, name): n for n, name in enumerate(files)}
    for path in sources:
        if place[path] not in rank:
            continue
        used = {(folder, m) for m in re.findall(rf'^# *include "{folder}/(\w+)\.h"', path.read_text(), re.M)}
        body = re.sub(r"^[A-Za-z_][^;{}]*;", "", text[path], flags=re.M)  # no prototypes
        calls = {name: home[name] for name in re.findall(r"(?<!struct )\b\w+\b", body) if name in home}
        for name, to in [(f"{m[1]}.h", (m[0], re.sub(r"_(x86_64|aarch64)$", "", m[1]))) for m in used] + list(calls.items()):
            edges += rank.get(to, -1) >= 0
            if rank.get(to, -1) > rank[place[path]]:
                wrong.append(f"{folder}/{path.name} uses {name} of {to[1]}, which stands behind it")
print(*wrong, f"{edges} uses within {len(order)} folders", sep="\n")
sys.exit(bool(wrong) or not edges)
