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
# remote, of a heap that does nothing any more.
program=$top_builddir/tests/preload
for path in default locked; do
    options=$(options_of "$path")
    for size in 50 1000 20000 100000 3000000 20000000; do
        try "$path: $size" env REAP_OPTIONS="${options:+$options,}purge_ms=1000" LD_PRELOAD="$preload" \
            "$program/burst" $size &
    done
    wait
done
for size in 1000 20000; do
    try "heaps=cpu: $size" env REAP_OPTIONS=heaps=cpu,purge_ms=1000 LD_PRELOAD="$preload" "$program/burst" $size &
done
wait
for size in 50 1000 20000 100000 3000000 20000000; do
    try "reaps: $size" env REAP_OPTIONS=purge_ms=1000 "$program/burst_reaps" $size &
done
wait
try "default: 1000" env LD_PRELOAD="$preload" "$program/burst" 1000
try "purge_ms=60000: 1000 keeps" env REAP_OPTIONS=purge_ms=60000 LD_PRELOAD="$preload" "$program/burst" 1000 keeps
[ ! -e "$tmp/bad" ]
