#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Requests that take memory for ever, beside others that must not notice: under each MPM (or the one named), each
# action and both kinds of limit; over HTTP/1.1, and over HTTP/2 where only the stream may end.
. "${srcdir:-.}/tests/apache/mod_reap_lib.sh"

# --- the others ---------------------------------------------------------------------------------------

others_begin() {
    curl -s -Z --no-progress-meter --parallel-max 4 -o /dev/null -w '%{http_code} %{errormsg}\n' --max-time 100 \
        "http://127.0.0.1:$httpd_port/page.txt?[1-1500]" >"$tmp/others" 2>&1 &
    others=$!
}

others_end() {
    wait "$others"
    [ "$(grep -c '^200 ' "$tmp/others")" = 1500 ] ||
        complain "others failed: $(sort "$tmp/others" | uniq -c | head -n 5)"
}

# --- what holds of every action -------------------------------------------------------------------

# What the pools of requests and connections hold: each child has the others from its start, and children may start late.
pool_bytes() {
    fresh_look
    sed -nE 's/^ReapTag "(.*)": ([0-9]+) bytes.*/\1 \2/p' "$tmp/auto" |
        awk '$1 !~ /^(process|pconf|plog|ptemp|pchild|proxy_.*)$/ { sum += $NF } END { print sum + 0 }'
}

# Nothing of a runaway's memory is left: each of them has taken 4 MiB. A connection that is kept open has some, each
# child once it has served, and each worker of HTTP/2 (24 KiB in three pools). httpd ends a connection that it broke
# off a while after the client has seen its end, so the look is repeated.
memory_is_back() {
    for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
        after=$(pool_bytes)
        [ "$after" -lt $((before + 2500000 + 25000 * $(httpd_children | wc -l))) ] && return
        sleep 1
    done
    complain "pools hold $after bytes afterwards, $before before: $(grep '^ReapTag' "$tmp/auto" | head -n 8 | tr '\n' ';')"
}

# The peak of each request, from the access log: the limit, and what one piece and its chunk add.
peaks_below() {
    awk -v most="$1" '/^\/runaway\?(grow|below|read)/ { sub(".*peak=", ""); n++; if ($0 + 0 > most) { print "peak " $0; bad = 1 } }
        END { if (!n) print "no peaks"; exit bad || !n }' "$dir/access.log" >"$tmp/peaks" || complain "$(cat "$tmp/peaks")"
}

# notes REGEXP N: the note reap-limit in the access log, which has a line once the connection is done
notes() {
    within 60 has "$2" "$dir/access.log" " limit=$1 "
    expect "$2" "$(grep -cE " limit=$1 " "$dir/access.log")" "notes $1"
}

# --- each action -------------------------------------------------------------------------------------
# A response that has begun can only break off: 18 is curl's word for a part that is missing, 56 for a reset.

check_log() {
    for query in 'grow=200' 'below=200' 'quiet=200'; do
        ask "/runaway?$query"
        expect 200 "$status"
        expect done "$(tail -n 1 "$tmp/body")" "$query goes on"
    done
    expect 3 "$(logged 'over ReapLimitRequest 4194304 \(goes on\); largest pools: ' 3)" 'entries in the log'
    notes '[^-].*' 0
    expect 1 "$(logged 'largest pools: runaway-subpool [0-9]+, request [0-9]+' 1)" 'largest tags'
}

# Also says whether a response, begun or not, is whole.
broken() { case $result in 18 | 52 | 55 | 56) ;; *) complain "$path: curl ended with $result, status $status" ;; esac; }

check_deny() {
    ask '/runaway?quiet=200'
    expect 500 "$status"
    ask '/runaway/elsewhere?quiet=200'
    expect 503 "$status"
    ask '/early/page.txt?200'
    expect 500 "$status"
    ask '/runaway?read' -T /dev/zero
    expect 413 "$status"
    ask '/runaway/unlimited?quiet=200'
    expect done "$body"
    ask '/runaway?read' --data-binary "@$dir/htdocs/large.txt"
    expect "$(printf 'read 588895\ndone')" "$body"
    check_endless
    expect 4 "$(logged 'over ReapLimitRequest 4194304 \(denied\); largest pools: ' 4)" 'entries in the log'
    expect 2 "$(logged 'over ReapLimitRequest 4194304 \(connection closed\); largest pools: ' 2)" 'entries in the log'
    notes denied 4
    notes closed 2
}

