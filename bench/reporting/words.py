# SPDX-License-Identifier: Apache-2.0
"""What a case is: as the head of its benchmark's source says it, " *     NAME   what it does", by the first word of a label; others as here."""
import functools
import pathlib
import re

BENCH = pathlib.Path(__file__).parent.parent
HEADS = {"threads|scaling|fractions.*|fourteen|fragmentation|mallocs": ["threads.c"], "server.*": ["server.c"], "busy": ["busy.c"],
         "pools|requests|memory": [f"pools_{part}.h" for part in ("regions", "frees", "memory", "request", "trace")]}
OTHERS = {
    "programs|fragmentation.*": {
        "python3": "word statistics in Python, its own pools off", "perl": "word statistics in Perl", "lua": "the same in Lua",
        "php": "the same in PHP, its own pools off", "ruby": "the same in Ruby", "gawk": "the same in awk", "bc": "arithmetic with many digits",
        "g++": "compiles C++ with many templates", "clang++": "compiles the same", "sqlite3": "tables of 60,000 rows in memory",
        "redis": "replays a log of commands", "xmllint": "reads and formats XML", "xsltproc": "transforms XML",
        "jq": "groups JSON of 22,000 records", "git": "a log with all changes", "gs": "draws a page of PostScript"},
    "small": {"hello": "prints a line", "dash": "a shell that has run a loop", "bash": "a shell that has run a loop", "sqlite3": "a table of 1000 rows",
              "perl": "a hash of 100 words", "python3": "has imported json"},
    "custom": {"parser": "a parser of English; its own allocator is a stack", "boxed": "balls in a box; lists of freed objects by class",
               "gcc": "a compiler's parse, on obstacks", "lcc": "a compiler with three regions",
               "httpd": "what Apache did, replayed; its own are APR's pools"}}


@functools.cache
def said_in(name):
    head = (BENCH / name).read_text(encoding="utf-8").split("*/")[1]
    return {found[1]: re.sub(r"\s+\*\s+", " ", found[2]) for found in
            re.finditer(r"^ \*     ([a-z]+)(?: [A-Z]+)*  +(\S.*(?:\n \* {9,}\S.*)*)", head, re.MULTILINE)}


def meaning(suite, label):
    word = label.split()[0]
    heads = [said_in(name) for suites, names in HEADS.items() if re.fullmatch(suites, suite) for name in names]
    heads += [words for suites, words in OTHERS.items() if re.fullmatch(suites, suite)]
    return next((words[word] for words in heads if word in words), "") + "; 16 MB alive, beyond the cache" * (suite == "pools" and label.endswith(" out"))
