#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The fast paths of malloc and free have no lock, no atomic read-modify-write, and not many instructions:
# counted by single steps (bench/steps.c). On the locked path the same count must find atomic ones. The same holds
# for reapMalloc and reapFree (bench/steps_reap.c), but that those of a shared reap have one, with which they enter a part;
# in the life of one atomic ones must be found.
. "${srcdir:-.}/tests/support/script.sh"
set -u
preload=$(realpath "${top_builddir:-.}/.libs/libreap-malloc.so")
steps=${top_builddir:-.}/bench/steps
steps_reap=${top_builddir:-.}/bench/steps_reap
most=64 # instructions of a call, with room for another compiler
most_wide=160 # and of a free of a wide block (above 4368 bytes), which looks for its stub
most_reap=96 # and of a reap's in heap mode

REAP_OPTIONS=stats=1 LD_PRELOAD=$preload /bin/true 2>&1 | grep -q 'path rseq' ||
    { echo "skipped: no restartable sequences here"; exit 77; }

# Prints why the count is not what it must be: ATOMICS is none or some.
judge() {
    awk -v atomics="$1" -v most="$2" -v wide="$most_wide" '
        { lines++; found += $3 + $5 }
        $2 > most || $4 > ($1 > 4368 && wide > most ? wide : most) { print $1 " bytes: " $2 " and " $4 " instructions" }
        END {
            if (lines == 0) print "nothing was counted"
            if ((found > 0) != (atomics == "some")) print found " atomic instructions"
        }'
}

# The same of the reap calls.
judge_reap() {
    awk -v most="$1" -v most_heap="$2" '
        { call = $0; sub(/^[0-9]+ [0-9]+ /, "", call) }
        call ~ /^reap(Malloc|Free)[ ,]/ && call ~ /, shared$/ { shared++; if ($2 > 1) print call ": " $2 " atomic" }
        call ~ /^reapCreate, .*, shared$/ { lives++; if ($2 == 0) print call ": nothing atomic" }
        call ~ /^reapMalloc [0-9]+$/ { bumps++; if ($1 > most) print call ": " $1 " instructions" }
        call ~ /^(reapMalloc 64, a free block|reapFree, in the middle)$/ {
            blocks++
            if ($1 > most_heap) print call ": " $1 " instructions"
        }
        call ~ /^reap(Malloc|Free)[ ,]/ && call !~ /, (shared|limited)$/ && $2 > 0 { print call ": " $2 " atomic" }
        END { if (shared < 8 || lives != 1 || bumps != 4 || blocks != 2) print "not all was counted" }'
}

"$steps" "$preload" >"$tmp/mallocs"
status=$?
"$steps_reap" >"$tmp/reaps"
status_reap=$?
locked=$(REAP_OPTIONS=path=locked "$steps" "$preload" | judge some 100000)
fast=$(judge none $most <"$tmp/mallocs")
reaps=$(judge_reap $most $most_reap <"$tmp/reaps")
cat "$tmp/mallocs" "$tmp/reaps"
[ $status != 77 ] || { echo "skipped: no single steps here"; exit 77; }
[ $status = 0 ] && [ $status_reap = 0 ] && [ -z "$fast$locked$reaps" ] && exit 0
echo "the fast path: ${fast:-as it must be}; the locked path: ${locked:-as it must be}; reaps: ${reaps:-as they must be}"
exit 1
