#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Benchmarks tell in its cell how a peer failed, and lose nothing: a malloc that is not installed, that hangs, crashes,
# exits, gives the same memory twice or is no library at all stands beside figures of the others.
. "${srcdir:-.}/tests/support/bench_lib.sh"
bench_tree launch busy

cat >"$tmp/odd.c" <<'END'
#include <stdlib.h>
#include <unistd.h>
extern void *__libc_malloc(size_t);
extern void __libc_free(void *);
static char twice[16384];
void *malloc(size_t size)
{
    static unsigned long calls;
    switch (++calls > 100 ? ODD : 0) {
        case 1: for (;;) pause();
        case 2: abort();
        case 3: _exit(3);
        case 4: if (size >= 64 && size <= sizeof twice && size % 16 != 0) return twice; /* not libc's */
    }
    return __libc_malloc(size);
}
void free(void *object) { if (object != twice) __libc_free(object); }
END
odd=
for kind in 1 2 3 4; do
    ${CC:-cc} -shared -fPIC -fno-builtin -w -DODD=$kind -o "$tmp/odd$kind.so" "$tmp/odd.c" || exit 99
    odd="$odd --with odd$kind=$tmp/odd$kind.so"
done
echo text >"$tmp/text.so"

# shellcheck disable=SC2086  # words
python3 - "$srcdir/bench" --build "$tmp" --rounds 2 --seconds 0.2 --patience 5 --workloads "mixed quiet 2" \
    $odd --with "text=$tmp/text.so" busy >"$tmp/told" 2>"$tmp/errors" <<'END'
import runpy, sys
bench = sys.argv.pop(1)
sys.path.insert(0, bench)
sys.dont_write_bytecode = True
import contest
contest.PEERS["nobody"] = ("libnobody.so.9", "libnobody9")
runpy.run_path(bench + "/run.py", run_name="__main__")
END
status=$?
cat "$tmp/told" "$tmp/errors"
[ $status = 0 ] || exit 1

said() { grep -qF -- "$1" "$tmp/told" || { echo "not told: $1"; bad=1; }; }
said 'absent: nobody, for there is no libnobody.so.9 (Debian: libnobody9)'
said 'left out: mixed quiet 2 on odd1: did not end within 5 s'
said 'left out: mixed quiet 2 on odd2: killed by SIGABRT'
said 'left out: mixed quiet 2 on odd3: status 3'
said 'left out: mixed quiet 2 on odd4: status 1'
said 'left out: mixed quiet 2 on text: '
[ "$(grep -c '^left out' "$tmp/told")" = 5 ] || { echo "more than the odd ones, or one of them twice"; bad=1; }
# The cells of the first table, whose columns are the contestants: figures, then these words.
grep -qE '^mixed quiet 2 +[0-9.]+ +[0-9.]+ .*absent +hang +crash +status 3 +status 1 +not loaded +[0-9.]+ +[0-9.]+$' \
    "$tmp/told" || { echo "cells do not say how it failed"; bad=1; }
tr -d '\r' <"$tmp/bench/results-busy.csv" >"$tmp/results"
[ "$(grep -cE ',reap,[12],ns,[0-9.e+]+$' "$tmp/results")" = 2 ] || { echo "runs of ours are lost"; bad=1; }
[ "$(grep -c ',0,failed,' "$tmp/results")" -ge 6 ] || { echo "the results do not have the failures"; bad=1; }

python3 -B "$srcdir/bench/run.py" --with "none=$tmp/none.so" mallocs >"$tmp/told" 2>&1 &&
    { echo "a library that is not there is taken"; bad=1; }
said "is not NAME=PATH of a library that is there"
exit $bad
