#!/bin/sh
# Test programs that use malloc and its family oddly, under libreap-malloc on every path.
. "${srcdir:-.}/tests/preload-lib.sh"

paths="$paths unregistered"
bad=0
for program in "$top_builddir"/tests/preload_*; do
    [ -x "$program" ] && [ -f "$program" ] || continue
    [ "${program##*/}" != preload_misuse ] || continue # see preload-misuse.sh
    ran=$program
    for path in $paths; do
        if (under "$path" timeout 120 "$program") >"$tmp/out" 2>&1; then
            echo "$path: ${program##*/}"
        else
            echo "$path: ${program##*/} ends with status $?"
            head -n 20 "$tmp/out"
            bad=1
        fi
    done
done
[ -n "${ran:-}" ] || { echo "no programs in $top_builddir/tests"; exit 99; }
exit $bad
