#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# reap-status in a private httpd, under each MPM or the one named: its forms, whether they add up, also under load and
# restarts; without the preload; where it is off; a child that does not answer.
. "${srcdir:-.}/tests/apache/mod_reap_lib.sh"

check() { python3 -B "$srcdir/tests/apache/mod_reap_status.py" "$@" >"$tmp/said" 2>&1 || complain "$(cat "$tmp/said")"; }
url() { echo "http://127.0.0.1:$httpd_port"; }

# --- forms -------------------------------------------------------------------------------------------

check_forms() {
    for form in json auto prometheus; do
        ask "/reap-status?$form"
        expect 200 "$status"
        expect no-store "$(header cache-control)"
        check $form "$tmp/body"
        [ $form != prometheus ] || for name in $(grep -ho 'reap_[a-z_]*' "$srcdir/doc/examples/alerts.yml" "$srcdir/doc/examples/dashboard.json"); do
            [ $name = reap_malloc_bytes ] || grep -q "^# TYPE $name " "$tmp/body" || complain "doc/examples have $name, and we have not"
        done
        ask "/reap-status?$form" -I
        expect 200 "$status" "HEAD of $form"
        [ "$(header content-length)" -gt 500 ] || complain "HEAD of $form: no length"
    done
    for query in '' '?' '?jso' '?JSON' '?refresh=5' "?$(printf '%07000d' 0)" '?json%00' '?%s%n%d'; do
        ask "/reap-status$query"
        expect 200 "$status" "$(printf %.20s "$query")"
        expect 'text/html; charset=utf-8' "$(header content-type)"
        expect "$(($(wc -c <"$srcdir/apache_module/mod_reap/reap-status.html") + $(grep -cE '<(style|script)>' \
            "$srcdir/apache_module/mod_reap/reap-status.html") * 41))" "$(wc -c <"$tmp/body")" 'bytes of the page'
    done
    for query in '?json&x=1' '?json=2'; do
        ask "/reap-status$query"
        expect application/json "$(header content-type)" "$query"
    done
    ask /reap-status
    nonce=$(header content-security-policy | sed "s/.*script-src 'nonce-\([0-9a-f]*\)'.*/\1/")
    ask /reap-status
    again=$(header content-security-policy | sed "s/.*script-src 'nonce-\([0-9a-f]*\)'.*/\1/")
    { [ ${#nonce} = 32 ] && [ "$nonce" != "$again" ]; } || complain "nonces: '$nonce', '$again'"
    expect 2 "$(grep -cE "<(style|script) nonce=\"$again\">" "$tmp/body")" 'elements with the nonce'
    for method in POST PUT DELETE PATCH; do
        ask /reap-status -X $method -d x
        expect 405 "$status" $method
        header allow | grep -q GET || complain "$method: no Allow header"
    done
    ask "/reap-status?$(printf '%09000d' 0)"
    expect 414 "$status" 'a huge query'
}

# What other modules show.
check_elsewhere() {
    ask '/server-status?auto'
    expect 1 "$(grep -cE '^ReapPoolBytes: [0-9]+$' "$tmp/body")" 'server-status?auto'
    ask /server-status
    expect 1 "$(grep -c 'Pools on reaps' "$tmp/body")" server-status
    ask '/runaway?quiet=100'
    within 60 has 1 "$dir/access.log" '^/runaway\?quiet=100 .*peak='
    ask /page.txt
    within 60 has 1 "$dir/access.log" '^/page.txt .*peak='
    peak=$(sed -n 's,^/runaway?quiet=100 .*peak=,,p' "$dir/access.log")
    [ "${peak:-0}" -gt 6553600 ] || complain "the peak in the access log: '$peak'"
    peak=$(sed -n 's,^/page.txt .*peak=,,p' "$dir/access.log" | tail -n 1)
    { [ "${peak:-0}" -gt 8000 ] && [ "$peak" -lt 100000 ]; } || complain "the peak of a file: '$peak'"
}

# A child that is stopped is silent, and costs no more than a second.
check_silent() {
    [ "$mpm" != prefork ] || return 0 # any child may have the request
    children=$(httpd_children)
    # A worker that is stopped with the lock for connections leaves none to the other: once more then.
    for child in $children $children $children; do
        kill -STOP "$child"
        shows_silent "$child" && silent=yes || silent=no
        kill -CONT "$child"
        [ $silent = no ] || return 0
    done
    complain "no child was shown as silent"
}

# A look is good for a while.
shows_silent() {
    for _ in 1 2 3 4; do
        ask '/reap-status?json' --max-time 4
        [ "$result" = 0 ] || return 1
        ! grep -q "\"pid\":$1,.[^}]*\"state\":\"silent\"" "$tmp/body" || return 0
        sleep 0.6
    done
    return 1
}

# --- under load ------------------------------------------------------------------------------------------

check_load() {
    curl -s -Z --no-progress-meter --parallel-max 4 -o /dev/null -w '%{http_code} %{errormsg}\n' --max-time 100 \
        "$(url)/runaway?below=3&n=[1-1500]" >"$tmp/others" 2>&1 &
    others=$!
    (
        for _ in 1 2 3; do
            sleep 0.8
            kill -USR1 "$httpd_pid"
        done
    ) &
    restarts=$!
    check load "$(url)/reap-status" "$1" 6
    cat "$tmp/said"
    wait "$restarts"
    wait "$others"
    expect 1500 "$(grep -c '^200 ' "$tmp/others")" "requests beside status requests and restarts"
}

# --- all of it --------------------------------------------------------------------------------------------

run() {
    mpm=$1 mode="$1, preloaded"
    reap_prepare "$tmp/$mpm" "$mpm" 'ReapStatus On' 'ReapReport exit' 'MaxConnectionsPerChild 0' \
        '<Location /runaway/limited>' 'ReapLimitRequest 1M' '</Location>' \
        "<VirtualHost 127.0.0.1:$httpd_back>" 'ServerName off' 'ReapStatus Off' 'ReapLimitConnection 900M' '</VirtualHost>' \
        "<VirtualHost 127.0.0.1:$httpd_back>" 'ServerName shop.example' 'ReapLimitRequest 800M' '</VirtualHost>' \
        "<VirtualHost 127.0.0.1:$httpd_back>" 'ReapLimitRequest 700M' 'ServerName shop.example' '</VirtualHost>'
    sed -i "s/^<VirtualHost 127.0.0.1:0>/<VirtualHost 127.0.0.1:$httpd_back>/" "$dir/httpd.conf"
    httpd_start "$dir" "$reaps"
    check_forms
    check system "$(url)" "$dir/htdocs"
    cat "$tmp/said"
    check live "$(url)" "$dir/htdocs"
    check limits "$(url)"
    [ "$mpm" != event ] || check curve "$(url)" "$dir/htdocs" # half a minute and more, mostly asleep
    check_elsewhere
    check_silent
    check_load 3
    ask '/reap-status?json'
    check json "$tmp/body"
    httpd_end_well
    [ "$(logged 'child [0-9]+ ends with [0-9]+ kB resident; largest pools: ' 2)" -ge 2 ] || complain "no report at exit"
}

run_stock() {
    mpm=$1 mode="$1, stock pools"
    reap_prepare "$tmp/$mpm-stock" "$mpm" 'ReapStatus On' 'ReapLimitRequest 1M'
    httpd_start "$dir"
    for form in json auto prometheus; do
        ask "/reap-status?$form"
        expect 200 "$status"
        check $form "$tmp/body"
    done
    fresh_look
    ask '/reap-status?json'
    grep -q '"preload":false,"missing":"libreap-apr is not preloaded' "$tmp/body" || complain "nothing is missing: $body"
    grep -q '"uri":"/reap-status?' "$tmp/body" || complain "the request itself is not shown"
    check pss "$(url)"
    cat "$tmp/said"
    ask '/runaway?quiet=200'
    expect 200 "$status" 'no limit on stock pools'
    [ "$(logged 'reap:warn.*libreap-apr is not preloaded' 1)" -ge 1 ] || complain "no warning in the log"
    httpd_end_well
}

# Off: nothing listens, and the handler is not there.
run_off() {
    mpm=$1 mode="$1, off"
    reap_prepare "$tmp/$mpm-off" "$mpm"
    httpd_start "$dir" "$reaps"
    ask '/reap-status?json'
    expect 404 "$status"
    expect 1 "$(logged 'reap-status is not there: ReapStatus is off here' 1)" 'hints in the log'
    ! grep -q "reap-httpd.$httpd_pid" /proc/net/unix || complain "a child listens"
    ask '/server-status?auto'
    expect 0 "$(grep -c Reap "$tmp/body")" 'server-status without ReapStatus'
    httpd_end_well
}

under() {
    run "$1"
    run_stock "$1"
    run_off "$1"
}
at_once under ${1:-event worker prefork}
exit $bad
