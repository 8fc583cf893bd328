#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A broken REAP_OPTIONS costs one line for each mistake in it, and nothing else. (Misuse of malloc is the matter of
# security_table.sh and preload-hardened.sh.)
. "${srcdir:-.}/tests/support/preload-lib.sh"

wrong() {
    printf 'wrong: %.200s\n' "$*"
    head -n 5 "$tmp/err" | cut -c 1-200
    bad=1
}

# Options: the value, and how many lines it is worth.
option() {
    env REAP_OPTIONS="$1" LD_PRELOAD="$preload" echo "came to its end" >"$tmp/out" 2>"$tmp/err" ||
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
# Each option there is: without a value, huge, twice. Any text but none is an address.
REAP_OPTIONS=help LD_PRELOAD="$preload" cat /dev/null 2>&1 | sed -n 's/^reap:   \([a-z_]*\)=.*/\1/p' >"$tmp/options"
[ "$(wc -l <"$tmp/options")" -ge 15 ] || wrong "help names $(wc -l <"$tmp/options") options"
huge=$(printf '%05000d' 0 | tr 0 9)
while read -r name; do
    option "$name=" 1
    option "$name=,$name=" 2
    [ "$name" = ask ] || option "$name=$huge" 1
done <"$tmp/options"
exit $bad
