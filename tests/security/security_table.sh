#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Each misuse of tests/security is told, stopped, harmless or missed as expected.txt says. And the judge is judged: a malloc
# that tells less is seen, one that says a line each time is not ours, and a page without a peer says so.
srcdir=${srcdir:-.}
build=$(realpath "${top_builddir:-.}")
. "${srcdir:-.}/tests/support/needs.sh"
need python3
ulimit -c 0
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
bad=0
wrong() { echo "wrong: $*"; bad=1; }
table() { python3 -B "$srcdir/tests/security/security_table.py" --build "$build" "$@"; }

table --mode default --expected "$srcdir/tests/security/expected.txt" || wrong "misuse under the default mode"

# glibc's malloc in the place of ours: it tells less, and each cell that differs has a line.
REAP_PRELOAD=$(${CC:-cc} -print-file-name=libc.so.6) table --parts malloc --only '^twice|^foreign|^write-freed' --mode default \
    --expected "$srcdir/tests/security/expected.txt" >"$tmp/glibc" 2>&1 && wrong "glibc's malloc passes for ours"
[ "$(grep -c '  expected ' "$tmp/glibc")" -ge 3 ] || { wrong "the differences are not told:"; cat "$tmp/glibc"; }
# A line of what is expected that no program has, and a file that is no library.
{ cat "$srcdir/tests/security/expected.txt"; echo "malloc size-nonsense T"; } >"$tmp/expected"
table --parts malloc --only '^size' --mode default --expected "$tmp/expected" >"$tmp/told" 2>&1 &&
    wrong "a program that is gone is not missed"
grep -q '^malloc size-nonsense is expected' "$tmp/told" || wrong "a program that is gone is not named"
echo text >"$tmp/text.so"
REAP_PRELOAD=$tmp/text.so table --parts malloc --mode default >"$tmp/told" 2>&1 && wrong "a file that is no library passes"
[ $bad = 0 ] || exit 1

# A page: all of one peer's cells, and a line for one that is missing.
table --parts new --only '^new-' --with nobody=/nowhere.so --with mimalloc=/nowhere.so --page "$tmp/page.md" >"$tmp/told" || wrong "no page"
for name in nobody mimalloc; do
    grep -q "^\*\*Missing: $name\*\*, no /nowhere.so" "$tmp/page.md" || [ ! -e "$build/tests/security/misuses_new" ] ||
        wrong "the page does not say that $name is missing"
done
grep -q '^| new, free | ' "$tmp/page.md" || [ ! -e "$build/tests/security/misuses_new" ] || wrong "the page has no rows"
exit $bad
