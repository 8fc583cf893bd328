#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Test programs that use malloc and its family oddly, under libreap-malloc on every path.
. "${srcdir:-.}/tests/support/preload-lib.sh"

paths="$paths unregistered"

# Each path is the one that runs, as far as the kernel has it: stats=1 tells. (A library under test in
# the place of ours tells nothing.)
path_of() {
    (
        under "$1" true
        LD_PRELOAD=$preload REAP_OPTIONS=${REAP_OPTIONS:+$REAP_OPTIONS,}stats=1 env echo 2>&1
    ) | sed -n 's/^reap: path //p'
}
[ -n "${REAP_PRELOAD:-}" ] || for path in $paths; do
    told=$(path_of "$path")
    case $path/$told in
        default/rseq* | cpu/"rseq cpu"* | default/locked:*rseq* | cpu/locked:*rseq*) ;;
        locked/locked:*asked* | unregistered/locked:*"not registered"*) ;;
        *) echo "$path runs on path '$told'" && bad=1 ;;
    esac
done
for program in "$top_builddir"/tests/preload/preload_*; do
    [ -x "$program" ] && [ -f "$program" ] || continue
    ran=$program
    for path in $paths; do
        if (under "$path" timeout 300 "$program") >"$tmp/out" 2>&1; then
            echo "$path: ${program##*/}"
        else
            echo "$path: ${program##*/} ends with status $?"
            head -n 20 "$tmp/out"
            bad=1
        fi
    done
done
# The sizes that harden looks at are of blocks of this library: not of a program's own delete.
for program in "$top_builddir"/tests/preload/preload_new_*; do
    [ -x "$program" ] && [ -f "$program" ] || continue
    LD_PRELOAD=$preload REAP_OPTIONS=harden=1 "$program" || { echo "harden=1: ${program##*/} ends with status $?" && bad=1; }
done
[ -n "${ran:-}" ] || { echo "no programs in $top_builddir/tests/preload"; exit 99; }
exit $bad
