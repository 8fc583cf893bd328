#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# apr_pfree, apr_prealloc and apr_pool_reap: their use, their misuse (one line and an abort, each),
# and their absence on stock pools, which a module survives.
srcdir=${srcdir:-.}
. "$srcdir/tests/support/httpd_lib.sh"

[ -e "$httpd_libs/libreap-apr.so" ] || skip "libreap-apr was not built"
httpd_directory
program=${top_builddir:-.}/tests/apache/apr_pfree
on_reaps() { LD_PRELOAD=$httpd_libs/libreap-apr.so LD_LIBRARY_PATH=$httpd_libs "$program" "$@"; }

[ "$("$program")" = "stock pools" ] || fail "on stock pools"
[ "$(on_reaps)" = "reaps" ] || fail "on reaps"

# kind, and a word that the line must have
while read -r kind word; do
    (ulimit -c 0; on_reaps "$kind") >"$tmp/out" 2>"$tmp/err"
    status=$?
    [ $status = 134 ] || { cat "$tmp/out" "$tmp/err"; fail "$kind: status $status, not that of an abort"; }
    # A shell may add a line of its own about the abort.
    grep -c '^reap: ' "$tmp/err" | grep -qx 1 || { cat "$tmp/err"; fail "$kind: not one line"; }
    grep -qE "^reap: [a-zA-Z_]+\(0x[0-9a-f]+\): .*$word" "$tmp/err" || { cat "$tmp/err"; fail "$kind: what the line says"; }
    sed -n "s/^reap: /$kind: /p" "$tmp/err"
done <<'END'
twice free
interior
foreign
other
parent
resized
cleared
destroyed
END
