#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What grows in stock httpd does not grow on reaps: one child, one long connection or one long answer, of many
# kinds, on reaps; and a graceful restart again and again. The process's anonymous memory is taken 50 times a second.
# Its growth is what it has more at the end than after a quarter of the time, when all threads have served something.
# On reaps that has a bound. The long form has the figure of stock pools beside it, which no bound holds.
# Memory that does not go with the load comes in each measurement, too: what a thread or a processor keeps, 100 to 250
# KiB, and twice that beside other programs. So a load above the bound is not one that grows yet: four times the load may
# have four times the bound. What grows with the load is above that as well, and a constant is far below.
# At the end a test of the test: with brigades that are kept, an HTTP/2 connection grows beyond the bound.
#
#     tests/apache/growth.sh [CASE...]       from the build directory, or with top_builddir set
#
# GROWTH_TIMES (1) multiplies each load: more than 1 is the long form, as is an empty REAP_TEST_SHORT. GROWTH_KEEP is a
# directory for the samples.
srcdir=${srcdir:-$(dirname "$0")/../..}
. "$srcdir/tests/support/httpd_lib.sh"

times=${GROWTH_TIMES:-1}
beside=stock
[ -z "${REAP_TEST_SHORT:-}" ] || [ "$times" != 1 ] || beside=
bound=256 # KiB; on stock pools h2 grows by some 1800, and by 7400 in four times the load; tls by 400 and 1600
tool="$srcdir/tests/apache/growth.py"
httpd_require
need python3

# case, amount, unit: two seconds or so each. "restart" comes apart.
cases='h2 40000 request
tls 20000 request
keepalive 12000 request
stream 800 MB
slow 4 MB
deflate 150 MB
events 10000 event
upload 700 MB
websocket 30000 frame
ssi-cgi 250 request
ssi-page 1500 request'

# --- the server ---------------------------------------------------------------------------------

# The common site and configuration, with one child of few threads, TLS, and the server behind the proxy.
configure() {
    cat <<END
LoadModule proxy_wstunnel_module $httpd_modules/mod_proxy_wstunnel.so
ServerLimit 1
StartServers 1
ThreadsPerChild 8
MaxRequestWorkers 8
MinSpareThreads 1
MaxSpareThreads 8
Protocols h2c http/1.1
ProxyPass /back/ws ws://127.0.0.1:$backend_port/
ProxyPass /back/ http://127.0.0.1:$backend_port/
<Location /back/packed>
SetOutputFilter DEFLATE
</Location>
END
    [ ! -s "$tmp/certificate.pem" ] || cat <<END
LoadModule socache_shmcb_module $httpd_modules/mod_socache_shmcb.so
LoadModule ssl_module $httpd_modules/mod_ssl.so
Listen 127.0.0.1:$httpd_secure
<VirtualHost 127.0.0.1:$httpd_secure>
SSLEngine on
SSLCertificateFile $tmp/certificate.pem
SSLCertificateKeyFile $tmp/key.pem
</VirtualHost>
END
}

make_site() {
    echo '<!--#include virtual="cgi/hello.cgi" --><!--#include virtual="one.html" -->' >"$tmp/htdocs/cgi.shtml"
    for _ in $(seq 20); do
        # shellcheck disable=SC2016  # a variable of SSI
        echo '<!--#set var="n" value="$n." --><!--#echo var="DOCUMENT_NAME" --><!--#include virtual="one.html" -->'
    done >"$tmp/htdocs/page.shtml"
}

# Without openssl there is no TLS.
make_certificate() {
    openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=localhost -days 9 -keyout "$tmp/key.pem" \
        -out "$tmp/certificate.pem" >"$tmp/openssl" 2>&1 && return
    absent openssl "a certificate, for tls"
}

# start_on stock|reaps [VARIABLE=VALUE]
start_on() {
    preload=
    [ "$1" = stock ] || preload=$httpd_libs/libreap-apr.so
    if [ -n "${2:-}" ]; then export "${2?}"; fi
    httpd_start "$tmp" "$preload"
    [ -z "${2:-}" ] || unset "${2%%=*}"
}

# The process with the worker threads; the daemon of mod_cgid is a child of the server as well.
serving_child() {
    for pid in $(httpd_children); do
        [ "$(ls "/proc/$pid/task" 2>/dev/null | wc -l)" -lt 8 ] || echo "$pid"
    done
}

# --- one load ------------------------------------------------------------------------------------

# The command of a case and an amount.
load_of() {
    case $1 in
        h2) echo "h2load -c1 -m10 -n$2 http://127.0.0.1:$httpd_port/index.html" ;;
        keepalive) echo "$tool keepalive $httpd_port /index.html $2" ;;
        tls) echo "$tool tls $httpd_secure /index.html $2" ;;
        stream) echo "$tool download $httpd_port /back/stream/$2 0" ;;
        slow) echo "$tool download $httpd_port /back/stream/$2 2" ;;
        deflate) echo "$tool download $httpd_port /back/packed/stream/$2 0" ;;
        events) echo "$tool download $httpd_port /back/events/$2 0" ;;
        upload) echo "$tool upload $httpd_port /back/upload $2" ;;
        websocket) echo "$tool websocket $httpd_port /back/ws $2" ;;
        ssi-cgi) echo "$tool keepalive $httpd_port /cgi.shtml $2" ;;
        ssi-page) echo "$tool keepalive $httpd_port /page.shtml $2" ;;
    esac
}

possible() {
    case $1 in
        h2) ! lacks h2load h2 ;;
        tls) [ -s "$tmp/certificate.pem" ] ;; # said before
    esac
}

