#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A soak of an unmodified httpd with its pools on reaps that is restarted gracefully every ten seconds: requests of
# all kinds, keep-alive or not, HTTP/1.1 and HTTP/2, and then no failed request, no crash, as many processes as
# before, and no more memory. Each answer is compared with the first one of its kind. Two things stock httpd does as well
# in a restart, and clients ask again: a script answers 503 while mod_cgid's daemon changes, and a connection of HTTP/2
# ends with an error. Prints a line every ten seconds.
#
#     tests/apache/soak_restarts.sh [--stock] [MPM]       from the build directory, or with top_builddir set
#
# REQUESTS (1000000), half of them over HTTP/2; CLIENTS (2 processes for HTTP/1.1); SECONDS_BETWEEN (10);
# GROWTH (2048, KiB: medians of the first and last quarter of the time; the main process may have a quarter of that).
srcdir=${srcdir:-$(dirname "$0")/../..}
. "$srcdir/tests/support/httpd_lib.sh"

requests=${REQUESTS:-1000000}
clients=${CLIENTS:-2}
between=${SECONDS_BETWEEN:-10}
growth=${GROWTH:-2048}
tool="$srcdir/tests/apache/growth.py"
preload=$httpd_libs/libreap-apr.so
if [ "${1:-}" = --stock ]; then
    shift
    preload=''
fi
mpm=${1:-event}
httpd_require
need python3

# Paths, and how many of a hundred requests are for each.
mix='/page.txt=30 /index.html=20 /parts.shtml=20 /big/=1 /cgi/hello.cgi?x=1=2 /back/stream/0=15 /packed/page.txt=4'

prepare() {
    lua=$build/apache_module/.libs/mod_reap_lua.so
    httpd_prepare "$tmp" "$mpm"
    echo '<!--#include virtual="one.html" --><!--#include virtual="two.shtml" -->' >"$tmp/htdocs/parts.shtml"
    {
        echo "ProxyPass /back/ http://127.0.0.1:$backend_port/"
        if [ -e "$lua" ]; then
            printf '%s\n' "LoadModule reap_lua_module $lua" 'AddHandler reap-lua .lua'
            echo 'local t = {} for i = 1, 500 do t[i] = "line " .. i end print(table.concat(t, " "))' >"$tmp/htdocs/t.lua"
            mix="$mix /t.lua=8"
        fi
    } >>"$tmp/httpd.conf"
    lacks_file "$lua" mod_reap_lua Lua || :
}

# Children; KiB of all processes together, PSS; KiB of the main process, anonymous.
memory() {
    echo "$(httpd_children | wc -l) $(httpd_pss) $(httpd_memory Anonymous "$httpd_pid")"
}

# Of a column, at times with as many processes as at first: medians of the first and of the last quarter.
trend() {
    awk -v count="$before" -v column="$1" '$1 == count { print $column }' "$tmp/memory" >"$tmp/figures"
    quarter=$((($(wc -l <"$tmp/figures") + 3) / 4))
    for end in head tail; do
        $end -n $quarter "$tmp/figures" | sort -n | awk '{ value[NR] = $1 } END { print value[int((NR + 1) / 2)] }'
    done
}

# expect_flat COLUMN WHAT KIB
expect_flat() {
    what=$2 allowed=$3
    # shellcheck disable=SC2046  # two numbers
    set -- $(trend "$1")
    echo "$what: $1 KiB in the first quarter of the time, $2 in the last"
    [ "$2" -le $(($1 + allowed)) ] || fail "$what grew by $(($2 - $1)) KiB"
}

running() {
    for pid in $pids; do ! kill -0 "$pid" 2>/dev/null || return 0; done
    return 1
}

soak() {
    each=$((requests / 2 / clients))
    [ "$mpm" != prefork ] || each=$((requests / clients))
    pids=
    for i in $(seq "$clients"); do
        # shellcheck disable=SC2086  # words
        "$tool" mix "$httpd_port" $each "$tmp/done.$i" $mix >"$tmp/client.$i" 2>&1 &
        pids="$pids $!"
    done
    if [ "$mpm" != prefork ]; then # the back port speaks HTTP/2
        "$tool" h2 "$httpd_back" $((requests / 2)) "$tmp/done.h2" /page.txt /parts.shtml /index.html >"$tmp/client.h2" 2>&1 &
        pids="$pids $!"
    fi
    seconds=0 restarts=0
    while running; do
        sleep 1
        seconds=$((seconds + 1))
        memory >>"$tmp/memory"
        [ $((seconds % between)) = 0 ] || continue
        kill -USR1 "$httpd_pid"
        restarts=$((restarts + 1))
        echo "$seconds s: $(cat "$tmp"/done.* 2>/dev/null | awk '{ n += $1 } END { print n + 0 }') requests, $(tail -n 1 "$tmp/memory") (children, KiB of all, of the main process)"
    done
    # shellcheck disable=SC2086  # words
    for pid in $pids; do wait "$pid" || failed=yes; done
    [ -z "$failed" ] || { cat "$tmp"/client.*; grep -v notice "$tmp/error.log" | tail -n 5; fail "requests failed"; }
}

failed= pids=
httpd_free_port
backend_port=$httpd_port
prepare
python3 "$tool" backend "$backend_port" &
backend=$!
at_exit='kill $backend $pids 2>/dev/null; httpd_end'
within 60 httpd_in_use "$backend_port" || fail "no server behind the proxy"
httpd_start "$tmp" "$preload"
[ -z "$preload" ] || grep -q libreap-apr "/proc/$httpd_pid/maps" || fail "libreap-apr is not preloaded"
before=3 # two children and the daemon of mod_cgid; a server that answers may have begun some only
[ "$mpm" != prefork ] || before=40
within 60 httpd_has "$before" || fail "$(httpd_children | wc -l) processes, and not $before"
soak
within 60 httpd_has "$before" || fail "$(httpd_children | wc -l) processes, and not $before"
memory >>"$tmp/memory" # a short soak may have been seen with fewer processes only
httpd_stop
httpd_log_is_clean "$tmp" || fail "the error log"
echo "$mpm: $(cat "$tmp"/done.* | awk '{ n += $1 } END { print n }') requests, none failed, $restarts graceful restarts, $seconds s"
echo "asked again, as stock httpd wants it in a restart: $(cat "$tmp"/done.[0-9]* | awk '{ n += $2 } END { print n }') scripts," \
    "$(cut -d' ' -f2 "$tmp/done.h2" 2>/dev/null || echo 0) of HTTP/2"
expect_flat 2 "PSS of all processes" "$growth"
expect_flat 3 "the main process" $((growth / 4))
