#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Each program in tests/misuse says on standard output what it expects on standard error: exactly
# that one line must come, and then SIGABRT. Those that take any reap (new_reap) run three times: with an
# ordinary one, with a shared one, and with one whose objects come from several parts in turn.
srcdir=${srcdir:-.}
programs=${top_builddir:-.}/tests/misuse
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
bad=0
count=0

# try NAME MODE [VARIABLE=VALUE ...]
try() {
    name=$1
    mode=$2
    shift 2
    count=$((count + 1))
    # In the background, so that the shell's own word on a program that was killed does not get between.
    env "$@" "$programs/$name" >"$tmp/expected" 2>"$tmp/said" </dev/null &
    wait $! 2>/dev/null
    status=$?
    if [ $status -ne 134 ]; then
        echo "$name, $mode: status $status in the place of 134 (SIGABRT)"
        bad=1
    elif ! diff "$tmp/expected" "$tmp/said" >"$tmp/diff"; then
        echo "$name, $mode: (< expected, > said)"
        cat "$tmp/diff"
        bad=1
    fi
}

for source in "$srcdir"/tests/misuse/*.c; do
    name=$(basename "$source" .c)
    try "$name" ordinary
    grep -q 'new_reap()' "$source" || continue
    try "$name" shared MISUSE_SHARED=1
    try "$name" "in parts" MISUSE_SHARED=1 REAP_OPTIONS=path=locked,heaps=roundrobin
done
echo "$count times"
[ $count -gt 0 ] || exit 99
exit $bad
