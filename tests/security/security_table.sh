#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Each misuse of tests/security is told, stopped, harmless or missed as doc/security-table.md says, in each mode of ours,
# and told in one line. And the judge is judged: a malloc that tells less is seen, a file that is no library, each letter
# and line of the page that is another, and a page without a peer says so.
. "${srcdir:-.}/tests/support/script.sh"
need python3
ulimit -c 0
table() { python3 -B "$srcdir/tests/security/security_table.py" --build "$build" "$@"; }

page=$srcdir/doc/security-table.md
table --mode ours --held "$page" || wrong "misuse under one of our modes"

# The page is what would be made today of its cells and of the programs that there are.
held() { table --held "$1" >"$tmp/told" 2>&1; }
if [ -e "$build/tests/security/misuses_new" ]; then
    held "$page" || { wrong "doc/security-table.md is not of today: make security-table"; cat "$tmp/told"; }
    # A letter of each of our modes, and of a reap; a row, a mode and a sum that went or came; a word of the rules.
    row='| freed twice, at once |'
    while read -r name edit; do
        sed "$edit" "$page" >"$tmp/edited.md"
        cmp -s "$page" "$tmp/edited.md" && wrong "$name: nothing was edited"
        held "$tmp/edited.md" && wrong "a page passes with $name"
        grep -q '^-|\|^+|\|^+The rules' "$tmp/told" || { wrong "$name is not told:"; cat "$tmp/told"; }
    done <<EOF
another_letter_of_default s/^\($row .\)T/\1S/
another_letter_of_harden=1 s/^\($row .T*. | .\)T/\1h/
another_letter_of_harden=2 s/^\($row .T*. | .T*. | .\)T/\1-/
another_letter_of_a_reap /^## Objects/,\$s/^\($row .T*. | .T*. | .TT\)T/\1S/
no_such_row /^$row/d
a_row_twice s/^\($row.*\)/\1\n\1/
no_harden=2 s/^\(|  | default | harden=1\) | harden=2/\1/
another_sum s/^| told | \([0-9]*\)/| told | 1\1/
another_rule s/^The rules of harmless are/The rules are/
EOF
fi

# glibc's malloc in the place of ours: it tells less, and each cell that differs has a line.
REAP_PRELOAD=$(${CC:-cc} -print-file-name=libc.so.6) table --parts malloc --only '^twice|^foreign|^write-freed' --mode default \
    --held "$page" >"$tmp/glibc" 2>&1 && wrong "glibc's malloc passes for ours"
[ "$(grep -c '  the page has ' "$tmp/glibc")" -ge 3 ] || { wrong "the differences are not told:"; cat "$tmp/glibc"; }
# A file that is no library.
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
