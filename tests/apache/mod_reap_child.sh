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
    lines=$(logged "$says 25165824, after [0-9]+ requests; it ends when its requests have; largest pools: [a-z]+ [0-9]+.*; largest requests: .*(GET|POST) /runaway\?(leak=[12]|begin)&[a-z=0-9&]* [0-9]+" "$ends")
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

# A child that the kernel kills in the midst of a request; and requests that have ended are remembered.
check_killed() {
    mode="$mpm, killed" looks=0
    prepare killed "ReapLimitRequest none"
    httpd_start "$dir" "$reaps"
    ask '/runaway?quiet=100&n=1'
    again="http://127.0.0.1:$httpd_port/runaway?quiet=300&n=2" # of another host, and by the same child
    ask '/runaway?quiet=300&n=2' -H 'Host: one.test' "$again" --next -s -o "$tmp/other" -H 'Host: other.test'
    touch "$dir/htdocs/stay"
    ask '/runaway?quiet=64&begin&stay=20000&victim' &
    asked=$!
    ask '/runaway?quiet=1&begin&stay=20000&other' &
    other=$!
    within 60 victim_is_seen || complain "no request is seen"
    within 60 has "$looks" "$dir/access.log" '^/reap-status' || complain "looks go on"
    kill -KILL "$victim"
    rm "$dir/htdocs/stay"
    wait "$asked" "$other"
    expect 1 "$(logged "child $victim ended in the midst of [12] requests, the largest of them GET /runaway\\?quiet=64&begin&stay=20000&victim from 127.0.0.1; it held [0-9]+ bytes" 1)" 'the line'
    ask '/reap-status?auto' --retry 5 --retry-connrefused
    fresh_look
    expect 1 "$(sed -n 's/^ReapChildrenKilled: //p' "$tmp/auto")" ReapChildrenKilled
    ask '/reap-status?json'
    python3 -B "$srcdir/tests/apache/mod_reap_status.py" json "$tmp/body" >"$tmp/said" 2>&1 || complain "the document"
    grep -q "\"ended\":\[{\"pid\":$victim,\"t\":[0-9]*,\"why\":\"killed\",.*\"largest\":\"GET /runaway?quiet=64&begin\|\"largest\":\"GET /runaway?quiet=64.u0026begin" "$tmp/body" || complain "ended: $(grep -o '"ended".\{300\}' "$tmp/body")"
    grep -q '"largest":\[{"pid":[0-9]*,"t":[0-9]*,"peak":[0-9]*,"method":"GET","uri":"/runaway?quiet=300[^}]*},{[^}]*"/runaway?quiet=300' "$tmp/body" || complain "largest: $(grep -o '"largest".\{300\}' "$tmp/body")"
    httpd_stop
}
# The victim is a child with both requests, or with that one. A look that has found it may be within it still, until its line is logged.
victim_is_seen() {
    looks=$((looks + 1))
    victim=$(curl -s "http://127.0.0.1:$httpd_port/reap-status?json" | grep -o '{"pid":[0-9]*,"method":"GET","uri":"/runaway?quiet=64[^}]*' | sed 's/{"pid":\([0-9]*\),.*/\1/')
    [ -n "$victim" ]
}

under() {
    mpm=$1
    check_ends
    check_idle
    check_stays
    check_killed
}
at_once under ${1:-event worker prefork}
exit $bad
