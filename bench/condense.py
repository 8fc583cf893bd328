#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""condense.py NAME HOW <LOG: a trace for traces.h, of what record.c wrote down. It prints a C source.

HOW is `whole`, or `connections`: of a log of httpd's pools what lies between the first connection's end and the
last's, in the pool of connections and below. A trace is of one root, and in words:

    N      N bytes, in the current pool; the object's number is that freed last, or the next one
    =I:N   object I has N bytes now
    -I     object I is freed
    +P     pool P begins below the current one, and is current
    @P     pool P is current
    /P     pool P is cleared
    !P     pool P ends; before its parent does, and before that is cleared

The root is pool 0. Objects of less than 8 bytes have 8. What has no number is of before the trace, and left out."""
import sys

LEAST, COLUMNS = 8, 106


class Numbers:
    """The number freed last is given again, first; else the next one."""

    def __init__(self, first):
        self.next, self.free, self.of = first, [], {}

    def give(self, name):
        if self.free:
            number = self.free.pop()
        else:
            number, self.next = self.next, self.next + 1
        self.of[name] = number
        return number

    def take(self, name):
        number = self.of.pop(name)
        self.free.append(number)
        return number


def of_malloc(events):
    objects = Numbers(0)
    for what, *names in events:
        size = max(int(names[-1]), LEAST) if what != "f" else 0
        if what == "m" or what == "r" and names[0] not in objects.of:
            objects.give(names[-2])
            yield f"{size}"
        elif what == "r":
            number = objects.of.pop(names[0])
            objects.of[names[1]] = number
            yield f"={number}:{size}"
        elif names[0] in objects.of:
            yield f"-{objects.take(names[0])}"


class Pools:
    def __init__(self, root):
        self.numbers, self.children, self.parent, self.current = Numbers(1), {root: []}, {}, root
        self.numbers.of[root] = 0

    def to(self, pool):
        if self.current != pool:
            self.current = pool
            yield f"@{self.numbers.of[pool]}"

    def end_below(self, pool):
        for child in self.children[pool][::-1]:
            yield from self.end(child)

    def end(self, pool):
        yield from self.end_below(pool)
        self.children[self.parent[pool]].remove(pool)
        del self.children[pool]
        if self.current == pool:
            self.current = None
        yield f"!{self.numbers.take(pool)}"

    def begin(self, pool, parent):
        yield from self.to(parent)
        self.children[parent].append(pool)
        self.children[pool], self.parent[pool], self.current = [], parent, pool
        yield f"+{self.numbers.give(pool)}"


def of_pools(events, root):
    pools = Pools(root)
    for what, pool, *more in events:
        if what == "c" and more[0] in pools.children:
            yield from pools.begin(pool, more[0])
        elif pool not in pools.children:
            continue
        elif what == "p":
            yield from pools.to(pool)
            yield f"{max(int(more[0]), LEAST)}"
        elif what == "d":
            yield from pools.end(pool)
        elif what == "x":
            yield from pools.end_below(pool)
            yield f"/{pools.numbers.of[pool]}"


def connections(events):
    """httpd clears the pool of a connection at its end: the last one that is cleared is that pool."""
    root = [name for what, name, *_ in events if what == "x"][-1]
    ends = [i for i, (what, name, *_) in enumerate(events) if what == "x" and name == root and i > 0
            and events[i - 1][0] != "x"]
    with_requests = [i for i, n in zip(ends, ends[1:]) if n - i > 100]
    return events[with_requests[0] + 1:ends[ends.index(with_requests[-1]) + 1] + 1], root


def main():
    name, how = sys.argv[1:]
    events = [line.split() for line in sys.stdin]
    words = list(of_pools(*connections(events)) if how == "connections" else of_malloc(events))
    print("/* SPDX-License-Identifier: Apache-2.0 */")
    print(f"/* {len(words)} events of {name}: written by condense.py, which says what they mean. */")
    print('#include "traces.h"\n')
    print(f"const char trace_{name}[] =")
    line = ""
    for word in words:
        if len(line) + len(word) >= COLUMNS:
            print(f'"{line}"')
            line = ""
        line += word + " "
    print(f'"{line}";')


main()
