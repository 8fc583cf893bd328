#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The models of tests/proofs: spin goes through all interleavings of each and finds no error; and with each of the faults
# that a model names, it finds one.
srcdir=${srcdir:-.}
models=$(cd "$srcdir/tests/proofs" && pwd)
. "${srcdir:-.}/tests/support/needs.sh"
need spin "${CC:-cc}"
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
bad=0

# search MODEL [FAULT]: leaves spin's words in $tmp/said. Not all states, or no run at all, ends the test.
search() {
    rm -rf "$tmp/run" && mkdir "$tmp/run"
    (cd "$tmp/run" && spin -a ${2:+"-D$2"} "$models/$1.pml" && ${CC:-cc} -O1 -w -DSAFETY -DNOREDUCE -DCOLLAPSE -o pan pan.c &&
        timeout 300 ./pan -m400000 -w22 -n) >"$tmp/said" 2>&1 || { echo "$1 $2: spin or its program fails"; cat "$tmp/said"; exit 99; }
    if grep -q 'max search depth too small\|out of memory\|Search not completed' "$tmp/said" && [ -z "${2-}" ]; then
        echo "$1: not all states were seen"
        cat "$tmp/said"
        exit 1
    fi
}

for file in "$models"/*.pml; do
    model=$(basename "$file" .pml)
    search "$model"
    states=$(sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' "$tmp/said")
    if grep -q 'errors: 0$' "$tmp/said"; then
        echo "$model: no error in $states states"
    else
        echo "$model: an error"
        cat "$tmp/said"
        bad=1
    fi
    faults=$(sed -n 's/^ \* fault \([A-Z_]*\):.*/\1/p' "$file")
    [ -n "$faults" ] || { echo "$model names no faults"; exit 99; }
    for fault in $faults; do
        grep -q "^#if.*def $fault\$" "$file" || { echo "$model: no code for $fault"; bad=1; }
        search "$model" "$fault"
        if grep -q 'errors: [1-9]' "$tmp/said"; then
            echo "$model: $fault is found: $(sed -n 's/^pan:1: //p' "$tmp/said")"
        else
            echo "$model: $fault is not found"
            bad=1
        fi
    done
done
exit $bad
