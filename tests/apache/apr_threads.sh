#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Pools on reaps from many threads at once, and across fork.
. "${srcdir:-.}/tests/support/httpd_lib.sh"

need_file "$httpd_libs/libreap-apr.so" libreap-apr
for program in apr_threads apr_fork; do
    LD_PRELOAD=$httpd_libs/libreap-apr.so LD_LIBRARY_PATH=$httpd_libs timeout 300 \
        "${top_builddir:-.}/tests/apache/$program" || fail "$program: status $?"
done