# client_of CASE AMOUNT [WATCHER...]
client_of() {
    load=$(load_of "$1" "$2")
    name=$1
    shift 2
    # shellcheck disable=SC2086  # words
    "$@" $load >"$tmp/client" 2>&1 || { cat "$tmp/client"; fail "$name"; }
    ! grep -E '[1-9][0-9]* (failed|errored|timeout)' "$tmp/client" || fail "$name: failed requests"
}

# measure CASE AMOUNT: sets grown and last, in KiB
measure() {
    client_of "$1" "$2" "$tool" watch "$(serving_child)" "$tmp/samples"
    answer=$("$tool" slope "$tmp/samples") || fail "$1: no figures"
    grown=${answer% *} last=${answer#* } measured=$2
}

# judge CASE AMOUNT: sets verdict, flat or grows
judge() {
    verdict=flat
    measure "$1" "$2"
    [ "$grown" -gt "$bound" ] || return 0
    echo "$1: $grown KiB, so with four times the load"
    measure "$1" $((4 * $2))
    [ "$grown" -le $((4 * bound)) ] || verdict=grows
}

# The growth as bytes for each of so many: of 7 in 10 of them, which come after the first figure.
each_of() { awk -v kib="$1" -v n="$2" 'BEGIN { printf "%.1f", kib * 1024 / (0.7 * n) }'; }

compare() {
    name=$1 amount=$(($2 * times)) unit=$3
    set --
    for pools in $beside reaps; do
        start_on $pools
        client_of "$name" $((amount / 10 + 1)) # all threads serve something
        if [ $pools = stock ]; then measure "$name" "$amount"; else judge "$name" "$amount"; fi
        [ -z "${GROWTH_KEEP:-}" ] || cp "$tmp/samples" "$GROWTH_KEEP/$name.$pools"
        httpd_stop
        set -- "$@" "$grown" "$(each_of "$grown" "$measured")" "$last"
    done
    row "$name" "$amount" "$@" "$unit"
    [ "$verdict" = flat ] || fail "$name: $grown KiB more on reaps in four times the load, and $((4 * bound)) are allowed"
    httpd_log_is_clean "$tmp" || fail "$name: the error log"
}

row() {
    printf '%-10s %8s ' "$1" "$2"
    shift 2
    [ -z "$beside" ] || { printf ' %7s %9s %8s ' "$1" "$2" "$3"; shift 3; }
    printf ' %7s %9s %8s  %s\n' "$@"
}

# Brigades that stay until their pool ends are what grows: then this test must see it, even in half the load.
growth_is_seen() {
    start_on reaps REAP_APR_BRIGADES=keep
    judge h2 20000
    httpd_stop
    [ "$verdict" = grows ] || fail "with REAP_APR_BRIGADES=keep only $grown KiB more: does this test see growth?"
    echo "with REAP_APR_BRIGADES=keep the HTTP/2 connection grows by $grown KiB in $measured requests"
}

# --- graceful restarts ---------------------------------------------------------------------------

# Children of the older generation may take a moment.
processes_are() {
    within 60 httpd_has "$1" || fail "restart: $(httpd_children | wc -l) processes and not $1"
}

# One a second while a client asks without a pause: it would end with the first answer that fails.
restart() {
    seconds=$1
    while [ "$seconds" -gt 0 ]; do
        kill -USR1 "$httpd_pid"
        sleep 1
        seconds=$((seconds - 1))
        kill -0 "$client" 2>/dev/null || fail "restart: $(cat "$tmp/client")"
    done
}

restarts() {
    set --
    for pools in $beside reaps; do
        start_on $pools
        before=$(httpd_children | wc -l)
        "$tool" ask "$httpd_port" /index.html >"$tmp/client" 2>&1 &
        client=$!
        sleep 0.5
        restart 4
        first=$(httpd_memory Anonymous "$httpd_pid")
        restart $((6 * times))
        last=$(httpd_memory Anonymous "$httpd_pid")
        kill "$client"
        wait "$client" || fail "restart: $(cat "$tmp/client")"
        processes_are "$before"
        httpd_stop
        grown=$((last - first))
        set -- "$@" "$grown" "$(each_of "$grown" $((6 * times)))" "$last"
    done
    row restart $((6 * times)) "$@" "restart, $(cat "$tmp/client") requests"
    [ "$grown" -le "$bound" ] || fail "restart: the main process has $grown KiB more, and $bound are allowed"
    httpd_log_is_clean "$tmp" || fail "restart: the error log"
}

# --- all of it -----------------------------------------------------------------------------------

chosen=" $* "
is_chosen() { case $chosen in '  ' | *" $1 "*) ;; *) return 1 ;; esac; }

make_certificate
httpd_free_port
httpd_secure=$httpd_port backend_port=$httpd_back
httpd_prepare "$tmp" event
make_site
configure >>"$tmp/httpd.conf"
python3 "$tool" backend "$backend_port" &
backend=$!
at_exit='kill $backend; httpd_end'
within 60 httpd_in_use "$backend_port" || fail "no server behind the proxy"
row '' amount ${beside:+KiB 'bytes of' 'KiB at'} KiB 'bytes of' 'KiB at' ''
row case '' ${beside:+stock 'each' 'the end'} reaps 'each' 'the end' each
while read -r name amount unit; do
    is_chosen "$name" && possible "$name" && compare "$name" "$amount" "$unit"
done <<END
$cases
END
! is_chosen restart || restarts
if is_chosen h2 && possible h2 >/dev/null; then growth_is_seen; fi
