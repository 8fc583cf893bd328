#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# An unmodified apache2 on its stock pools, malloc by libreap-malloc, serves what it serves without:
# files, SSI, a listing, CGI, a proxied site. (Pools on reaps are the matter of tests/apache/apr_httpd.sh.)
. "${srcdir:-.}/tests/support/preload-lib.sh"
. "$srcdir/tests/support/httpd_lib.sh"
need "${APACHE2:-apache2}" curl
need_file "$httpd_modules/mod_mpm_event.so" "Apache's modules"

# shellcheck disable=SC2034  # run by the trap of preload-lib; a server that stopped left no pid
at_exit='for left in "$tmp"/*/httpd.pid; do [ ! -e "$left" ] || kill "$(cat "$left")"; done'

get() { curl -s -f "$@" | cksum; }
work() {
    httpd_prepare "$PWD" event
    httpd_start "$PWD"
    site=http://127.0.0.1:$httpd_port
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        for page in / /large.txt /all.shtml /big/ /cgi/hello.cgi?x=y /proxied/page.txt /proxied/all.shtml; do
            get "$site$page" || return
        done
        get --compressed -H 'Connection: close' "$site/packed/large.txt" || return
    done
    # A hundred at once, on few connections.
    seq -f "url = \"$site/big/entry-with-a-name-%.0f.txt\"" 1 100 | curl -s -f --parallel -K - | wc -c
    curl -s -o missing -w '%{http_code}\n' "$site/missing"
    [ -z "${LD_PRELOAD:-}" ] || grep -q "$LD_PRELOAD" "/proc/$httpd_pid/maps" || fail "the server has no $LD_PRELOAD"
    httpd_stop
    httpd_log_is_clean "$PWD"
}
compare_work
