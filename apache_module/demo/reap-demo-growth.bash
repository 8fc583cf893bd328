# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2154  # variables of reap-demo
# reap-demo's part: what stock cannot do. Memory over the requests of one HTTP/2 connection, and a request that
# takes memory without end.

# Takes figures of a server until end_measure. A log of two bytes a request counts them.
begin_measure() {
    "$here/reap-demo-measure" memory "${server_pid[$1]}" "$dir/$1/count" >"$dir/memory.$1" &
    measure_pid=$!
}

end_measure() {
    kill "$measure_pid" 2>/dev/null
    wait "$measure_pid" 2>/dev/null
    measure_pid=''
}

h2_configuration() {
    printf '%s\n' 'Protocols h2c http/1.1' 'LogFormat 1 count' "CustomLog $dir/$1/count count"
}

# Leaves lines "seconds requests KB most" in memory.NAME.
run_connection() {
    local name=$1 pools=$2 url
    progress "$h2_requests requests on one HTTP/2 connection, $pools"
    start "$name" "$pools" event on http2 "$(h2_configuration "$name")"
    url=http://127.0.0.1:${server_port[$name]}/page.html
    timeout 30 h2load -c4 -m10 -n4000 "$url" >"$dir/load" 2>&1 || fail "h2load failed: $(tail -n 1 "$dir/load")"
    : >"$dir/$name/count"
    begin_measure "$name"
    [[ $pools == reaps ]] || fewer_on_a_slow_machine
    timeout 120 h2load -c1 -m10 -n"$h2_requests" "$url" >"$dir/load" 2>&1 &
    load_pid=$!
    wait "$load_pid" || fail "h2load failed on $url: $(tail -n 1 "$dir/load")"
    load_pid=''
    pause 0.3
    end_measure
    grep -q ", $h2_requests succeeded, 0 failed" "$dir/load" || fail "failed requests: $(grep ^requests: "$dir/load")"
    stop "$name"
}

# What would take more than half a minute on stock pools is shortened, and both have the same.
fewer_on_a_slow_machine() {
    local most
    most=$(awk '/^finished in / { print int($4 * 30 / 10000) * 10000 }' "$dir/load")
    ((most < 10000 || most >= h2_requests)) || h2_requests=$most
}

# --- a request that takes memory without end ---------------------------------------------------------
# Each line of the page sets a variable of 16 KB again: the memory is the request's until it ends.

make_runaway() {
    local i
    {
        echo '<!--#set var="text" value="sixteen letters." -->'
        # shellcheck disable=SC2016  # a variable of SSI
        for ((i = 0; i < 10; i++)); do echo '<!--#set var="text" value="$text$text" -->'; done
        # shellcheck disable=SC2016
        for ((i = 0; i < 40000; i++)); do
            echo '<!--#set var="last" value="$text" --><!--#include virtual="header.html" -->'
        done
    } >"$dir/site/runaway.shtml"
}

limit_configuration() {
    echo "LoadModule reap_module $dir/lib/mod_reap.so
ReapStatus On
ReapLimitRequest ${request_limit}M
ReapLimitAction close
<Location /reap-status>
    SetHandler reap-status
</Location>"
}

# run_runaway NAME stock|reaps [LINES]: leaves memory.NAME, latency.NAME, and answers.NAME of the runaway.
run_runaway() {
    local name=$1 pools=$2 at
    progress "a request without end, $pools, and $clients clients beside it for $runaway_seconds s"
    local server_memory=$((memory_of_server * 1024))
    start "$name" "$pools" event on "env ratelimit" "ThreadStackSize 262144
<Location /download>
    SetOutputFilter RATE_LIMIT
    SetEnv rate-limit 400
</Location>
${3-}"
    for _ in 1 2 3; do get "$name" /ssi.shtml >/dev/null; done
    begin_measure "$name"
    "$here/reap-demo-measure" latency "${server_port[$name]}" /download/file "$runaway_seconds" 3 >"$dir/downloads.$name" &
    downloads_pid=$!
    "$here/reap-demo-measure" latency "${server_port[$name]}" /page.html "$runaway_seconds" "$clients" \
        >"$dir/latency.$name" &
    load_pid=$!
    for at in $runaway_at; do
        "$here/reap-demo-measure" get "${server_port[$name]}" /runaway.shtml "$at" >"$dir/answer.$name.$at" &
    done
    wait "$load_pid"
    load_pid=''
    wait "$downloads_pid"
    downloads_pid=''
    end_measure
    wait_for_answers "$name"
    stop "$name"
}

# The last of them may still be about to break off.
wait_for_answers() {
    local at
    for at in $runaway_at; do
        for _ in {1..600}; do
            [[ -s $dir/answer.$1.$at ]] && break
            pause 0.1
        done
    done
}

slowest() { awk '$3 == 200 { print $2 }' "$dir/latency.$1" | sort -n | tail -n 1; }
answered() { awk '$3 == 200' "$dir/$1" | wc -l; } # latency.NAME or downloads.NAME
broken() { awk '$3 != 200' "$dir/$1" | wc -l; }
highest() { awk '$4 > most { most = $4 } END { print most }' "$dir/memory.$1"; }
# The most that the pools of a request beyond the limit held, in KB, as its server's log has it.
held_beyond() {
    sed -n 's,.* holds \([0-9]*\) bytes\, over ReapLimitRequest .*,\1,p' "$dir/$1/error.log" |
        awk '$1 > most { most = $1 } END { print int(most / 1024) }'
}
crashes() { grep -c 'exit signal' "$dir/$1/error.log"; }
