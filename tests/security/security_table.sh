#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Each misuse of tests/security is told, stopped, harmless or missed as doc/security-table.md says, in each mode of ours,
# and told in one line. A malloc that tells less is seen, and a page without a peer says so.
. "${srcdir:-.}/tests/support/script.sh"
need python3
ulimit -c 0
table() { python3 -B "$srcdir/tests/security/security_table.py" --build "$build" "$@"; }

page=$srcdir/doc/security-table.md
table --mode ours --held "$page" || wrong "misuse under one of our modes"

# The page is what would be made today of its cells and of the programs that there are.
[ ! -e "$build/tests/security/misuses_new" ] || table --held "$page" >"$tmp/told" 2>&1 ||
    { wrong "doc/security-table.md is not of today: make security-table"; cat "$tmp/told"; }

# glibc's malloc in the place of ours: it tells less, and each cell that differs has a line.
REAP_PRELOAD=$(${CC:-cc} -print-file-name=libc.so.6) table --parts malloc --only '^twice|^foreign|^write-freed' --mode default \
    --held "$page" >"$tmp/glibc" 2>&1 && wrong "glibc's malloc passes for ours"
[ "$(grep -c '  the page has ' "$tmp/glibc")" -ge 3 ] || { wrong "the differences are not told:"; cat "$tmp/glibc"; }
[ $bad = 0 ] || exit 1

# A page: all of one peer's cells, and a line for one that is missing.
table --parts new --only '^new-' --with nobody=/nowhere.so --with mimalloc=/nowhere.so --page "$tmp/page.md" >"$tmp/told" || wrong "no page"
for name in nobody mimalloc; do
    grep -q "^\*\*Missing: $name\*\*, no /nowhere.so" "$tmp/page.md" || [ ! -e "$build/tests/security/misuses_new" ] ||
        wrong "the page does not say that $name is missing"
done
grep -q '^| new, free | ' "$tmp/page.md" || [ ! -e "$build/tests/security/misuses_new" ] || wrong "the page has no rows"
exit $bad
