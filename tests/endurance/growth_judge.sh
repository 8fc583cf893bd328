#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The judge of growth of make soak: series that grow are growth, and flat ones are not, however noisy (growth_judge.py). It needs
# no server. A judge that says always the same, or looks at less, is seen.
. "${srcdir:-.}/tests/support/script.sh"
need python3
python3 -B "$srcdir/tests/endurance/growth_judge.py" || exit 1
cp "$srcdir/tests/endurance/growth_judge.py" "$tmp"
while read -r edit; do
    sed "$edit" "$srcdir/tests/endurance/endurance.py" >"$tmp/endurance.py"
    cmp -s "$srcdir/tests/endurance/endurance.py" "$tmp/endurance.py" && wrong "nothing was edited: $edit"
    python3 -B "$tmp/growth_judge.py" >"$tmp/told" 2>&1 && wrong "not seen: $edit"
    grep -q '^wrong: ' "$tmp/told" || { cat "$tmp/told"; bad=1; }
done <<'EOF'
s/return d > c .*/return True/
s/return d > c .*/return False/
s/ and d - c > 1.1 .*//
s/ + 4096 and / and /
s/d > c \* 1.1 + 4096 and //
s/sizes\[quarter:2 \* quarter\] or sizes/sizes[:quarter]/
s/statistics.median(sizes\[-quarter:\])/sizes[-1]/
s/if seconds < LONG or /if /
EOF
exit $bad
