#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A program of one thread that frees at once all that it had, and makes no call then, has given the memory back a
# second later; one of phases does not touch the same memory anew in each. Objects of malloc and of reaps.
. "${srcdir:-.}/tests/support/preload-lib.sh"

try() {
    said=$1
    shift
    if timeout 300 "$@" >"$tmp/$said" 2>&1; then
        echo "$said"
    else
        echo "$said ends with status $?"
        head -n 20 "$tmp/$said"
        echo "$said" >>"$tmp/bad"
    fi
}
# With purge_ms=1000 what is wanted again within a second stays, and only that. With heaps=cpu a migration makes blocks
# remote, of a heap that does nothing any more. Most of the time all of them sleep, so some run side by side.
program=$top_builddir/tests/preload
sizes='50 1000 20000 100000 3000000 20000000'
# burst NAME OPTION SIZE...
burst() {
    name=$1 options=$2,purge_ms=1000
    shift 2
    for size; do try "$name: $size" env REAP_OPTIONS="${options#,}" LD_PRELOAD="$preload" "$program/burst" $size & done
}
# shellcheck disable=SC2086  # words
{
    burst default '' $sizes
    wait
    burst locked path=locked $sizes
    burst heaps=cpu heaps=cpu 1000 20000
    wait
}
for size in $sizes; do try "reaps: $size" env REAP_OPTIONS=purge_ms=1000 "$program/burst_reaps" $size & done
try "default: 1000" env LD_PRELOAD="$preload" "$program/burst" 1000 &
try "purge_ms=60000: 1000 keeps" env REAP_OPTIONS=purge_ms=60000 LD_PRELOAD="$preload" "$program/burst" 1000 keeps &
wait
[ ! -e "$tmp/bad" ]
