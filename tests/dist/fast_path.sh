#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The fast paths of malloc and free have no lock, no atomic read-modify-write, and not many instructions:
# counted by single steps (bench/steps.c). On the locked path the same count must find atomic ones.
set -u
preload=$(realpath "${top_builddir:-.}/.libs/libreap-malloc.so")
steps=${top_builddir:-.}/bench/steps
most=64 # instructions of a call, with room for another compiler

REAP_OPTIONS=stats=1 LD_PRELOAD=$preload /bin/true 2>&1 | grep -q 'path rseq' ||
    { echo "skipped: no restartable sequences here"; exit 77; }

# Prints why the count is not what it must be: ATOMICS is none or some.
judge() {
    awk -v atomics="$1" -v most="$2" '
        { lines++; found += $3 + $5 }
        $2 > most || $4 > most { print $1 " bytes: " $2 " and " $4 " instructions" }
        END {
            if (lines == 0) print "nothing was counted"
            if ((found > 0) != (atomics == "some")) print found " atomic instructions"
        }'
}

"$steps" "$preload" >fast_path.$$ 2>fast_path.$$.err
status=$?
locked=$(REAP_OPTIONS=path=locked "$steps" "$preload" | judge some 100000)
fast=$(judge none $most <fast_path.$$)
cat fast_path.$$ fast_path.$$.err
rm -f fast_path.$$ fast_path.$$.err
[ $status != 77 ] || { echo "skipped: no single steps here"; exit 77; }
[ $status = 0 ] && [ -z "$fast$locked" ] && exit 0
echo "the fast path: ${fast:-as it must be}; the locked path: ${locked:-as it must be}"
exit 1
