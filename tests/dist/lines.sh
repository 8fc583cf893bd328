#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# No part of the tree has more lines than the budget in doc/design/decisions.md allows it, nor a thousand less: a number
# goes down with what goes. Prints the lines of each folder of lib/ and of each part. With a directory as an argument:
# of that tree (the test of this test).
srcdir=${1:-${srcdir:-.}}
self=$(realpath "$0") && cd "$srcdir" || exit 99
page=doc/design/decisions.md
parts="lib tests bench apache_module tools doc"
bad=0

# lines PART: of sources, scripts and pages that people write; recordings, recorded interfaces and pictures are none
lines() {
    case $1 in
        lib*) find "$1" -name '*.[ch]' ;;
        *) find "$1" -type f \( -name '*.[ch]' -o -name '*.cc' -o -name '*.hpp' -o -name '*.sh' -o \
            -name '*.bash' -o -name '*.py' -o -name '*.lua' -o -name '*.am' -o -name '*.md' -o -name '*.txt' -o \
            -name '*.[1-9]' -o -name '*.pml' -o -name '*.html' -o -name '*.css' -o -name 'reap-demo*' \) ;;
    esac | tr '\n' '\0' | xargs -0 cat | wc -l
}
# allowed PART: by the one line of the page that has all six
allowed() { sed -n "s/^\*\*At most:\*\* .*\`$1\/\` \([0-9]*\),\([0-9]*\)[, ].*/\1\2/p" "$page"; }

[ "$(grep -c '^\*\*At most:\*\*' "$page")" = 1 ] || { echo "$page has not one line of budgets"; exit 1; }
for folder in lib/*/; do printf '%-14s %6d\n' "${folder%/}" "$(lines "${folder%/}")"; done
for part in $parts; do
    now=$(lines "$part")
    most=$(allowed "$part")
    [ -n "$most" ] || { echo "$page names no number of lines for $part/"; bad=1; continue; }
    printf '%-14s %6d of %6d\n' "$part" "$now" "$most"
    [ "$now" -le "$most" ] || { echo "$part/: more than allowed: make something simpler, or raise the number there and write why"; bad=1; }
    [ $((most - now)) -lt 1000 ] || { echo "$part/: a thousand less than allowed: lower the number there"; bad=1; }
done
[ -z "${1-}" ] || exit $bad
[ $bad = 0 ] || exit 1

# In each part a line more than allowed is seen, a thousand less, and a page without its number.
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
for part in $parts; do mkdir -p "$tmp/$part/base" && seq 1002 >"$tmp/$part/base/base.c"; done
mkdir -p "$tmp/doc/design"
# budgets [PART LINES]: a page that allows each part what it has, doc its page too, and PART the LINES, or none
budgets() {
    printf '**At most:** '
    for each in $parts; do
        most=1,002
        [ "$each" != doc ] || most=1,003
        [ "$each" != "$1" ] || most=$2
        [ -z "$most" ] || printf '`%s/` %s, ' "$each" "$most"
    done
    echo 'lines.'
}
seen() { sh "$self" "$tmp" >/dev/null && { echo "not seen: $1"; exit 1; }; }
budgets >"$tmp/$page"
sh "$self" "$tmp" >/dev/null || { echo "a tree within its budget fails"; exit 1; }
for part in $parts; do
    budgets "$part" 1,001 >"$tmp/$page" && seen "a line too many in $part"
    budgets "$part" 2,003 >"$tmp/$page" && seen "a thousand lines less in $part"
    budgets "$part" '' >"$tmp/$page" && seen "no number for $part"
done
echo nothing >"$tmp/$page" && seen "no budgets"
exit 0
