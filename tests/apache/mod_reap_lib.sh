# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# What the tests of mod_reap share: sourced, not run. A private httpd (httpd_lib.sh) with mod_reap, and with
# mod_runaway, whose requests take as much memory as their query says.
#
#     reap_require                      skips without a module
#     reap_prepare DIR MPM [LINES...]   site and configuration; LINES go to the main server
#     ask PATH [curl's arguments]       sets status, body, result (curl's)
. "$srcdir/tests/support/httpd_lib.sh"

reap_build=$(cd "${top_builddir:-.}" && pwd)
reap_module=$reap_build/apache_module/.libs/mod_reap.so
runaway_module=$reap_build/tests/apache/.libs/mod_runaway.so
reaps=$httpd_libs/libreap-apr.so
failures=0
mode=

complain() {
    echo "$mode: $*"
    failures=$((failures + 1))
}

reap_require() {
    need_file "$reap_module" mod_reap
    need_file "$runaway_module" mod_runaway
    need python3
    httpd_require
}

reap_prepare() {
    dir=$1
    mkdir -p "$dir"
    httpd_prepare "$dir" "$2"
    shift 2
    mkdir -p "$dir/htdocs/early"
    echo early >"$dir/htdocs/early/page.txt"
    {
        cat <<END
LoadModule reap_module $reap_module
LoadModule runaway_module $runaway_module
LogFormat "%U%q %>s %X limit=%{reap-limit}n mark=%{Mark}i peak=%{reap-peak}n" reap
CustomLog $dir/access.log reap
<LocationMatch "^/reap-status$">
SetHandler reap-status
</LocationMatch>
<Location /runaway>
SetHandler runaway
</Location>
END
        for line in "$@"; do printf '%s\n' "$line"; done
    } >>"$dir/httpd.conf"
}

ask() {
    path=$1
    shift
    # shellcheck disable=SC2034  # for those who source this
    status=$(curl -s --max-time 60 -D "$tmp/headers" -o "$tmp/body" -w '%{http_code}' "$@" \
        "http://127.0.0.1:${port:-$httpd_port}$path") && result=0 || result=$?
    body=$(head -c 300 "$tmp/body" 2>/dev/null | tr -d '\000')
}

header() { sed -n "s/^$1: //Ip" "$tmp/headers" | tr -d '\r'; }

expect() {
    wanted=$1
    shift
    [ "$1" = "$wanted" ] || complain "${2:-$path}: got '$(printf %.200s "$1" | tr '\n' '|')', not '$wanted'"
}

# A LINE of the log, an extended regular expression, n times; waits a moment for it.
logged() {
    n=0
    until [ "$(grep -cE "$1" "$dir/error.log")" -ge "$2" ] || [ $n -ge 100 ]; do
        n=$((n + 1))
        sleep 0.1
    done
    grep -cE "$1" "$dir/error.log"
}

# A look that is taken from now on, as text, in $tmp/auto. A look is good for a while.
fresh_look() {
    now=$(date +%s)
    n=0
    until curl -s --max-time 20 "http://127.0.0.1:$httpd_port/reap-status?auto" >"$tmp/auto" &&
        [ "$(sed -n 's/^ReapLookTime: //p' "$tmp/auto")" -gt "$now" ]; do
        n=$((n + 1))
        [ $n -lt 300 ] || fail "no fresh look"
        sleep 0.2
    done
}
