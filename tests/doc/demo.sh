#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The demo, shortened: it ends well, says what it is for, leaves nothing behind but a page that is valid; a request
# without end kills a stock child and none with a limit, and the case's growth with frees is at most 1/31 of that on
# stock pools. Its errors are one line, and the page has them too.
. "${srcdir:-.}/tests/support/httpd_lib.sh"

need_file "$build/apache_module/.libs/mod_reap_lua.so" mod_reap_lua
httpd_require
need_file "$build/apache_module/.libs/mod_reap.so" mod_reap
command -v wrk >/dev/null || command -v ab >/dev/null || { absent wrk; exit 77; }
need h2load perl
page=$tmp/page.html
demo=$srcdir/apache_module/demo/reap-demo

directory_of() { sed -n 's|.*sh \(.*/reap-demo\.[A-Za-z0-9]*\)/stop$|\1|p' "$1"; }

expect_nothing_left() {
    for entry in "$TMPDIR"/*; do
        [ ! -e "$entry" ] || fail "$1 left $entry"
    done
    ! pgrep -f "$TMPDIR" || fail "$1 left a process"
}

# cells LINE: what the last output has in the two columns of a line.
cells() { awk -F '  +' -v name="$1" '$2 == name { print $3, $4; exit }' "$tmp/out"; }

# The words of the page, and its pictures.
check_page() {
    for words in "$@"; do grep -q "$words" "$page" || fail "the page does not say '$words'"; done
    ! grep -E '(src|href)=|@import|url\(' "$page" || fail "the page needs something from outside"
    ! lacks tidy "is the page valid?" || return
    tidy -q -e "$page" >"$tmp/tidy" 2>&1 || { cat "$tmp/tidy"; fail "the page is not valid"; }
}

# Memory that a busy machine keeps for a while looks like growth in one run of some.
demo_runs() {
    for _ in 1 2 3; do
        "$demo" --build "$build" --page "$page" --quick --keep >"$tmp/out" 2>"$tmp/progress" ||
            { cat "$tmp/out" "$tmp/progress"; fail "the demo failed"; }
        # shellcheck disable=SC2046  # two numbers
        set -- $(cells 'bytes more for each request')
        awk -v stock="$1" -v reaps="$2" 'BEGIN { exit !(stock > 30 && reaps < 15) }' && return
        sh "$(directory_of "$tmp/out")/stop"
        echo "bytes for each request: $*; once more"
    done
    fail "bytes for each request: $*"
}

# With --keep, which adds a server at the end and takes nothing away.
check_quick() {
    demo_runs
    cat "$tmp/out"
    for line in 'static file.* [0-9.]+$' 'SSI.* [0-9.]+$' 'index of 1000.* [0-9.]+$' 'RSS of the child.* MB' '; 0 failed' \
        'stock pools, no free .* KB .* KB' 'reaps, no free .* KB .* KB' 'reaps, with apr_pfree .* KB .* KB' \
        'One HTTP/2 connection, [0-9,]+ requests' 'at the end .* MB .* MB' 'memory \(RSS\) at its highest .* MB .* MB' \
        "the same with pictures: $page"; do
        grep -qE "$line" "$tmp/out" || fail "the demo does not say '$line'"
    done
    [ "$(wc -l <"$tmp/progress")" -ge 13 ] || fail "no progress was shown"
    ratio=$(sed -n 's|.*with frees 1/\([0-9]*\) of.*|\1|p' "$tmp/out")
    [ "${ratio:-1000}" -ge 31 ] || fail "the growth with frees is 1/$ratio of that on stock pools, not 1/31"
    # shellcheck disable=SC2046  # two figures with their unit
    set -- $(cells 'memory (RSS) at its highest')
    # shellcheck disable=SC2046  # "-", and one
    set -- "$3" $(cells 'of it in pools of the page when it ended')
    awk -v rss="$1" -v held="$3" 'BEGIN { exit !(held >= 16 && held < 20 && rss > held) }' ||
        fail "a request beyond 16 MB held $3 MB in pools, and its server $1 MB"
    [ "$(cells 'children that died')" = "1 0" ] || fail "a request without end: '$(cells 'children that died')' children died"
    check_page 'Apache on stock pools' 'One connection' 'memory without end' 'And what it costs'
    [ "$(grep -c '<svg' "$page")" = 3 ] || fail "the page has $(grep -c '<svg' "$page") pictures, not 3"
    check_kept
}

check_kept() {
    stop=$(directory_of "$tmp/out")/stop
    url=$(sed -n 's|^ *\(http://.*/prime.lua\)$|\1|p' "$tmp/out")
    [ -f "$stop" ] || fail "it does not say how to stop the server"
    answer=$(curl -s --max-time 30 "$url")
    pools=$(curl -s --max-time 30 "${url%/prime.lua}/reap-status?auto" | wc -l)
    sh "$stop"
    [ "$answer" = 7919 ] || fail "the kept server answers '$answer'"
    [ "$pools" -gt 10 ] || fail "the kept server's reap-status has $pools lines"
    ! curl -s --max-time 5 "$url" || fail "the kept server does not stop"
    expect_nothing_left "the demo"
}

