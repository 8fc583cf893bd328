#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Children that are killed, crash, or end by themselves in the midst of requests: log and page say for which of them,
# with the signal and the resident memory, or that none stands out. A handler of 300 MB of malloc's among thirty others
# is killed by the kernel at a control group's limit; where no group can be made, by this test.
. "${srcdir:-.}/tests/apache/mod_reap_lib.sh"
profile="$httpd_libs/libreap-malloc.so:$reaps:$httpd_libs/libreap-ask.so:$httpd_libs/libreap-profile.so"
few() {
    case $mpm in
        prefork) printf '%s\n' 'ServerLimit 36' 'StartServers 36' 'MinSpareServers 1' 'MaxSpareServers 36' 'MaxRequestWorkers 36' ;;
        *) printf '%s\n' 'ServerLimit 1' 'StartServers 1' ;; # one child has all of them
    esac
}
# start NAME [PRELOAD]: with thirty requests that stay
start() {
    name=$1 mode="$mpm, $1"
    reap_prepare "$tmp/$1" "$mpm" 'ReapStatus On' '<Location /runaway/hard>' 'ReapLimitHard 20M' '</Location>'
    few >>"$dir/httpd.conf"
    touch "$dir/htdocs/stay"
    httpd_start "$dir" "${2:-$reaps}"
    curl -s -Z --parallel-immediate --no-progress-meter --parallel-max 40 --max-time 300 -o "$tmp/others" "http://127.0.0.1:$httpd_port/runaway?begin&stay=100000&other=[1-30]" &
    others=$!
    within 60 serves 30 || complain "the others are not served"
}
serves() { curl -s "http://127.0.0.1:$httpd_port/reap-status?auto" >"$tmp/auto" && [ "0$(sed -n "s/^ReapRequests: //p" "$tmp/auto")" -gt "$1" ]; }
finish() {
    rm -f "$dir/htdocs/stay"
    wait $others
    httpd_stop
}
# fill QUERY: asks for what kills its child, and leaves the document of afterwards in $tmp/body
fill() {
    ask "/runaway$1"
    fresh_look
    ask '/reap-status?json' --retry 5 --retry-connrefused
    python3 -B "$srcdir/tests/apache/mod_reap_status.py" json "$tmp/body" >"$tmp/said" 2>&1 || complain "the document"
    python3 -c 'import json, sys; print(json.dumps(json.load(open(sys.argv[1]))["ended"][0]))' "$tmp/body" >"$tmp/end"
}
# end PATTERN...: what the page has of the child; line PATTERN: what the log has
end() { for each; do grep -qE "$each" "$tmp/end" || complain "$each: $(head -c 600 "$tmp/end")"; done; }
line() { expect 1 "$(logged "child [0-9]+ ended$1" 1)" "the line: $(grep 'in the midst' "$dir/error.log")"; }
told() { within 60 has "$1" "$dir/error.log" 'child [0-9]+ served GET /runaway' || complain "lines of requests: $(grep -c 'child [0-9]* served' "$dir/error.log")"; }

# A group with 200 MB for the children, who hold little of it yet; or whoever has 290 MB is killed here.
confine() {
    group=$(echo "/sys/fs/cgroup/memory$(sed -n 's/^[0-9]*:memory://p' /proc/self/cgroup)/reap-$$-$mpm-$name")
    if mkdir "$group" 2>/dev/null && echo 200M 2>/dev/null >"$group/memory.limit_in_bytes"; then
        for pid in "$httpd_pid" $(httpd_children); do echo "$pid" >"$group/cgroup.procs"; done
        return
    fi
    echo "skipped: no control group of memory can be made: $mode: the test kills the child"
    group=
    { within 60 kill_large; } &
}
kill_large() { for pid in $(httpd_children); do [ "$(awk '{ print $2 }' "/proc/$pid/statm")" -lt 71000 ] || kill -KILL "$pid"; done; ! kill -0 "$pid" 2>/dev/null; }
free_group() { [ -z "$group" ] || within 60 rmdir "$group" || complain "the group stays"; }
run_filled() {
    start filled "$1"
    confine
    fill '?leak=4800&begin&stay=100000&culprit'
    [ "$mpm" = prefork ] && n=1 || n=31
    line " in the midst of $n requests?, signal 9, with (1[5-9]|2[0-9]|3[0-9])[0-9]{4} kB resident at most; of them stands out GET /runaway\\?leak=4800&begin&stay=100000&culprit from 127.0.0.1"
    end '"why": "killed"' '"signal": 9,' '"rss": [1-3][0-9]{8},' '"largest": "GET /runaway\?leak=4800&begin&stay=100000&culprit from 127.0.0.1"' '"host": "127.0.0.1"'
    told $n
    finish
    free_group
}

# Nothing says which of them it was: the same growth in all, in no pool.
run_tie() {
    start tie
    : >"$tmp/large"
    curl -sN -o "$tmp/large" "http://127.0.0.1:$httpd_port/runaway?leak=900&begin&stay=100000" &
    within 60 has 1 "$tmp/large" begun
    kill -KILL $(for pid in $(httpd_children); do echo "$(cut -d ' ' -f 2 "/proc/$pid/statm") $pid"; done | sort -n | tail -n 1 | cut -d ' ' -f 2)
    fill '?small=1'
    line ' in the midst of 31 requests, signal 9, with [0-9]{5,} kB resident at most; none of them stands out'
    end '"why": "killed"' '"largest": null' '"bytes": null' '"ran": \[\{"bytes": [0-9]+, "request": "GET /runaway'
    told 31
    finish
}
run_hard() {
    start hard
    fill '/hard?quiet=1000'
    line ', for ReapLimitHard in the midst of [0-9]+ requests?, signal 6, .*; of them stands out GET /runaway/hard\?quiet=1000 from'
    end '"why": "ReapLimitHard"' '"signal": 6,' '"limit": 20971520,' '"bytes": 20971520,' '"largest": "GET /runaway/hard'
    finish
}
# A child that the kernel kills in the midst of a request; and requests that have ended are remembered.
run_victim() {
    mode="$mpm, victim" looks=0
    reap_prepare "$tmp/victim" "$mpm" "ReapStatus On"
    few >>"$dir/httpd.conf"
    httpd_start "$dir" "$reaps"
    touch "$dir/htdocs/stay"
    ask '/reap-status?json'
    ask '/runaway?quiet=64&begin&stay=20000&victim' &
    asked=$!
    ask '/runaway?quiet=1&begin&stay=20000&other' &
    other=$!
    within 60 victim_is_seen || complain "no request is seen"
    within 60 has "$looks" "$dir/access.log" '^/reap-status' || complain "looks go on"
    # Also where the last point is younger than five seconds, as after the look before these requests.
    python3 -c "import json; d = json.load(open('$tmp/seen')); assert d['history'][-1]['bytes'] >= d['totals']['bytes']" || complain "the curve does not see the requests"
    kill -KILL "$victim"
    rm "$dir/htdocs/stay"
    wait "$asked" "$other"
    expect 1 "$(logged "child $victim ended in the midst of (1 request|2 requests), signal 9, .*; of them stands out GET /runaway\\?quiet=64&begin&stay=20000&victim from 127.0.0.1" 1)" 'the line'
    ask '/reap-status?auto' --retry 5 --retry-connrefused
    ask '/runaway?quiet=100&n=1'
    again="http://127.0.0.1:$httpd_port/runaway?quiet=300&n=2" # of another host, and by the same child
    ask '/runaway?quiet=300&n=2' -H 'Host: one.test' "$again" --next -s -o "$tmp/other" -H 'Host: other.test'
    fresh_look
    expect 1 "$(sed -n 's/^ReapChildrenKilled: //p' "$tmp/auto")" ReapChildrenKilled
    ask '/reap-status?json'
    grep -q '"largest":\[{"pid":[0-9]*,"t":[0-9]*,"peak":[0-9]*,"method":"GET","uri":"/runaway?quiet=300[^}]*},{[^}]*"/runaway?quiet=300' "$tmp/body" || complain "largest: $(grep -o '"largest".\{300\}' "$tmp/body")"
    httpd_stop
}
# The victim is a child with both requests, or with that one. A look that has found it may be within it still, until its line is logged.
victim_is_seen() {
    looks=$((looks + 1))
    curl -s "http://127.0.0.1:$httpd_port/reap-status?json" >"$tmp/seen"
    victim=$(grep -o '{"pid":[0-9]*,"method":"GET","uri":"/runaway?quiet=64[^}]*' "$tmp/seen" | sed 's/{"pid":\([0-9]*\),.*/\1/')
    [ -n "$victim" ]
}

under() {
    mpm=${1%-*}
    case $1 in
        *-filled) run_filled ;;
        *-profiled) run_filled "$profile" ;;
        *) "run_${1#*-}" ;;
    esac
}
export REAP_PROFILE="$tmp/at-exit"
at_once under ${1:-event-profiled prefork-filled event-tie event-hard prefork-hard event-victim prefork-victim}
exit $bad
