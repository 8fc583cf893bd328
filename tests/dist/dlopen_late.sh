#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# libreap opened late: with room in the static TLS, and after other libraries have used it up to the last byte.
. "${srcdir:-.}/tests/support/script.sh"
lib=${top_builddir:-.}/.libs/libreap.so
late=${top_builddir:-.}/tests/dist/dlopen_late

# Copies of one library are many libraries. Large ones first, then one byte at a time.
fillers=
filler() {
    echo "__thread char filler[$1] __attribute__((tls_model(\"initial-exec\"))); char *filled(void) { return filler; }" |
        ${CC:-cc} -shared -fPIC -x c - -o "$tmp/$1.so" || exit 99
    for n in $(seq "$2"); do
        cp "$tmp/$1.so" "$tmp/$1-$n.so"
        fillers="$fillers $tmp/$1-$n.so"
    done
}
filler 64 60
filler 1 65

said() {
    "$@" >"$tmp/out" 2>"$tmp/err" || { echo "fails: $1 $2 and $(($# - 2)) more" && bad=1; }
    cat "$tmp/out" "$tmp/err"
    [ -s "$tmp/err" ] && bad=1
}
said "$late" "$lib"
# shellcheck disable=SC2086  # names of ours, without blanks
said "$late" "$lib" $fillers
exit $bad
