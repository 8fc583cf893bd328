#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# harden=1 and harden=2: each mistake of tests/preload/hardened ends as its table says, on each path, with the one
# line that names it; work without mistakes goes on. In a limited address space calls return NULL.
. "${srcdir:-.}/tests/support/preload-lib.sh"
program=$top_builddir/tests/preload/hardened
ulimit -c 0
count=0
"$program" >"$tmp/cases" || exit 99
for options in harden=1 harden=2 harden=1,path=locked harden=2,heaps=cpu; do
    level=${options#harden=}
    level=${level%%,*}
    while read -r least name ends; do
        [ "$least" -le "$level" ] || continue
        count=$((count + 1))
        (REAP_OPTIONS=$options LD_PRELOAD=$preload exec "$program" "$name") >"$tmp/expected" 2>"$tmp/said"
        status=$?
        grep -v '^(none)$' "$tmp/expected" >"$tmp/line"
        # The shell may have a word of its own on a program that was killed.
        if [ $status != "$ends" ] || ! grep '^reap: ' "$tmp/said" | cmp -s - "$tmp/line"; then
            echo "$options $name: status $status, expected $ends"
            head -n 3 "$tmp/expected" "$tmp/said"
            bad=1
        fi
    done <"$tmp/cases"
done
echo "$count times"
[ $count -gt 100 ] || exit 99

# What is no mistake under another malloc, and no level, is none here: the cases are real ones.
(REAP_OPTIONS=harden=0 LD_PRELOAD=$preload exec "$program" overflow/40) >"$tmp/out" 2>&1
grep -q missed "$tmp/out" || { echo "harden=0 finds an overflow: the test cannot tell levels"; bad=1; }

# Little address space: work ends with what must be NULL, or goes on, and never by a signal.
for options in harden=1 harden=2; do
    (ulimit -v 200000 && REAP_OPTIONS=$options LD_PRELOAD=$preload exec "$program" alone/40) >"$tmp/out" 2>&1 ||
        { echo "$options: little address space: status $?"; cat "$tmp/out"; bad=1; }
done
exit $bad
