#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The instructions of a request of Apache on reaps, beside stock, are no more than bench/apache_steps.expected has; and so
# are the calls of the backend, and mod_reap's instructions beside reaps.
set -u
. "${srcdir:-.}/tests/support/script.sh"
need python3 valgrind setarch
need_file /usr/sbin/apache2 apache2
need_file "$build/.libs/libreap-apr.so" libreap-apr
need_file "$build/apache_module/.libs/mod_reap.so" mod_reap
python3 -B "$srcdir/bench/apache_steps.py" "$build" check "$srcdir/bench/apache_steps.expected"
