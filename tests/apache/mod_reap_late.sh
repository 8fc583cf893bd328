#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Directives that are read while the server runs, under each MPM or the one named: from .htaccess, and by a module with
# a request (mod_perl's add_config). They hold for their request; the list of limits stays that of the configuration,
# also over graceful restarts in the midst of them; and what is a whole server's is refused.
. "${srcdir:-.}/tests/apache/mod_reap_lib.sh"

make_files() {
    mkdir -p "$dir/htdocs/late" "$dir/htdocs/users"
    echo page >"$dir/htdocs/late/page.txt"
    echo page >"$dir/htdocs/users/page.txt"
    echo page >"$dir/htdocs/users/runaway.txt"
    printf 'ReapLimitRequest 2M\nReapLimitHard 50M\n' >"$dir/htdocs/late/.htaccess"
    printf '<Files page.txt>\nReapLimitRequest 2M\nReapLimitHard 50M\n</Files>\n' >"$dir/htdocs/files.conf"
    echo 'ReapLimitRequest 1M' >"$dir/htdocs/one.conf"
    echo 'ReapLimitRequest none' >"$dir/htdocs/none.conf"
    echo 'ReapLimitHard 1M' >"$dir/htdocs/hard.conf"
    echo 'ReapLimitConnection 1M' >"$dir/htdocs/connection.conf"
    echo 'ReapStatus Off' >"$dir/htdocs/status.conf"
    echo 'ReapReport exit' >"$dir/htdocs/report.conf"
    chmod -R a+rX "$dir/htdocs"
}

# many PATH N [curl's arguments]: requests that read directives, sixteen at once.
many() {
    what=$1 n=$2
    shift 2
    curl -s -Z --no-progress-meter --parallel-max 16 --retry 5 -o /dev/null -w '%{http_code}\n' --max-time 30 "$@" \
        "http://127.0.0.1:$httpd_port$what?[1-$n]" >"$tmp/many" 2>&1
    expect "$n" "$(grep -cx 200 "$tmp/many")" "answers of $what: $(sort "$tmp/many" | uniq -c | tr '\n' ' ')"
}

# The limits as the page has them: exactly those of the configuration, in each child that answers.
limits_are() {
    for _ in 1 2 3 4 5 6; do
        fresh_look
        ask '/reap-status?json'
        python3 -c "
import json, sys
s = json.load(open('$tmp/body'))['settings']
said = ' '.join('%s=%s' % (l['directive'], l['bytes']) for l in s['limits'])
assert s['limits_set'] == len(s['limits']) and said == '$1', (s['limits_set'], said[:300])
assert all(l['at'].startswith('$dir/httpd.conf:') for l in s['limits']), s['limits']
assert s['limits_read_late'] >= $2, s['limits_read_late']" >"$tmp/said" 2>&1 || { complain "limits: $(tail -n 1 "$tmp/said")"; return; }
    done
}

run() {
    mpm=$1 mode="$1, read late"
    reap_prepare "$tmp/$mpm" "$mpm" 'ReapStatus On' 'ReapLimitRequest 8M' "<Directory $tmp/$mpm/htdocs/late>" \
        'AllowOverrideList ReapLimitRequest ReapLimitHard' '</Directory>' '<Location /runaway/section>' 'ReapLimitRequest 3M' '</Location>'
    make_files
    httpd_start "$dir" "$reaps"
    of_configuration='ReapLimitRequest=8388608 ReapLimitRequest=3145728'
    limits_are "$of_configuration" 0
    many /late/page.txt 500
    many /page.txt 500 -H 'Configure: files.conf'
    limits_are "$of_configuration" 2000
    [ $bad = 0 ] || exit 1 # such a server may not answer for long
    (
        for _ in 1 2 3; do
            sleep 0.4
            kill -USR1 "$httpd_pid"
        done
    ) &
    restarts=$!
    many /late/page.txt 1000
    many /page.txt 1000 -H 'Configure: files.conf'
    wait "$restarts"
    limits_are "$of_configuration" 6000
    ask '/runaway?quiet=40'
    expect 200 "$status" 'below the limit of the server'
    ask '/runaway?quiet=40' -H 'Configure: one.conf'
    expect 500 "$status" 'a limit that was read with the request'
    ask '/runaway?quiet=40'
    expect 200 "$status" 'the next one'
    ask '/runaway/section?quiet=70' -H 'Configure: none.conf'
    expect 200 "$status" 'no limit, read with the request'
    for name in connection status report; do
        ask /page.txt -H "Configure: $name.conf"
        expect 500 "$status" "$name.conf"
    done
    for name in ReapLimitConnection ReapStatus; do
        expect 1 "$(logged "configured: $name: belongs to a server, and is not read at run time" 1)" "$name"
    done
    expect 1 "$(logged 'configured: ReapReport: exit is for the main server' 1)" ReapReport
    ask '/reap-status?json'
    expect 200 "$status" 'ReapStatus is on still'
    httpd_end_well
}

# Without any directive of ours in the configuration: the first limit of all comes with a request, in each child.
run_first() {
    mpm=$1 mode="$1, the first limit"
    reap_prepare "$tmp/$mpm-first" "$mpm"
    make_files
    httpd_start "$dir" "$reaps"
    for _ in 1 2 3 4; do
        ask '/runaway?quiet=40' -H 'Configure: one.conf'
        expect 500 "$status" 'a limit where there was none'
        ask '/runaway?quiet=40'
        expect 200 "$status" 'the next one'
    done
    ask '/runaway?quiet=40' -H 'Configure: hard.conf'
    expect 52 "$result" 'a hard limit where there was none'
    expect 1 "$(logged 'GET /runaway\?quiet=40 from 127.0.0.1 wants [0-9]+ bytes more, over ReapLimitHard 1048576; this child ends' 1)" 'the line'
    httpd_stop
}

# A user's file says nothing of limits, unless the administrator lists the directive.
run_users() {
    mpm=$1 mode="$1, users"
    reap_prepare "$tmp/$mpm-users" "$mpm" 'ReapLimitRequest 1M' "<Directory $tmp/$mpm-users/htdocs/users>" 'AllowOverride All' '</Directory>'
    make_files
    httpd_start "$dir" "$reaps"
    for file in 'ReapLimitRequest none' '<Files page.txt>|ReapLimitRequest none|</Files>' '<If "true">|ReapLimitRequest none|</If>' \
        '<IfModule reap_module>|ReapLimitAction log|</IfModule>' '<RequireAll>|ReapLimitHard none|</RequireAll>' 'ReapReport limit' \
        'ReapStatus Off' 'ReapLimitConnection none'; do
        echo "$file" | tr '|' '\n' >"$dir/htdocs/users/.htaccess"
        ask /users/page.txt
        expect 500 "$status" "$file"
    done
    httpd_stop
}

under() {
    run "$1"
    run_first "$1"
    [ "$1" != event ] || run_users event
}
at_once under ${1:-event worker prefork}
exit $bad
