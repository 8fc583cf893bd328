#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The demo, shortened: it ends well, says what it is for, leaves nothing behind, and the case's growth
# with frees is at most 1/31 of that on stock pools. Its errors are one line.
srcdir=${srcdir:-.}
. "$srcdir/tests/support/httpd_lib.sh"

build=$(cd "${top_builddir:-.}" && pwd)
[ -e "$build/apache_module/.libs/mod_reap_lua.so" ] || skip "mod_reap_lua was not built"
httpd_require
command -v wrk >/dev/null || command -v ab >/dev/null || skip "neither wrk nor ab"
httpd_directory
demo=$(cd "$srcdir" && pwd)/demo/reap-demo

directory_of() { sed -n 's|.*sh \(.*/reap-demo\.[A-Za-z0-9]*\)/stop$|\1|p' "$1"; }

expect_nothing_left() {
    for entry in "$TMPDIR"/*; do
        [ ! -e "$entry" ] || fail "$1 left $entry"
    done
    ! pgrep -f "$TMPDIR" || fail "$1 left a process"
}

check_quick() {
    "$demo" --build "$build" --quick >"$tmp/out" 2>"$tmp/progress" || { cat "$tmp/out" "$tmp/progress"; fail "the demo failed"; }
    cat "$tmp/out"
    for line in 'static file.* [0-9.]+$' 'SSI.* [0-9.]+$' 'index of 1000.* [0-9.]+$' 'RSS of the child.* MB' '; 0 failed' \
        'stock pools, no free .* KB .* KB' 'reaps, no free .* KB .* KB' 'reaps, with apr_pfree .* KB .* KB'; do
        grep -qE "$line" "$tmp/out" || fail "the demo does not say '$line'"
    done
    [ "$(wc -l <"$tmp/progress")" -ge 9 ] || fail "no progress was shown"
    ratio=$(sed -n 's|.*with frees 1/\([0-9]*\) of.*|\1|p' "$tmp/out")
    [ "${ratio:-1000}" -ge 31 ] || fail "the growth with frees is 1/$ratio of that on stock pools, not 1/31"
    expect_nothing_left "the demo"
}

check_keep() {
    "$demo" --build "$build" --quick --keep >"$tmp/out" 2>"$tmp/progress" || fail "the demo failed with --keep"
    stop=$(directory_of "$tmp/out")/stop
    url=$(sed -n 's|^ *\(http://.*/prime.lua\)$|\1|p' "$tmp/out")
    [ -f "$stop" ] || fail "it does not say how to stop the server"
    answer=$(curl -s --max-time 30 "$url")
    sh "$stop"
    [ "$answer" = 7919 ] || fail "the kept server answers '$answer'"
    ! curl -s --max-time 5 "$url" || fail "the kept server does not stop"
    expect_nothing_left "the demo with --keep"
}

# Ctrl-C in the middle.
check_interrupted() {
    : >"$tmp/progress"
    setsid "$demo" --build "$build" >"$tmp/out" 2>"$tmp/progress" &
    pid=$!
    n=0
    until grep -q 'round 1' "$tmp/progress"; do
        n=$((n + 1))
        [ $n -lt 900 ] || fail "the demo does not begin"
        sleep 0.1
    done
    kill -TERM "$pid"
    wait "$pid"
    result=$?
    [ $result = 143 ] || { cat "$tmp/progress"; fail "the demo ended by SIGTERM returns $result"; }
    expect_nothing_left "the demo ended by SIGTERM"
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
    expect_refusal 'no apache2' APACHE2=/nowhere "$demo" --build "$build"
    expect_refusal 'no libreap' "$demo" --build "$tmp/empty"
    expect_refusal 'no Apache modules' HTTPD_MODULES=/nowhere "$demo" --build "$build"
}

# As root the demo goes on as www-data, who must be able to use its directory.
mkdir "$tmp/demo" && chmod 755 "$tmp" && chmod 1777 "$tmp/demo" || exit 99
TMPDIR=$tmp/demo
export TMPDIR
check_refusals
check_quick
check_keep
check_interrupted
