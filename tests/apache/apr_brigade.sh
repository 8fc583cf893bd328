#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Brigades are used again once they are destroyed, survive their use after that, and stay where the user wants
# it; and an allocator's max_free holds.
. "${srcdir:-.}/tests/support/httpd_lib.sh"

need_file "$httpd_libs/libreap-apr.so" libreap-apr
program=${top_builddir:-.}/tests/apache/apr_brigade
on_reaps() { LD_PRELOAD=$httpd_libs/libreap-apr.so LD_LIBRARY_PATH=$httpd_libs "$program" "$@"; }

[ "$("$program")" = "stock pools" ] || fail "on stock pools"
[ "$(on_reaps)" = flat ] || fail "on reaps"
[ "$(REAP_APR_BRIGADES=reuse on_reaps)" = flat ] || fail "REAP_APR_BRIGADES=reuse"
[ "$(REAP_APR_BRIGADES=keep on_reaps keep)" = kept ] || fail "REAP_APR_BRIGADES=keep"
said=$(REAP_APR_BRIGADES=sometimes on_reaps 2>&1) || fail "a setting that is not known: $said"
[ "$said" = "reap: REAP_APR_BRIGADES=sometimes: there are reuse and keep
flat" ] || fail "a setting that is not known: $said"
