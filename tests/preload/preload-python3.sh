#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Debian's python3 under libreap-malloc, with its own small-object allocator and without.
. "${srcdir:-.}/tests/support/preload-lib.sh"
need /usr/bin/python3

cat >"$tmp/work.py" <<'PYTHON'
import collections, json, multiprocessing, re, subprocess, sys, threading, zlib

def rows(seed, n):
    for i in range(n):
        seed = (seed * 1103515245 + 12345) % 2**31
        yield {"id": i, "name": "n%d" % seed, "bytes": [seed >> s & 255 for s in range(0, 31, 8)]}

def digest(seed):
    text = json.dumps(list(rows(seed, 3000)), sort_keys=True)
    assert json.loads(text)[-1]["id"] == 2999
    words = collections.Counter(re.findall(r"n\d", text))
    return zlib.crc32(zlib.compress(text.encode())), sorted(words.items())

def threaded():
    answers = [None] * 8
    def run(i): answers[i] = digest(i)
    threads = [threading.Thread(target=run, args=(i,)) for i in range(8)]
    for t in threads: t.start()
    for t in threads: t.join()
    return answers

def main():
    print(threaded())
    with multiprocessing.get_context("fork").Pool(3) as pool:   # forks with the pool's threads running
        print(pool.map(digest, range(12)))
    print(subprocess.run([sys.executable, "-c", "print('x' * 100000)"], capture_output=True).stdout.count(b"x"))
    big = bytearray(1)
    while len(big) < 64 << 20: big *= 2                           # realloc of a large block
    print(len(big), sum(big[:: 1 << 16]))

main()
PYTHON

PYTHONHASHSEED=0
export PYTHONHASHSEED
work() {
    /usr/bin/python3 "$tmp/work.py" && PYTHONMALLOC=malloc /usr/bin/python3 "$tmp/work.py"
}
compare_work
