#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Each program in tests/misuse says on standard output what it expects on standard error: exactly
# that one line must come, and then SIGABRT.
srcdir=${srcdir:-.}
programs=${top_builddir:-.}/tests/misuse
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
bad=0
count=0
for source in "$srcdir"/tests/misuse/*.c; do
    name=$(basename "$source" .c)
    count=$((count + 1))
    # In the background, so that the shell's own word on a program that was killed does not get between.
    "$programs/$name" >"$tmp/expected" 2>"$tmp/said" </dev/null &
    wait $! 2>/dev/null
    status=$?
    if [ $status -ne 134 ]; then
        echo "$name: status $status in the place of 134 (SIGABRT)"
        bad=1
    elif ! diff "$tmp/expected" "$tmp/said" >"$tmp/diff"; then
        echo "$name: (< expected, > said)"
        cat "$tmp/diff"
        bad=1
    fi
done
echo "$count programs"
[ $count -gt 0 ] || exit 99
exit $bad
