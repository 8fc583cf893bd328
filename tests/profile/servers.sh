#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The heap profile of servers under load: an Apache with its pools on reaps, and PostgreSQL if it is there. Sums of the
# profile are those of reap-ask's tags, of reap-status and of the backend's statistics, within sampling's error
# (servers.py); its pictures have boxes of the pools and functions. With PROFILE_KEEP=DIR the pictures stay there.
. "${srcdir:-.}/tests/apache/mod_reap_lib.sh"
need_file "$httpd_libs/libreap-profile.so" libreap-profile
ask_process=$build/tools/ask/reap-ask
bytes=${PROFILE_BYTES:-512}
REAP_OPTIONS=ask=@reap.%p REAP_PROFILE_BYTES=$bytes
export REAP_OPTIONS REAP_PROFILE_BYTES

compared() { python3 -B "$srcdir/tests/profile/servers.py" "$1" "$bytes" "$2" || complain "the sums of $1"; }
# picture FILE PATTERN...: it is well formed, and has boxes of these.
picture() {
    python3 -c 'import sys, xml.etree.ElementTree as x; x.parse(sys.argv[1])' "$1" || complain "$1 is no SVG"
    [ -z "${PROFILE_KEEP:-}" ] || cp "$1" "$PROFILE_KEEP"
    picture=$1
    shift
    for pattern; do grep -q "<title>$pattern" "$picture" || complain "$picture has no box of $pattern"; done
}

# --- Apache ---------------------------------------------------------------------------------------------
mode=apache
reap_prepare "$tmp/site" event "ReapStatus On" "ServerLimit 1" "StartServers 1" "MinSpareThreads 1" \
    "MaxSpareThreads 40" "MaxRequestWorkers 40"
looks=$tmp/looks
mkdir "$looks"
export REAP_PROFILE="$tmp/at-exit"
httpd_start "$dir" "$httpd_libs/libreap-malloc.so:$httpd_libs/libreap-apr.so:$httpd_libs/libreap-ask.so:$httpd_libs/libreap-profile.so"
unset REAP_PROFILE
# The one that serves has threads.
child=$(for process in $(httpd_children); do echo "$(find /proc/"$process"/task -mindepth 1 -maxdepth 1 | wc -l) $process"; done | sort -n | sed -n '$s/.* //p')

look() {
    "$ask_process" "$child" tags >"$looks/$1.before" && "$ask_process" "$child" profile >"$looks/$1.profile" &&
        "$ask_process" "$child" usage >"$looks/$1.usage" && "$ask_process" "$child" tags >"$looks/$1.after" || fail "no look"
}

# A long index; then twelve requests that hold 400 objects of 1000 bytes and 64 KiB each, while others come and go.
sleep 1 # the server's start is over
look 0
curl -s "http://127.0.0.1:$httpd_port/big/" >/dev/null
clients=
touch "$dir/htdocs/stay"
for _ in $(seq 12); do
    curl -s "http://127.0.0.1:$httpd_port/runaway?small=400&quiet=1&stay=60000" >/dev/null &
    clients="$clients $!"
done
touch "$tmp/work"
for page in all.shtml page.txt; do
    while [ -e "$tmp/work" ]; do curl -s "http://127.0.0.1:$httpd_port/$page" >/dev/null || break; done &
    clients="$clients $!"
done
sleep 2
for i in 1 2 3 4; do
    look $i
    [ $i != 2 ] || curl -s "http://127.0.0.1:$httpd_port/reap-status?json" >"$looks/status"
done
"$ask_process" "$child" profile flames >"$tmp/apache.svg" || complain "no picture"
"$ask_process" "$child" profile flames allocated >"$tmp/apache-allocated.svg" || complain "no picture of all"
rm -f "$tmp/work" "$dir/htdocs/stay"
# shellcheck disable=SC2086  # they are several
wait $clients
sleep 1 # the server has closed its connections
look 5
httpd_end_well
compared apache "$looks"
picture "$tmp/apache.svg" 'request: ' 'pconf: ' 'malloc: ' ap_run_handler 'handler'
picture "$tmp/apache-allocated.svg" 'subrequest: ' ap_run_handler

# --- PostgreSQL -----------------------------------------------------------------------------------------
mode=postgres
bin=
for place in /usr/lib/postgresql/*/bin; do [ ! -x "$place/postgres" ] || bin=$place; done
if [ -n "$bin" ] && { [ "$(id -u)" != 0 ] || id postgres >/dev/null 2>&1; }; then
    # It refuses to be root's; its user may not see where this is built.
    as=
    [ "$(id -u)" != 0 ] || as='setpriv --reuid=postgres --regid=postgres --clear-groups'
    mkdir "$tmp/pg" "$tmp/pg/looks" "$tmp/libs"
    cp "$httpd_libs/libreap-malloc.so" "$httpd_libs/libreap-ask.so" "$httpd_libs/libreap-profile.so" "$tmp/libs"
    [ -z "$as" ] || chown postgres:postgres "$tmp/pg"
    at=$tmp/pg
    $as "$bin/initdb" -D "$at/data" -A trust -N >"$tmp/initdb" 2>&1 || fail "initdb: $(cat "$tmp/initdb")"
    $as env LD_PRELOAD="$tmp/libs/libreap-malloc.so $tmp/libs/libreap-ask.so $tmp/libs/libreap-profile.so" \
        REAP_PROFILE="$at/at-exit" "$bin/postgres" -D "$at/data" -k "$at" -h '' -F >"$tmp/postgres" 2>&1 &
    httpd_pid=$! # ended at exit, as the server before
    within 30 $as "$bin/pg_isready" -q -h "$at" || fail "PostgreSQL does not answer: $(cat "$tmp/postgres")"
    $as "$bin/pgbench" -q -h "$at" -i -s 1 postgres >"$tmp/pgbench" 2>&1 || fail "pgbench: $(cat "$tmp/pgbench")"
    $as "$bin/pgbench" -h "$at" -T 6 -c 2 postgres >"$tmp/pgbench" 2>&1 &
    client=$!
    sleep 2
    for process in $(httpd_children); do
        "$ask_process" "$process" profile >"$at/looks/$process.profile" && "$ask_process" "$process" usage >"$at/looks/$process.usage" ||
            rm -f "$at/looks/$process".*
        case $(tr '\0' ' ' <"/proc/$process/cmdline") in
            *'[local]'*) "$ask_process" "$process" profile flames >"$tmp/postgres.svg" ;;
        esac
    done
    wait $client || complain "pgbench: $(cat "$tmp/pgbench")"
    kill -INT $httpd_pid
    wait $httpd_pid || complain "PostgreSQL ends with status $?"
    httpd_pid=
    ! grep -E '^(reap: |ERROR: ld.so)' "$tmp/postgres" || complain "PostgreSQL's log"
    compared malloc "$at/looks"
    picture "$tmp/postgres.svg" 'malloc: ' PostgresMain palloc
else
    absent postgres "or no user of its own: PostgreSQL"
fi
exit $bad
