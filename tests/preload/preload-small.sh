#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What the library itself costs a small process in memory that no other process shares: the pages that it has written
# to, of its data, its tables and its descriptors, and one page of each size class in use. And in addresses: it runs
# where a limit leaves it 16 MB.
. "${srcdir:-.}/tests/support/preload-lib.sh"
need readelf

readelf -SW "$preload" >"$tmp/sections"
grep -Eq '\.bss\.sparse +NOBITS +[0-9a-f]+ [0-9a-f]+ 0*[1-9a-f][0-9a-f]{5}' "$tmp/sections" || { # at least 1 MiB
    echo "skipped: the tables lie between the variables (a debug build, or a linker that does not take lib/sparse.ld)"
    exit 77
}

# The least of runs that begin the stack at each sixteenth of a page: how many pages of it are written to depends on the
# place, and the environments with and without the library differ in length. Where places by chance cannot be turned
# off, they are by chance.
fixed=
command -v setarch >/dev/null && setarch -R true 2>/dev/null && fixed='setarch -R'
least() {
    best= pad=
    while [ ${#pad} -lt 4096 ]; do
        # shellcheck disable=SC2086  # words
        figure=$(PAD=$pad "$@" $fixed "$top_builddir/tests/preload/small") || {
            status=$?
            [ $status -ne 77 ] || echo "skipped: no /proc/self/smaps_rollup"
            exit $status
        }
        [ -n "$best" ] && [ "$best" -le "$figure" ] || best=$figure
        pad="$pad$(printf %256s)"
    done
    echo "$best"
}
without=$(least env) || { echo "$without"; exit 77; }
for path in $paths; do
    options=$(options_of "$path")
    with=$(least env REAP_OPTIONS="$options" LD_PRELOAD="$preload") || { echo "$path: $with"; bad=1; continue; }
    echo "$path: $with KiB, $without without the library"
    [ $((with - without)) -le 60 ] || bad=1
    # shellcheck disable=SC3045  # dash and bash have it
    (ulimit -v 16000 && REAP_OPTIONS="$options" LD_PRELOAD="$preload" "$top_builddir/tests/preload/small") >"$tmp/out" 2>&1 &&
        ! grep -v '^[0-9]*$' "$tmp/out" || { echo "$path: in 16 MB of addresses:"; cat "$tmp/out"; bad=1; }
done
exit $bad
