# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# What the tests of mod_reap share: sourced, not run; skips without a module. A private httpd (httpd_lib.sh) with
# mod_reap, and with mod_runaway, whose requests take as much memory as their query says.
#
#     reap_prepare DIR MPM [LINES...]   site and configuration; LINES go to the main server
. "${srcdir:-.}/tests/support/httpd_lib.sh"

reap_module=$build/apache_module/.libs/mod_reap.so
runaway_module=$build/tests/apache/.libs/mod_runaway.so
reaps=$httpd_libs/libreap-apr.so
need_file "$reap_module" mod_reap
need_file "$runaway_module" mod_runaway
need python3
httpd_require

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

# A look that is taken from now on, as text, in $tmp/auto. A look is good for a while.
fresh_look() { now=$(date +%s) && within 60 looks_after_now || fail "no fresh look"; }
looks_after_now() {
    curl -s --max-time 20 "http://127.0.0.1:$httpd_port/reap-status?auto" >"$tmp/auto" &&
        [ "0$(sed -n "s/^ReapLookTime: //p" "$tmp/auto")" -gt "$now" ]
}