check_close() {
    for query in '/runaway?quiet=200' '/early/page.txt?200'; do
        ask "$query"
        expect 000 "$status"
        expect 52 "$result" "$query: an answer"
    done
    ask '/runaway?read' -T /dev/zero
    broken
    check_endless
    expect 5 "$(logged 'over ReapLimitRequest 4194304 \(connection closed\); largest pools: ' 5)" 'entries in the log'
    notes denied 0
    notes closed 5
}

# These would take 64 GiB, and have begun to answer.
check_endless() {
    ask '/runaway?grow=1000000'
    broken
    ask '/runaway?below=1000000'
    broken
}

# Only the stream ends: the others of its connection, and those that come after, have their answers.
check_streams() {
    {
        for i in 1 2 3 4 5 6 7 8 9; do echo "http://127.0.0.1:$httpd_back/page.txt?$i"; done
        echo "http://127.0.0.1:$httpd_back/runaway?$1"
    } >"$tmp/urls"
    h2load -n 200 -c 1 -m 10 -i "$tmp/urls" >"$tmp/h2load" 2>&1
    grep -q "^status codes: $2\$" "$tmp/h2load" || complain "streams beside ?$1: $(grep -E '^(requests|status)' "$tmp/h2load")"
}

check_http2() {
    ! lacks h2load "streams beside a runaway" || return
    case $action in
        log) check_streams quiet=100 '200 2xx, 0 3xx, 0 4xx, 0 5xx' ;;
        deny) check_streams quiet=100 '180 2xx, 0 3xx, 0 4xx, 20 5xx' ;;
        close) check_streams quiet=100 '180 2xx, 0 3xx, 0 4xx, 0 5xx' ;;
    esac
    # What begins to answer and is broken off counts as answered, or not, by chance; the others must be there.
    [ "$action" = log ] || check_streams grow=10000 '1[89][0-9] 2xx, 0 3xx, 0 4xx, 0 5xx\|200 2xx, 0 3xx, 0 4xx, 0 5xx'
}

run() {
    mpm=$1 action=$2 mode="$1, $2"
    reap_prepare "$tmp/$mpm-$action" "$mpm" 'ReapStatus On' 'ReapLimitRequest 4M' "ReapLimitAction $action" \
        '<Location /runaway/unlimited>' 'ReapLimitRequest none' '</Location>' \
        '<Location /runaway/elsewhere>' 'ReapLimitAction deny 503' '</Location>'
    httpd_start "$dir" "$reaps"
    before=$(pool_bytes)
    children=$(httpd_children)
    others_begin
    "check_$action"
    others_end
    [ "$mpm" = prefork ] || check_http2
    memory_is_back
    for child in $children; do kill -0 "$child" 2>/dev/null || complain "child $child has ended"; done
    httpd_end_well
}

# --- connections ---------------------------------------------------------------------------------------

run_connection() {
    mpm=$1 mode="$1, connection"
    reap_prepare "$tmp/$mpm-connection" "$mpm" 'ReapStatus On' 'ReapLimitConnection 4M' 'ReapReport limit'
    httpd_start "$dir" "$reaps"
    before=$(pool_bytes)
    ask '/runaway?quiet=200'
    expect 500 "$status"
    expect 1 "$(logged 'over ReapLimitConnection 4194304 \(denied\)' 1)" 'entries in the log'
    notes denied 1
    ask '/runaway?quiet=200&again'
    expect 2 "$(logged 'over ReapLimitConnection 4194304 \(denied\)' 2)" 'entries in the log'
    expect 1 "$(logged 'child [0-9]+: the largest reaps: request of GET /runaway\?quiet=200[^ ]* [0-9]+, [a-z]+ [0-9]+' 1)" 'the largest reaps, once a minute'
    fresh_look
    ask '/reap-status?prometheus'
    for line in 'reap_over_limit_total{limit="ReapLimitConnection",action="deny"} 2' 'reap_over_limit_total{limit="ReapLimitRequest",action="deny"} 0' \
        "reap_limit_bytes{limit=\"ReapLimitConnection\",where=\"\",host=\"\",at=\"$dir/httpd.conf:[0-9]*\"} 4194304"; do
        grep -q "^$line\$" "$tmp/body" || complain "Prometheus: $line"
    done
    expect 2 "$(logged 'pool +request [0-9]+ bytes, [0-9]+ live in [0-9]+ objects' 1)" 'the report'
    memory_is_back
    httpd_end_well
}

