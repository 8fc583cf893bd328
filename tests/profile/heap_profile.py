# SPDX-License-Identifier: Apache-2.0
"""Reads what the heap profile says, by the format's own description, and compares it with what a program did.

heap_profile.py PPROF SVG TEXT EXPECTED BYTES: files of `profile pprof`, `profile flames` and `profile`, the program's
line (profiled.c), and the bytes between two samples. Prints what is wrong."""
import collections
import gzip
import math
import re
import sys
import xml.etree.ElementTree


def varint(data, at):
    number = shift = 0
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return number, at


def fields(data):
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        elif key & 7 == 2:
            size, at = varint(data, at)
            value = data[at:at + size]
            assert len(value) == size, "a field goes beyond the end"
            at += size
        else:
            raise AssertionError(f"wire type {key & 7}")
        yield key >> 3, value


def row(data):
    at, numbers = 0, []
    while at < len(data):
        number, at = varint(data, at)
        numbers.append(number)
    return numbers


def read(path):
    """Types of values, the period, and samples: (name of the reap, functions, values)."""
    with gzip.open(path) as file:
        top = collections.defaultdict(list)
        for field, value in fields(file.read()):
            top[field].append(value)
    strings = [text.decode() for text in top[6]]
    assert strings[0] == "", "the first string is not empty"
    types = [tuple(strings[n] for _, n in sorted(fields(kind))) for kind in top[1]]
    functions = {d[1]: strings[d[2]] for d in map(dict, map(fields, top[5]))}
    mappings = {d[1]: d for d in map(dict, map(fields, top[3]))}
    places = {}
    for place in map(dict, map(fields, top[4])):
        if 2 in place:
            mapping = mappings[place[2]]
            assert mapping[2] <= place[3] < mapping[3], "a place is not in its mapping"
        places[place[1]] = functions[dict(fields(place[4]))[1]] if 4 in place else hex(place[3])
    samples = []
    for sample in map(dict, map(fields, top[2])):
        label = dict(fields(sample[3]))
        assert strings[label[1]] == "reap", "a label is not `reap`"
        samples.append((strings[label[2]], [places[n] for n in row(sample[1])], row(sample[2])))
    assert strings[top[14][0]] == "inuse_space" and top[9][0] > 1.7e18 and top[10][0] > 0
    return types, top[12][0], samples


def check(pprof, svg, text, expected, period):
    wrong = []
    types, has, samples = read(pprof)
    if types != [("alloc_objects", "count"), ("alloc_space", "bytes"), ("inuse_objects", "count"),
                 ("inuse_space", "bytes"), ("inuse_usable", "bytes")] or has != period:
        wrong.append(f"types {types}, period {has}")
    name, *numbers = expected.rsplit(None, 5)
    live, live_bytes, objects, byte, largest = map(int, numbers)
    label = "(malloc)" if name == "malloc" else name
    sums = [sum(values[i] for reap, _, values in samples if reap == label) for i in range(5)]

    # A sum of samples varies by the root of what each of them stands for; objects, by their number in a sample.
    for i, what, exact, total in ((1, "bytes", byte, byte), (3, "live bytes", live_bytes, live_bytes)):
        most = 5.5 * math.sqrt(total * (period + largest)) + 0.01 * total
        print(f"{name}: {what} {exact}, by samples {sums[i]} ({abs(sums[i] - exact) / most * 5.5:.1f} of 5.5 deviations)")
        if abs(sums[i] - exact) > most:
            wrong.append(f"{name}: {what} {sums[i]}, not {exact}: more than {most:.0f} away")
    for i, what, exact, total in ((0, "objects", objects, byte), (2, "live objects", live, live_bytes)):
        if exact and not 0.3 < sums[i] / exact < 3:
            wrong.append(f"{name}: {what} {sums[i]}, not {exact}")
    if not any(any("use_" in f or "allocate" in f or f in ("fill", "share") for f in where) for reap, where, _ in samples
               if reap == label):
        wrong.append(f"{name}: no stack has the function that allocates")

    line = re.search(rf"^{name}: (\d+) live objects, (\d+) bytes, (\d+) usable; (\d+) allocated, (\d+) bytes$", text, re.M)
    # The process itself allocates some when it is asked.
    if not line or any(abs(int(line[j]) - sums[i]) > 100 + sums[i] / 50 for i, j in ((0, 4), (1, 5), (2, 1), (3, 2), (4, 3))):
        wrong.append(f"the lines do not agree with {sums}:\n{text}")

    picture = xml.etree.ElementTree.parse(svg).getroot()
    boxes = [(box.find("{*}title").text, box.find("{*}rect").attrib) for box in picture.iter("{http://www.w3.org/2000/svg}g")]
    whole = sum(values[3] for _, _, values in samples)
    if whole and (not boxes or abs(int(re.search(r": (\d+) bytes", boxes[0][0])[1]) - whole) > len(samples) + 8 * period):
        wrong.append(f"the picture has {boxes[:1]}, not {whole} bytes")
    for title, box in boxes:
        if float(box["x"]) < 9.9 or float(box["x"]) + float(box["width"]) > 1190.2:
            wrong.append(f"a box lies outside: {title}")
    if live_bytes > whole / 20 and not any(title.startswith(name + ": ") for title, _ in boxes):
        wrong.append(f"no box of {name}")
    return wrong


if __name__ == "__main__":
    found = check(sys.argv[1], sys.argv[2], open(sys.argv[3]).read(), open(sys.argv[4]).read(), int(sys.argv[5]))
    for line in found:
        print("wrong:", line)
    sys.exit(bool(found))
