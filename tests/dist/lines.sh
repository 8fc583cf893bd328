#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# No part of the tree has more lines than the budget in doc/design/decisions.md allows it, nor a thousand less: a number
# goes down with what goes. Prints the lines of each folder of lib/ and of each part.
cd "${srcdir:-.}" || exit 99
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
exit $bad
