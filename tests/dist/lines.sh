#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# lib/ has no more lines than doc/design/decisions.md allows, and not a thousand less: the number goes down with what
# goes. Prints the lines of each folder. With a directory as an argument: of that tree (the test of this test).
srcdir=${1:-${srcdir:-.}}
self=$(realpath "$0") && cd "$srcdir" || exit 99
# lines DIRECTORY: of its sources and headers
lines() { find "$1" -name '*.[ch]' -exec cat {} + | wc -l; }
allowed=$(sed -n 's/^\*\*lib\/ has at most \([0-9]*\),\([0-9]*\) lines\.\*\*.*/\1\2/p' doc/design/decisions.md)
[ -n "$allowed" ] || { echo "doc/design/decisions.md names no number of lines"; exit 1; }
for folder in lib/*/; do printf '%-12s %6d\n' "$folder" "$(lines "$folder")"; done
now=$(lines lib)
echo "lib/ has $now lines, and $allowed are allowed"
[ "$now" -le "$allowed" ] || { echo "more than allowed: make something simpler, or raise the number there and write why"; exit 1; }
[ $((allowed - now)) -lt 1000 ] || { echo "a thousand less than allowed: lower the number there"; exit 1; }
[ -z "${1-}" ] || exit 0

# A line more than allowed is seen, a thousand less, and a page without the number.
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
mkdir -p "$tmp/lib/base" "$tmp/doc/design"
page=$tmp/doc/design/decisions.md
seen() { sh "$self" "$tmp" >/dev/null && { echo "not seen: $1"; exit 1; }; }
seq 1002 >"$tmp/lib/base/base.c"
echo '**lib/ has at most 1,002 lines.** Why.' >"$page"
sh "$self" "$tmp" >/dev/null || { echo "a tree within its budget fails"; exit 1; }
echo '**lib/ has at most 1,001 lines.**' >"$page" && seen "a line too many"
echo '**lib/ has at most 2,002 lines.**' >"$page" && seen "a thousand lines less"
echo 'lib/' >"$page" && seen "no number"
exit 0
