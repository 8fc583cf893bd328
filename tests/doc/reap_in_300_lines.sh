#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# doc/reap-in-300-lines.c has at most 300 lines, compiles without a warning, and its objects keep their contents and do not
# overlap, while sanitizers watch. What was freed is used again. The page's names of functions are the library's.
. "${srcdir:-.}/tests/support/script.sh"
need gcc
source=$srcdir/doc/reap-in-300-lines.c

lines=$(wc -l <"$source")
[ "$lines" -le 300 ] || wrong "it has $lines lines"

# Each function is the library's by name. reapNew and others have its names, and other parameters.
grep -oE '^[a-z].*[a-z_A-Z]+\(' "$source" | grep -oE '[A-Za-z_]+\($' >"$tmp/functions"
[ "$(wc -l <"$tmp/functions")" -gt 15 ] || { echo "no functions in $source"; exit 99; }
while read -r function; do
    grep -qF -- "$function" "$srcdir"/lib/region/*.[ch] "$srcdir"/lib/reap/*.[ch] "$srcdir"/lib/base/bitmap.h \
        "$srcdir"/lib/hoard/chunk_provider.h || wrong "$function) is no function of the library"
done <"$tmp/functions"

gcc -std=gnu11 -Wall -Wextra -Werror -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all -o "$tmp/replay" \
    "$srcdir/tests/doc/reap_in_300_lines.c" >"$tmp/log" 2>&1 || {
    ! grep -q 'cannot find.*san' "$tmp/log" || skip "gcc has no sanitizers here"
    cat "$tmp/log"
    exit 1
}
for seed in 1 2 3; do
    "$tmp/replay" $seed >"$tmp/said" 2>&1 || wrong "seed $seed: $(cat "$tmp/said")"
    cat "$tmp/said"
done
# A free of what does not live ends the program.
for mistake in twice inner; do
    (ulimit -c 0; "$tmp/replay" $mistake) >/dev/null 2>&1
    [ $? = 134 ] || wrong "it takes the mistake '$mistake'"
done
exit $bad
