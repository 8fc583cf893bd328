#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The programs in tests/misuse have tables of mistakes. Each case says on standard output what it expects on standard
# error: exactly that one line must come, and then SIGABRT. A case for any reap runs three times: with an ordinary one,
# with a shared one, and with one whose objects come from several parts in turn.
. "${srcdir:-.}/tests/support/script.sh"
programs=$build/tests/misuse
count=0

# try PROGRAM CASE MODE [VARIABLE=VALUE ...]
try() {
    program=$1 name=$2 mode=$3
    shift 3
    count=$((count + 1))
    # In the background, so that the shell's own word on a program that was killed does not get between.
    env "$@" "$programs/$program" "$name" >"$tmp/expected" 2>"$tmp/said" </dev/null &
    wait $! 2>/dev/null
    status=$?
    if [ $status -ne 134 ]; then
        wrong "$program $name, $mode: status $status in the place of 134 (SIGABRT)"
    elif ! diff "$tmp/expected" "$tmp/said" >"$tmp/diff"; then
        wrong "$program $name, $mode: (< expected, > said)"
        cat "$tmp/diff"
    fi
}

for program in objects reaps apart malloc; do
    "$programs/$program" --list >"$tmp/cases" || exit 99
    [ -z "$(cut -d' ' -f1 "$tmp/cases" | sort | uniq -d)" ] || wrong "$program has two cases of one name"
    while read -r name modes; do
        for mode in $modes; do
            case $mode in
            ordinary) try "$program" "$name" ordinary ;;
            shared) try "$program" "$name" shared MISUSE_SHARED=1 ;;
            parts) try "$program" "$name" "in parts" MISUSE_SHARED=1 REAP_OPTIONS=path=locked,heaps=roundrobin ;;
            esac
        done
    done <"$tmp/cases"
done
echo "$count times"
[ $count -gt 200 ] || exit 99
exit $bad
