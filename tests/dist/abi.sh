#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The libraries' interfaces as their debug information has them, beside those that were recorded in tests/dist/abi: nothing
# that programs use has gone or changed; what has come is named, and is no fault.
#
#     tests/dist/abi.sh            compares
#     tests/dist/abi.sh record     records: make abi-record, when a change is meant
. "${srcdir:-.}/tests/support/script.sh"
recorded=$srcdir/tests/dist/abi
need abidw abidiff
case $(uname -m) in x86_64) ;; *) echo "skipped: interfaces were recorded on x86-64"; exit 77 ;; esac

# dump LIBRARY: without paths, lines and private types, so that only a change of the interface changes it
dump() {
    abidw --exported-interfaces-only --headers-dir "$srcdir/include" --drop-private-types --no-corpus-path --no-comp-dir-path \
        --no-show-locs --no-elf-needed --no-parameter-names "$1"
}

for name in libreap libreap-ask libreap-apr; do
    library=$build/.libs/$name.so
    ! lacks_file "$library" "$name" || continue
    dump "$library" >"$tmp/$name.abi" 2>"$tmp/said" || { cat "$tmp/said"; exit 99; }
    grep -q '<function-decl' "$tmp/$name.abi" || { echo "skipped: $name, which has no debug information"; continue; }
    if [ "${1-}" = record ]; then
        cp "$tmp/$name.abi" "$recorded/"
        continue
    fi
    if abidiff --no-added-syms "$recorded/$name.abi" "$tmp/$name.abi" >"$tmp/said" 2>&1; then # what has come is no fault
        echo "$name: as it was recorded"
    else
        echo "$name: its interface has changed (make abi-record, if that is meant; doc/building.md, Soname policy)"
        cat "$tmp/said"
        bad=1
    fi
    abidiff "$recorded/$name.abi" "$tmp/$name.abi" | sed -n 's/^  *\[A\] /new: /p'
done
exit $bad