# Ctrl-C in the middle.
check_interrupted() {
    : >"$tmp/progress"
    setsid "$demo" --build "$build" --page "$page" --quick >"$tmp/out" 2>"$tmp/progress" &
    pid=$!
    within 90 grep -q 'clients beside' "$tmp/progress" || fail "the demo does not begin"
    kill -TERM "$pid"
    wait "$pid"
    result=$?
    [ $result = 143 ] || { cat "$tmp/progress"; fail "the demo ended by SIGTERM returns $result"; }
    expect_nothing_left "the demo ended by SIGTERM"
    check_page 'The demo failed' 'ended by SIGTERM'
}

# A server that cannot start: the reason is what Apache says, here and on the page.
check_failure() {
    mkdir "$tmp/modules"
    ln -s "$httpd_modules"/* "$tmp/modules/"
    rm "$tmp/modules/mod_http2.so"
    if HTTPD_MODULES=$tmp/modules "$demo" --build "$build" --page "$page" --quick >"$tmp/out" 2>"$tmp/progress"; then
        fail "the demo does without mod_http2"
    fi
    tail -n 1 "$tmp/progress" | grep -q '^reap-demo: apache2 did not start: .*mod_http2' ||
        fail "what it says of a server that does not start: $(tail -n 1 "$tmp/progress")"
    check_page 'The demo failed' 'mod_http2'
    expect_nothing_left "the demo that failed"
}

# expect_refusal WHAT [VARIABLE=VALUE]... ARGUMENTS
expect_refusal() {
    what=$1
    shift
    if env "$@" >"$tmp/out" 2>"$tmp/complaint"; then fail "no refusal: $what"; fi
    if [ "$(wc -l <"$tmp/complaint")" != 1 ] || ! grep -q "$what" "$tmp/complaint"; then
        fail "'$what' is not all it said: $(cat "$tmp/complaint" "$tmp/out")"
    fi
}

check_refusals() {
    mkdir "$tmp/empty"
    expect_refusal 'unknown argument' "$demo" --fast
    expect_refusal 'cannot write the page' "$demo" --build "$build" --page "$tmp/no/page.html"
    expect_refusal 'no apache2' APACHE2=/nowhere "$demo" --build "$build"
    expect_refusal 'no libreap' "$demo" --build "$tmp/empty"
    expect_refusal 'no Apache modules' HTTPD_MODULES=/nowhere "$demo" --build "$build"
}

# As root the demo goes on as www-data, who must be able to use its directory.
mkdir "$tmp/demo" && chmod 1777 "$tmp/demo" || exit 99
TMPDIR=$tmp/demo
export TMPDIR
check_refusals
check_failure
check_quick
check_interrupted
