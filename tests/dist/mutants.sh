#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Each seeded fault of tests/mutants still applies, names a test that is there, and the header or page that it breaks.
# `make mutants` shows that the tests see them.
srcdir=${srcdir:-.}
. "${srcdir:-.}/tests/support/needs.sh"
need python3
lists=$(ls "$srcdir"/tests/mutants/*.txt) || exit 99
# shellcheck disable=SC2086
python3 -B "$srcdir/tests/tools/mutants.py" --list --source "$srcdir" $lists >mutants-list.$$
result=$?
grep -v ' applies ' mutants-list.$$
n=$(grep -c ' applies ' mutants-list.$$)
rm -f mutants-list.$$
[ "$n" -gt 100 ] || { echo "only $n faults apply"; exit 1; }
exit $result