# Of forty streams the one that holds most is denied, though it is looked at last, and no other is.
run_largest() {
    [ "$1" != prefork ] || return 0
    ! lacks h2load "the largest of many streams" || return 0
    mpm=$1 mode="$1, the largest stream"
    reap_prepare "$tmp/$mpm-largest" "$mpm" 'ReapStatus On' 'ReapLimitConnection 5M'
    httpd_start "$dir" "$reaps"
    {
        echo "http://127.0.0.1:$httpd_back/runaway?quiet=60&sleep=700&send=2"
        for i in $(seq 39); do echo "http://127.0.0.1:$httpd_back/runaway?small=30&sleep=$((100 + 20 * i))&send=20&$i"; done
    } >"$tmp/urls"
    h2load -n 40 -c 1 -m 40 -i "$tmp/urls" >"$tmp/h2load" 2>&1
    grep -q '^status codes: 39 2xx, 0 3xx, 0 4xx, 1 5xx$' "$tmp/h2load" || complain "forty streams: $(grep -E '^(requests|status)' "$tmp/h2load")"
    expect 1 "$(logged 'GET /runaway\?quiet=60.* over ReapLimitConnection 5242880 \(denied\)' 1)" 'the line of the largest'
    expect 1 "$(grep -c 'over ReapLimitConnection' "$dir/error.log")" 'lines of all'
    httpd_end_well
}

# Where two streams that say nothing hold far more than the limit, none of those beside them pays for it.
run_small() {
    [ "$1" != prefork ] && ! lacks h2load "small streams beside large ones" || return 0
    mpm=$1 mode="$1, small streams"
    reap_prepare "$tmp/$mpm-small" "$mpm" 'ReapStatus On' 'ReapLimitConnection 6M'
    httpd_start "$dir" "$reaps"
    for i in 1 2 3 4 5 6 7 8; do echo "http://127.0.0.1:$httpd_back/runaway?small=1&send=3&s=$i"; done >"$tmp/urls"
    for i in 1 2; do echo "http://127.0.0.1:$httpd_back/runaway?quiet=200&sleep=${i}00&large&send=3"; done >>"$tmp/urls"
    h2load -n 120 -c 1 -m 10 -i "$tmp/urls" >"$tmp/h2load" 2>&1
    within 60 has 120 "$dir/access.log" '^/runaway'
    expect '96 of 24' "$(grep -c 'small=1.* 200 ' "$dir/access.log") of $(grep -c large "$dir/access.log")" 'small streams'
    [ "$(logged 'GET /runaway.quiet=200&sleep=.00&large.* holds [12][0-9]{7} of its connection.s [0-9]{8,} bytes, over ReapLimitConnection 6291456 .denied' 1)" -ge 1 ] || complain "lines of the large: $(grep -c 'over ReapLimit' "$dir/error.log")"
    expect 0 "$(grep -c 'small=1.*over ReapLimit' "$dir/error.log")" 'lines of the small'
    httpd_end_well
}

# --- the hard limit --------------------------------------------------------------------------------------
# A handler that passes nothing and asks nothing ends only so, and its child with it. So does a page of mod_include that
# doubles a variable, here to 64 MiB: all of it comes between two looks.

