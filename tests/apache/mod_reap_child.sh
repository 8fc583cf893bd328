#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Children that have more than ReapChildLimit end beside 3,000 requests of all kinds, under each MPM or the one named:
# no request fails, no connection is reset, and there is one such child at a time. CHILD_REQUESTS (3000; where
# REAP_TEST_SHORT is empty 20000) says how many.
. "${srcdir:-.}/tests/apache/mod_reap_lib.sh"

requests=${CHILD_REQUESTS:-3000} ends=2
[ -n "${CHILD_REQUESTS:-}" ] || [ -n "${REAP_TEST_SHORT-1}" ] || requests=20000 ends=8

check() { python3 -B "$srcdir/tests/apache/mod_reap_child.py" "$@" >"$tmp/said" 2>&1 || complain "$1"; }
url() { echo "http://127.0.0.1:$httpd_port"; }

# few MPM: two or four children, with room for one more
few() {
    case $1 in
        prefork) printf '%s\n' 'ServerLimit 12' 'StartServers 4' 'MinSpareServers 2' 'MaxSpareServers 6' 'MaxRequestWorkers 12' ;;
        *) printf '%s\n' 'ServerLimit 3' 'MinSpareThreads 60' 'MaxSpareThreads 120' 'MaxRequestWorkers 120' ;;
    esac
}

# prepare NAME LINES...
prepare() {
    name=$1
    shift
    reap_prepare "$tmp/$mpm-$name" "$mpm" 'ReapStatus On' 'KeepAliveTimeout 1' "$@"
    few "$mpm" >>"$dir/httpd.conf"
}

says='child [0-9]+ holds [0-9]+ bytes \([PR]SS\), over ReapChildLimit'

check_ends() {
    mode="$mpm, beside requests"
    prepare load 'ReapChildLimit 24M after 20'
    httpd_start "$dir" "$reaps"
    check load "$(url)" "$requests" "$ends"
    cat "$tmp/said"
    httpd_end_well
    lines=$(logged "$says 25165824, after [0-9]+ requests?; it ends when its requests have; largest pools: [a-z]+ [0-9]+.*; largest requests: .*(GET|POST) /runaway\?(leak=[12]|begin)&[a-z=0-9&]* [0-9]+" "$ends")
    [ "$lines" -ge "$ends" ] || complain "$lines lines in the log: $(grep -c "ReapChildLimit" "$dir/error.log")"
}

# Also on stock pools, and after a restart, at which the MPM opens its pipes anew.
check_idle() {
    mode="$mpm, an idle child"
    prepare idle 'ReapChildLimit 24M'
    httpd_start "$dir"
    kill -USR1 "$httpd_pid"
    sleep 1.5
    check idle "$(url)"
    ask '/reap-status?auto'
    [ "$(sed -n 's/^ReapChildrenEnded: //p' "$tmp/body")" -ge 1 ] || complain "ReapChildrenEnded: $body"
    ask '/reap-status?prometheus'
    grep -q '^reap_children_ended_total{why="ReapChildLimit"} [1-9]' "$tmp/body" || complain "reap_children_ended_total"
    [ "$(logged "$says.*largest pools: unknown; largest requests: unknown" 2)" -ge 2 ] || complain 'the lines on stock pools'
    httpd_end_well
}

# Whom it does not end: one that has not served enough; one that is as large at its start; anyone without the limit.
check_stays() {
    for limit in '24M after 1000000' none '9M'; do
        mode="$mpm, $limit"
        prepare "stays-${limit%% *}" "ReapChildLimit $limit"
        [ "$limit" != 9M ] || export RUNAWAY_LEAK=200
        httpd_start "$dir" "$reaps"
        unset RUNAWAY_LEAK
        within 60 httpd_has "$([ "$mpm" = prefork ] && echo 4 || echo 3)" # all have begun; 3: with the daemon of mod_cgid
        children=$(httpd_children)
        for _ in 1 2 3 4 5 6; do ask '/runaway?leak=400'; done
        sleep 2.5
        expect "$children" "$(httpd_children)" 'children'
        [ "$limit" != 9M ] || expect 1 "$(logged 'ReapChildLimit: no child is ended: a child has [0-9]+ bytes \([PR]SS\) when it begins, more than 9437184' 1)" 'the line'
        httpd_end_well
        expect 0 "$(grep -cE "$says" "$dir/error.log")" 'lines in the log'
    done
}

under() {
    mpm=$1
    check_ends
    check_idle
    check_stays
}
at_once under ${1:-event worker prefork}
exit $bad
