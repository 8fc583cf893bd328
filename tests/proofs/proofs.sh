#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The models of tests/proofs: spin goes through all interleavings of each and finds no error; and with each of the faults
# that a model names, it finds one.
. "${srcdir:-.}/tests/support/script.sh"
models=$srcdir/tests/proofs
need spin "${CC:-cc}"

# search MODEL [FAULT]: leaves spin's words in $tmp/said. Not all states, or no run at all, ends the test.
search() {
    rm -rf "$tmp/run" && mkdir "$tmp/run"
    (cd "$tmp/run" && spin -a ${2:+"-D$2"} "$models/$1.pml" && ${CC:-cc} -O1 -w -DSAFETY -DNOREDUCE -DCOLLAPSE -o pan pan.c &&
        timeout 300 ./pan -m400000 -w22 -n) >"$tmp/said" 2>&1 || { echo "$1 $2: spin or its program fails"; cat "$tmp/said"; exit 99; }
    if grep -q 'max search depth too small\|out of memory\|Search not completed' "$tmp/said" && [ -z "${2-}" ]; then
        wrong "$1: not all states were seen"
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
        wrong "$model: an error"
    fi
    faults=$(sed -n 's/^ \* fault \([A-Z_]*\):.*/\1/p' "$file")
    [ -n "$faults" ] || { echo "$model names no faults"; exit 99; }
    for fault in $faults; do
        grep -q "^#if.*def $fault\$" "$file" || wrong "$model: no code for $fault"
        search "$model" "$fault"
        if grep -q 'errors: [1-9]' "$tmp/said"; then
            echo "$model: $fault is found: $(sed -n 's/^pan:1: //p' "$tmp/said")"
        else
            wrong "$model: $fault is not found"
        fi
    done
done
exit $bad