run_hard() {
    mode="$1, hard limit"
    reap_prepare "$tmp/$1-hard" "$1" 'ReapStatus On' 'ReapLimitRequest 4M' '<LocationMatch "^/runaway/hard|^/double">' 'ReapLimitHard 8M' '</LocationMatch>'
    httpd_start "$dir" "$reaps"
    ask '/runaway/hard?quiet=100'
    expect 500 "$status" 'between soft and hard' # 6.5 MB
    ask '/runaway?by=puts&deaf&grow=400' # the client has its page, and the handler goes on
    expect 1 "$(logged 'GET /runaway\?by=puts&deaf&grow=400 went on after it was ended for its limit, to [2-9][0-9]{7} bytes' 1)" 'the line'
    ask '/runaway/hard?quiet=1000000'
    broken
    hard='wants [0-9]+ bytes more, over ReapLimitHard 8388608; this child ends'
    expect 1 "$(logged "GET /runaway/hard\?quiet=1000000 from 127.0.0.1 $hard" 1)" 'the line'
    echo '<!--#set var="x" value="0123456789abcdef" -->' >"$dir/htdocs/double.shtml"
    for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22; do
        # shellcheck disable=SC2016  # mod_include's
        echo '<!--#set var="x" value="${x}${x}" -->'
    done >>"$dir/htdocs/double.shtml"
    ask /double.shtml --retry 5 --retry-connrefused
    broken
    expect 1 "$(logged "GET /double.shtml from 127.0.0.1 $hard" 1)" 'the line'
    ask /page.txt --retry 5 --retry-connrefused
    expect 200 "$status"
    fresh_look
    expect 2 "$(sed -n 's/^ReapOverHard: //p' "$tmp/auto")" 'children that the hard limit ended'
    expect 2 "$(sed -n 's/^ReapOverLimit: //p' "$tmp/auto")" 'requests beyond the soft limit'
    httpd_stop
}

# No memory, and no hard limit that refused any: half a gigabyte of addresses, and the request wants 1.3.
run_out() {
    mode="$1, no memory"
    reap_prepare "$tmp/$1-out" "$1" 'ReapStatus On' 'ReapLimitHard 2G' 'ThreadStackSize 262144'
    ulimit -S -v 501200
    httpd_start "$dir" "$reaps"
    ulimit -S -v unlimited
    ask '/runaway?quiet=20000'
    broken
    expect 1 "$(logged 'no memory for GET /runaway\?quiet=20000 from 127.0.0.1; this child ends' 1)" 'the line'
    expect 1 "$(logged 'child [0-9]+: the largest reaps: request of GET /runaway\?quiet=20000 [0-9]+, ' 1)" 'the largest reaps'
    ask /page.txt --retry 5 --retry-connrefused
    fresh_look
    expect 0 "$(sed -n 's/^ReapOverHard: //p' "$tmp/auto")" 'children that the hard limit ended'
    httpd_stop
}

# --- the page itself -------------------------------------------------------------------------------------
# An administrator who denies everything by mistake finds out there.

run_page() {
    mode="$1, the page under a limit"
    for limit in ReapLimitRequest ReapLimitConnection; do
        reap_prepare "$tmp/$1-$limit" "$1" 'ReapStatus On' "$limit 100" '<Location /runaway/allowed>' 'ReapLimitRequest none' '</Location>'
        httpd_start "$dir" "$reaps"
        for form in '' '?json' '?auto' '?prometheus'; do
            ask "/reap-status$form"
            expect 200 "$status" "$limit of 100 bytes, reap-status$form"
        done
        for path in /page.txt /reap-status/../page.txt '/runaway?send=1'; do
            ask "$path" --path-as-is
            expect 500 "$status" "$limit of 100 bytes, $path"
        done
        ask '/runaway/allowed?send=1'
        [ "$limit" != ReapLimitRequest ] || expect 200 "$status" 'a section without a limit'
        httpd_end_well
    done
}

under() {
    for action in log deny close; do
        run "$1" "$action"
        [ "$action" = log ] || peaks_below 5000000
    done
    run_connection "$1"
    run_largest "$1"
    run_small "$1"
    run_hard "$1"
    run_out "$1"
    run_page "$1"
}
at_once under ${1:-event worker prefork}
exit $bad
