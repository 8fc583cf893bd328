#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Pools on reaps behave as stock pools do: apr_semantics uses all of their interface, and prints the
# same transcript on both.
. "${srcdir:-.}/tests/support/httpd_lib.sh"

need_file "$httpd_libs/libreap-apr.so" libreap-apr
program=${top_builddir:-.}/tests/apache/apr_semantics

on_reaps() {
    env LD_PRELOAD="$1" LD_LIBRARY_PATH="$httpd_libs" "$program" >"$tmp/reap" 2>"$tmp/stderr" ||
        { cat "$tmp/stderr"; tail -3 "$tmp/reap"; fail "the program ended with $?"; }
    [ ! -s "$tmp/stderr" ] || { cat "$tmp/stderr"; fail "it wrote on standard error"; }
    diff "$tmp/stock" "$tmp/reap" || fail "transcripts differ (< stock, > reaps) with $1"
}

"$program" >"$tmp/stock" || fail "on stock pools the program ended with $?"
LD_PRELOAD=$httpd_libs/libreap-apr.so LD_LIBRARY_PATH=$httpd_libs ldd "$program" | grep -q libreap-apr ||
    fail "the library is not preloaded"
# Every function that the two headers declare is used, those of debugging builds apart.
on_reaps "$httpd_libs/libreap-apr.so"
[ ! -e "$httpd_libs/libreap-malloc.so" ] || on_reaps "$httpd_libs/libreap-malloc.so:$httpd_libs/libreap-apr.so"
echo "$(wc -l <"$tmp/stock") lines alike"
