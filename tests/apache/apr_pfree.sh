#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# apr_pfree, apr_prealloc and apr_pool_reap: their use, their misuse (one line and an abort, each),
# and their absence on stock pools, which a module survives.
. "${srcdir:-.}/tests/support/httpd_lib.sh"

need_file "$httpd_libs/libreap-apr.so" libreap-apr
program=${top_builddir:-.}/tests/apache/apr_pfree
on_reaps() { LD_PRELOAD=$httpd_libs/libreap-apr.so LD_LIBRARY_PATH=$httpd_libs "$program" "$@"; }

[ "$("$program")" = "stock pools" ] || fail "on stock pools"
[ "$(on_reaps)" = "reaps" ] || fail "on reaps"

# kind, the call that the program made, and what else the line must have
while read -r kind call word; do
    (ulimit -c 0; on_reaps "$kind") >"$tmp/out" 2>"$tmp/err"
    status=$?
    [ $status = 134 ] || { cat "$tmp/out" "$tmp/err"; fail "$kind: status $status, not that of an abort"; }
    # A shell may add a line of its own about the abort.
    grep -c '^reap: ' "$tmp/err" | grep -qx 1 || { cat "$tmp/err"; fail "$kind: not one line"; }
    grep -qE "^reap: $call\(0x[0-9a-f]+\): .*$word" "$tmp/err" || { cat "$tmp/err"; fail "$kind: what the line says"; }
    sed -n "s/^reap: /$kind: /p" "$tmp/err"
done <<'END'
twice apr_pfree freed twice
interior apr_pfree not the start
foreign apr_pfree
other apr_pfree another reap
parent apr_pfree another reap
resized apr_prealloc
cleared apr_pfree not a live
destroyed apr_pfree not a live
gone apr_pool_destroy not a live
gone-clear apr_pool_clear not a live
gone-tag apr_pool_tag not a live
gone-create apr_pool_create_ex not a live
gone-abort apr_pool_abort_set not a live
gone-allocator apr_pool_allocator_get not a live
gone-register apr_pool_cleanup_register not a live
gone-pre apr_pool_pre_cleanup_register not a live
gone-kill apr_pool_cleanup_kill not a live
gone-set apr_pool_child_cleanup_set not a live
gone-data apr_pool_userdata_set not a live
gone-get apr_pool_userdata_get not a live
many apr_pool_destroy not a live
root apr_pool_destroy not a live
root-clear apr_pool_clear not a live
root-register apr_pool_cleanup_register not a live
root-text reapMalloc not a live
direct reapFree freed twice
END
