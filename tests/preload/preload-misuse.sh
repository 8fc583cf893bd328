#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Misuse of malloc ends with one line that names the call, then abort; a broken REAP_OPTIONS costs
# one line and nothing else.
. "${srcdir:-.}/tests/support/preload-lib.sh"
program=$top_builddir/tests/preload/preload_misuse
ulimit -c 0

bad=0
wrong() {
    printf 'wrong: %.200s\n' "$*"
    head -n 5 "$tmp/err" | cut -c 1-200
    bad=1
}

cases=$("$program" list)
[ -n "$cases" ] || { echo "$program lists no cases"; exit 99; }
for path in $paths; do
    for case in $cases; do
        (under "$path" exec "$program" "$case") >"$tmp/out" 2>"$tmp/err"
        status=$?
        [ $status = 134 ] || wrong "$path: $case ends with status $status, not by abort"
        [ "$(grep -vc '^Aborted' "$tmp/err")" = 1 ] && grep -qE "^reap: ${case%%_*}\(0x[0-9a-f]+\): .*[a-z]" "$tmp/err" ||
            wrong "$path: $case does not say one line that names ${case%%_*} and the pointer"
    done
done

# Options: the value, and how many lines it is worth.
option() {
    (REAP_OPTIONS=$1 LD_PRELOAD=$preload "$program") >"$tmp/out" 2>"$tmp/err" ||
        wrong "REAP_OPTIONS='$1' ends the program"
    [ "$(cat "$tmp/out")" = "came to its end" ] || wrong "REAP_OPTIONS='$1' changes the output"
    [ "$(grep -c '^reap: ' "$tmp/err")" = "$2" ] && [ "$(grep -c . "$tmp/err")" = "$2" ] ||
        wrong "REAP_OPTIONS='$1' is not worth $2 lines"
}
option '' 0
option 'heaps=cpu' 0
option 'nonsense=1' 1
option 'heaps=banana' 1
option 'heaps' 1
option '=,=' 2
option 'slack=-1' 1
option 'slack=99999999999999999999999' 1
option 'heaps=cpu,nonsense=1' 1
option 'nonsense=1,banana=2' 2
option "$(printf '%05000d' 0 | tr 0 x)" 1
option "$(printf '\377\001')=1" 1
exit $bad
