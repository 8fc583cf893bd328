#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The page of reap-status from a true httpd on reaps, with requests under way, in Chromium; and from one on stock
# pools. Pictures stay in tests/apache/pictures-live of the build.
. "${srcdir:-.}/tests/apache/mod_reap_lib.sh"
pictures=$build/tests/apache/pictures-live

need chromium chromedriver
rm -rf "$pictures"

# Requests that hold some MiB for a few seconds, one of them with a script in its URL, and small ones, until the
# file goes.
load() {
    touch "$tmp/load"
    for pieces in 16 24 32 40 48 64; do
        query="grow=$pieces&sleep=3000"
        [ $pieces != 48 ] || query="$query&x=<script>document.title='taken'</script>\""
        while [ -e "$tmp/load" ]; do
            curl -s -g -o "$tmp/answer$pieces" "http://127.0.0.1:$httpd_port/runaway?$query"
            sleep 0.1
        done &
    done
    while [ -e "$tmp/load" ]; do
        curl -s -o "$tmp/answer" "http://127.0.0.1:$httpd_port/page.txt?[1-20]" "http://127.0.0.1:$httpd_port/all.shtml"
        sleep 0.2
    done &
}

look() { python3 -B "$srcdir/tests/apache/reap_page.py" "$1" "http://127.0.0.1:$httpd_port/reap-status" "$pictures"; }

reap_prepare "$tmp/event" event "ReapStatus on" "ReapLimitRequest 64M"
httpd_start "$tmp/event" "$reaps"
load
look --url || bad=1
rm "$tmp/load"
httpd_stop
httpd_log_is_clean "$tmp/event" || fail "the error log"
httpd_start "$tmp/event"
look --stock || bad=1
httpd_stop
exit $bad
