#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# doc/examples/mod_example.c, built as its first comment says, in a private httpd: the same module file on stock
# pools and on reaps. The answers are the same, and the pool's figures are what the comment says.
. "${srcdir:-.}/tests/support/httpd_lib.sh"

httpd_require
apxs=$(PATH=$PATH:/usr/sbin command -v apxs || PATH=$PATH:/usr/sbin command -v apxs2) || { absent apxs; exit 77; }
reap_module=$build/apache_module/.libs/mod_reap.so

build_module() {
    include=$(cd "$srcdir/include" && pwd)
    cp "$srcdir/doc/examples/mod_example.c" "$tmp/"
    (cd "$tmp" && "$apxs" -c -Wc,-Wall -Wc,-Wextra -Wc,-Werror "-I$include" mod_example.c) >"$tmp/said" 2>&1 &&
        [ -e "$tmp/.libs/mod_example.so" ] || { cat "$tmp/said"; fail "the module is not built"; }
}

# sorted [curl's arguments]: posts, and compares with what sort says
sorted() {
    status=$(curl -s --max-time 60 -D "$tmp/headers" -o "$tmp/body" -w '%{http_code}' -H 'Expect:' --data-binary "@$tmp/lines" "$@" "$url")
    [ "$status" = 200 ] || complain "status $status"
    LC_ALL=C sort "$tmp/lines" | cmp - "$tmp/body" || complain "not sorted: $*"
    figures=$(sed -n 's/^X-Pool: //p' "$tmp/headers" | tr -d '\r')
}

# The body's one copy is live, where the pool's buffers were given back: 1 MB, and the rest of a request.
check_figures() {
    if [ "$pools" = stock ]; then
        [ "$figures" = stock ] || complain "figures of stock pools: $figures"
        return
    fi
    echo "$mode: $figures"
    live=${figures%% bytes live*} size=$(wc -c <"$tmp/lines")
    [ "${live:-0}" -ge "$size" ] && [ "$live" -lt $((size + 30000)) ] || complain "$live bytes live of $size"
}

# refused STATUS PATH [curl's arguments]: one page, and its status in the access log
refused() {
    wanted=$1 path=$2
    shift 2
    status=$(curl -s --max-time 60 -o "$tmp/body" -w '%{http_code}' -H 'Expect:' --data-binary "@$tmp/many" "$@" "$url$path")
    pages=$(grep -c '</html>' "$tmp/body")
    within 60 has 1 "$dir/access.log" "^/sort$path "
    logged=$(grep "^/sort$path " "$dir/access.log")
    [ "$status, $pages, $logged" = "$wanted, 1, /sort$path $wanted" ] || complain "$path: status $status, $pages pages, logged: $logged"
}

# Bodies that filters refuse: httpd's own beyond LimitRequestBody, and mod_reap's where pools are on reaps.
check_refusals() {
    seq 1 300000 >"$tmp/many"
    refused 413 /few/1
    refused 413 /few/2 -H 'Transfer-Encoding: chunked'
    [ "$pools" = reaps ] && [ -e "$reap_module" ] || return 0
    refused 413 /held/1
    refused 413 /held/2 -H 'Transfer-Encoding: chunked'
}

check_answers() {
    od -An -N750000 -tx4 -w4 /dev/urandom | tr -d ' ' | head -c 1000000 >"$tmp/lines"; echo >>"$tmp/lines"
    sorted
    check_figures
    sorted -H 'Transfer-Encoding: chunked'
    printf 'b\nno newline at the end' >"$tmp/lines"
    curl -s --data-binary "@$tmp/lines" "$url" >"$tmp/body"
    [ "$(cat "$tmp/body")" = "$(cat "$tmp/lines")" ] || complain "without a newline: $(cat "$tmp/body")"
    status=$(curl -s -o "$tmp/body" -w '%{http_code}%{size_download}' -X POST "$url")
    [ "$status" = 2000 ] || complain "an empty body: $status"
    status=$(curl -s -o "$tmp/body" -w '%{http_code}' -X DELETE "$url")
    [ "$status" = 405 ] || complain "DELETE: $status"
    check_refusals
    curl -s "$url" >"$tmp/body"
    if [ "$pools" = stock ]; then expected='^stock pools$'; else expected='^ +request.*bytes'; fi
    grep -qE "$expected" "$tmp/body" || complain "the report: $(cat "$tmp/body")"
}

run() {
    pools=${1%-*} mode="${1%-*} pools, ${1#*-}" dir=$tmp/site
    mkdir -p "$dir"
    httpd_prepare "$dir" "${1#*-}"
    cat >>"$dir/httpd.conf" <<END
LoadModule example_module $built/.libs/mod_example.so
<Location /sort>
SetHandler example-sort
</Location>
<Location /sort/few>
LimitRequestBody 100000
</Location>
LogFormat "%U %>s" status
CustomLog $dir/access.log status
END
    [ ! -e "$reap_module" ] || cat >>"$dir/httpd.conf" <<END
LoadModule reap_module $reap_module
<Location /sort/held>
ReapLimitRequest 256K
</Location>
END
    if [ "$pools" = reaps ]; then httpd_start "$dir" "$httpd_libs/libreap-apr.so"; else httpd_start "$dir"; fi
    url=http://127.0.0.1:$httpd_port/sort
    check_answers
    httpd_end_well
}

built=$tmp
build_module
at_once run stock-prefork reaps-prefork stock-event reaps-event
exit $bad
