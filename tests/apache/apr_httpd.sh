#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# An unmodified httpd with its pools on reaps gives the answers of the stock server, byte for byte,
# under one MPM (apr_httpd.sh MPM; without one, under all three). Then it is restarted and stopped,
# and its error log is looked at.
. "${srcdir:-.}/tests/support/httpd_lib.sh"

httpd_require

# --- what is asked ----------------------------------------------------------------------------

# name, then curl's arguments; HOST stands for the server.
requests() {
    cat <<'END'
index http://HOST/
file http://HOST/page.txt
large http://HOST/large.txt
range -r 100-2000 http://HOST/large.txt
ranges -r 10-20,30-40 http://HOST/page.txt
unmodified -z 2021-01-01 http://HOST/page.txt
head -I http://HOST/page.txt
missing http://HOST/nothing/here
refused -X DELETE http://HOST/page.txt
rewritten http://HOST/rewritten/page
packed -H Accept-Encoding:gzip http://HOST/packed/large.txt
ssi http://HOST/all.shtml
autoindex http://HOST/big/
autoindex-sorted http://HOST/big/?C=S;O=D
cgi http://HOST/cgi/hello.cgi?a=b
cgi-post --data-binary @/etc/mime.types http://HOST/cgi/hello.cgi
proxied http://HOST/proxied/page.txt
proxied-index http://HOST/proxied/big/
proxied-ssi http://HOST/proxied/all.shtml
proxied-post --data-binary @/etc/mime.types http://HOST/proxied/cgi/hello.cgi
status http://HOST/server-status?auto
long-header -H X-Long:LONG http://HOST/page.txt
END
    [ "$1" = prefork ] || cat <<'END'
h2 --http2-prior-knowledge http://BACK/large.txt
h2-ssi --http2-prior-knowledge http://BACK/all.shtml
h2-many --http2-prior-knowledge http://BACK/page.txt http://BACK/all.shtml http://BACK/big/ http://BACK/index.html
proxied-h2 http://HOST/proxied-h2/page.txt
proxied-h2-ssi http://HOST/proxied-h2/all.shtml
END
}

# Answers with their headers go to files; what changes from one run to the next is masked.
ask_all() {
    mpm=$1 out=$2
    mkdir -p "$out"
    long=$(printf '%07000d' 0)
    requests "$mpm" | sed "s|HOST|127.0.0.1:$httpd_port|g; s|BACK|127.0.0.1:$httpd_back|g; s|LONG|$long|" |
        while read -r name arguments; do
            # shellcheck disable=SC2086  # they are several
            curl -sS -i --max-time 60 $arguments >"$out/$name" 2>&1 || echo "curl: $?" >>"$out/$name"
        done
    mask "$out"
}

# The order in an Allow header is that of a hash with a random seed; whether a script's answer has
# a length or is chunked depends on how soon the script ends. Of the status page the fields count.
mask() {
    LC_ALL=C sed -i -E -e 's/^(date|age|allow): .*/\1: masked/I' \
        -e 's/boundary=[0-9a-f]+/boundary=masked/; s/^--[0-9a-f]{10,}/--masked/' "$1"/*
    sed -i -E '/^(transfer-encoding|content-length): /Id' "$1"/*cgi* "$1"/*post* "$1"/*ssi* "$1"/status \
        "$1/ranges" # a boundary is a random number in hex, of 15 digits one time in 16
    sed -i -E 's/^([A-Za-z0-9 ]+):.*/\1/; /^(CPU|Load|ReqPerSec|Bytes|Duration|Conn)/d' "$1/status"
}

# --- what is checked --------------------------------------------------------------------------

# A test of the test: the stock server gave real answers.
stock_holds() { grep -q "$2" "$tmp/stock/$1" || fail "$mpm: the stock server's own answer to '$1'"; }

# The main process and all of its children have the library, and only they are looked at.
libraries_are_mapped() {
    for pid in $httpd_pid $(httpd_children); do
        for library in libreap-apr.so $1; do
            grep -q "/$library" "/proc/$pid/maps" || fail "process $pid runs without $library"
        done
    done
}

same_answers() {
    for name in $(requests "$mpm" | cut -d' ' -f1); do
        cmp "$tmp/stock/$name" "$1/$name" || fail "$mpm: the answer to '$name' differs from the stock server's"
    done
    echo "$mpm: $(requests "$mpm" | wc -l) answers as the stock server's${2:+ ($2)}"
}

no_child_of_before() { ! printf '%s\n' "$before" | grep -qxF "$(httpd_children)"; }
graceful_restart() {
    before=$(httpd_children | sort)
    kill -USR1 "$httpd_pid"
    within 60 no_child_of_before || fail "$mpm: old children after a graceful restart"
    libraries_are_mapped "$1"
}

test_mpm() {
    mpm=$1 preload=$2 also=${3:-}
    httpd_start "$tmp" "$preload"
    libraries_are_mapped "$also"
    ask_all "$mpm" "$tmp/reap"
    same_answers "$tmp/reap" "$also"
    graceful_restart "$also"
    ask_all "$mpm" "$tmp/again"
    same_answers "$tmp/again" "after a graceful restart${also:+, $also}"
    httpd_stop
    httpd_log_is_clean "$tmp" || fail "$mpm: the error log"
    rm -rf "$tmp/reap" "$tmp/again"
}

for mpm in ${1:-event worker prefork}; do
    rm -rf "${tmp:?}"/*
    httpd_prepare "$tmp" "$mpm"
    httpd_start "$tmp"
    ask_all "$mpm" "$tmp/stock"
    httpd_stop
    stock_holds ssi 'part two, all.shtml'
    stock_holds proxied-index entry-with-a-name-999
    [ "$mpm" = prefork ] || stock_holds h2-ssi 'HTTP/2 200'
    test_mpm "$mpm" "$httpd_libs/libreap-apr.so"
    [ ! -e "$httpd_libs/libreap-malloc.so" ] || [ -n "${REAP_APR_ALONE:-}" ] ||
        test_mpm "$mpm" "$httpd_libs/libreap-malloc.so:$httpd_libs/libreap-apr.so" libreap-malloc.so
done
