#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A module that frees an object twice, in a child with other requests under way: the error log has one line for it, in
# the form of its other entries, with time, process, thread, the call of APR's, and the request. Without mod_reap's
# ReapStatus the request is not known; without mod_reap in the server, nor is it.
. "${srcdir:-.}/tests/apache/mod_reap_lib.sh"

time='\[[A-Z][a-z]{2} [A-Z][a-z]{2} +[0-9]+ [0-9:]{8}\.[0-9]{6} [0-9]{4}\]'
freed='apr_pfree\(0x[0-9a-f]+\): freed twice'

# try MPM PATH REQUEST [LINES...]: REQUEST is what the line ends with.
try() {
    mpm=$1 path=$2 request=$3 mode="$1 $2"
    shift 3
    reap_prepare "$tmp/$mpm" "$mpm" "$@"
    rm -f "$dir/error.log"
    httpd_start "$dir" "$reaps"
    curl -s -o "$tmp/others" "http://127.0.0.1:$httpd_port/runaway/other-[1-5]?sleep=1000" -Z --no-progress-meter &
    others=$!
    sleep 0.5
    ask "$path" -g
    expect 000 "$status"
    line="^$time \[reap:crit\] \[pid [0-9]+:tid [0-9]+\] reap: $freed$request\$"
    expect 1 "$(logged "$line" 1)" 'lines in the log'
    expect 1 "$(logged 'reap: ' 1)" "lines of ours: $(grep 'reap: ' "$dir/error.log")"
    pid=$(sed -nE "s/^.*pid ([0-9]+):.*reap: .*/\1/p" "$dir/error.log")
    expect 1 "$(logged "AH00052: child pid ${pid:-none} exit signal Abort" 1)" "the parent's line of the same process"
    wait "$others"
    ask /page.txt --retry 5 --retry-connrefused
    expect 200 "$status"
    httpd_stop
}

under() {
    try "$1" '/runaway?twice&n=1' ', for GET /runaway\?twice&n=1 from 127\.0\.0\.1' 'ReapStatus On'
    [ "$1" != event ] || return 0
    try event "/runaway?twice&$(printf '%0900d' 0)" ', for GET /runaway\?twice&0{285} from 127\.0\.0\.1' 'ReapLimitRequest 1G'
    try event '/runaway?twice' ''
}
at_once under ${1:-event worker prefork}
exit $bad
