#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Pools on reaps behave as stock pools do, also in random sequences of calls: apr_random prints the same on both.
# Other seeds: tests/apache/apr_random.sh FIRST COUNT STEPS.
. "${srcdir:-.}/tests/support/httpd_lib.sh"

need_file "$httpd_libs/libreap-apr.so" libreap-apr
program=${top_builddir:-.}/tests/apache/apr_random

# compare OPTIONS PRELOAD FIRST COUNT STEPS
compare() {
    options=$1 preload=$2
    shift 2
    timeout 300 "$program" "$@" >"$tmp/stock" || fail "on stock pools seeds $*: it ended with $?"
    env REAP_OPTIONS="$options" LD_PRELOAD="$preload" LD_LIBRARY_PATH="$httpd_libs" \
        timeout 300 "$program" "$@" >"$tmp/reap" 2>"$tmp/stderr" ||
        { status=$?; cat "$tmp/stderr"; tail -n 3 "$tmp/reap"; fail "'$options' $preload, seeds $*: it ended with $status"; }
    cmp -s "$tmp/stock" "$tmp/reap" ||
        { diff "$tmp/stock" "$tmp/reap" | head -n 20; fail "'$options' $preload, seeds $*: not as on stock pools"; }
    lines=$((lines + $(wc -l <"$tmp/stock")))
}

lines=0
apr=$httpd_libs/libreap-apr.so both=$httpd_libs/libreap-malloc.so:$httpd_libs/libreap-apr.so
if [ $# = 3 ]; then
    compare "${REAP_OPTIONS:-}" "$apr" "$@"
else
    compare '' "$apr" 1 150 1500
    compare harden=1 "$apr" 1 30 1500
    compare bypass=1 "$apr" 51 20 1500
    [ ! -e "$httpd_libs/libreap-malloc.so" ] || compare '' "$both" 151 50 1500
fi
echo "$lines lines alike"
