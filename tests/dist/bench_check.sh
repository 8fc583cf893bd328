#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The hot paths have the instructions that were recorded (bench/check.sh), where the compiler and its flags are those of
# the record. Everywhere counts repeat: what is recorded here is found again. A record of one instruction less in each
# call is seen, with a line for each of the short calls, in which it counts.
. "${srcdir:-.}/tests/support/script.sh"
check() { sh "$srcdir/bench/check.sh" "$@"; }

check
recorded=$?
[ $recorded = 0 ] || [ $recorded = 77 ] || exit 1

# Of here, and then with an instruction less.
STEPS_EXPECTED=$tmp/here check record >"$tmp/told"
status=$?
[ $status != 77 ] || exit 77
[ $status = 0 ] || { cat "$tmp/told"; exit 1; }
if [ $recorded = 77 ]; then
    STEPS_EXPECTED=$tmp/here check >"$tmp/told" || { cat "$tmp/told"; echo "counts do not repeat"; exit 1; }
fi
awk '/^[0-9]/ { $1-- } { print }' "$tmp/here" >"$tmp/less"
STEPS_EXPECTED=$tmp/less check >"$tmp/told" && { echo "an instruction more in each call was not seen"; exit 1; }
short=$(awk '/^[0-9]/ && $1 <= 50 { n++ } END { print n }' "$tmp/here")
named=$(grep -cE '^[a-zA-Z].*: [0-9]+ instructions, recorded [0-9]+$' "$tmp/told")
if [ "$short" -lt 4 ] || [ "$named" != "$short" ]; then
    cat "$tmp/told"
    echo "an instruction more was named of $named calls and not of $short"
    exit 1
fi
exit $recorded
