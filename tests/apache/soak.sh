#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A soak of an unmodified httpd with its pools on reaps: many requests of many kinds over each MPM,
# and then no failed request, no crash, the same children as after the first part, and no more memory.
# What is kept for reuse comes and goes by a megabyte or two, so medians are compared: of the first
# and the last quarter of the figures that were taken after the first part. Prints a table as it goes.
#
#     tests/apache/soak.sh [--stock] [MPM...]       from the build directory, or with top_builddir set
#
# REQUESTS (200000), WARM (10000: the first part), CONCURRENCY (16), GROWTH (5, percent). --stock preloads
# nothing, for comparison; SOAK_PRELOAD names other libraries to preload.
srcdir=${srcdir:-$(dirname "$0")/../..}
. "$srcdir/tests/support/httpd_lib.sh"

requests=${REQUESTS:-200000}
warm=${WARM:-10000}
concurrency=${CONCURRENCY:-16}
growth=${GROWTH:-5}
need ab
ab=$(command -v ab)
preload=${SOAK_PRELOAD:-$httpd_libs/libreap-apr.so}
kind=reaps
if [ "${1:-}" = --stock ]; then
    shift
    preload='' kind=stock
fi
httpd_require
httpd_directory

# One round: how many requests of each, per thousand.
mix='400 /page.txt
200 /index.html
230 /parts.shtml
100 /proxied/page.txt
20 /packed/page.txt
20 /big/
20 /server-status
10 /cgi/hello.cgi?x=1'

# Rss and Pss of all children, in KiB.
memory() {
    for pid in $(httpd_children); do cat "/proc/$pid/smaps_rollup"; done |
        awk '/^Rss:/ { rss += $2 } /^Pss:/ { pss += $2 } END { print rss, pss }'
}

# What ab says of a run, as "complete failed"; an answer other than 2xx is a failure.
ab_run() {
    "$ab" -q -k -l -c "$concurrency" -n "$1" "http://127.0.0.1:$httpd_port$2" >"$tmp/ab" 2>&1
    awk '/^Complete requests:/ { n = $3 } /^Failed requests:/ { f += $3 } /^Non-2xx responses:/ { f += $3 }
        END { print n + 0, f + 0 }' "$tmp/ab"
}

# Runs $1 requests of the mix; adds to done and failed.
round() {
    while read -r per_mille path; do
        n=$(($1 * per_mille / 1000))
        [ $n -ge "$concurrency" ] || n=$concurrency
        answer=$(ab_run $n "$path")
        complete=${answer% *}
        done=$((done + complete))
        failed=$((failed + n - complete + ${answer#* }))
        [ "$answer" = "$n 0" ] || { echo "$path: wanted $n, complete and failed: $answer"; cat "$tmp/ab"; }
    done <<END
$mix
END
}

# Of the figures in a file: median of the first quarter, and of the last.
trend() {
    quarter=$((($(wc -l <"$1") + 3) / 4))
    for end in head tail; do
        $end -n $quarter "$1" | sort -n | awk '{ value[NR] = $1 } END { print value[int((NR + 1) / 2)] }'
    done
}

row() { printf '%-8s %-6s %9s %9s %8s %8s %7s\n' "$@"; }

show() {
    # shellcheck disable=SC2046  # two numbers
    set -- $(memory)
    rss=$1
    seconds=$(($(date +%s) - began))
    row "$mpm" "$kind" "$done" $((done / (seconds > 0 ? seconds : 1))) "$1" "$2" "$failed"
}

soak() {
    mpm=$1 done=0 failed=0 before=
    step=$(((requests < 200000 ? requests : 200000) / 20))
    rm -rf "${tmp:?}"/*
    httpd_prepare "$tmp" "$mpm"
    echo '<!--#include virtual="one.html" --><!--#include virtual="two.shtml" -->' >"$tmp/htdocs/parts.shtml"
    # A backend may close an idle connection just as the proxy takes it up again: stock httpd too
    # answers 502 then, some times in 100,000.
    echo 'SetEnv proxy-nokeepalive 1' >>"$tmp/httpd.conf"
    httpd_start "$tmp" "$preload"
    [ -z "$preload" ] || grep -q libreap-apr "/proc/$httpd_pid/maps" || fail "libreap-apr is not preloaded"
    began=$(date +%s)
    row MPM pools requests per-sec rss-KiB pss-KiB failed
    while [ $done -lt "$requests" ]; do
        round $((done < warm && step > warm ? warm : step))
        show
        [ $done -ge "$warm" ] || continue
        echo "$rss" >>"$tmp/figures"
        [ -n "$before" ] || before=$(httpd_children | sort)
    done
    [ "$(httpd_children | sort)" = "$before" ] || fail "$mpm: children came or went"
    httpd_stop
    httpd_log_is_clean "$tmp" || fail "$mpm: the error log"
    [ $failed = 0 ] || fail "$mpm: $failed requests failed"
    # shellcheck disable=SC2046  # two numbers
    set -- $(trend "$tmp/figures")
    [ "$2" -le $(($1 + $1 * growth / 100 + 1024)) ] || fail "$mpm: RSS grew from $1 to $2 KiB"
    echo "$mpm: $done requests, none failed; RSS $1 KiB after the first part, $2 at the end"
}

for mpm in ${*:-event worker prefork}; do soak "$mpm"; done
