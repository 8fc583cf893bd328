#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Memory of malloc that a module's handler holds is known by URL, module and pool, under each MPM or the one named: by
# the heap profile, in each form of reap-status and in the flame graph. Some of it ends with its request, and some is
# left; a host without ReapStatus shows no URL. While no profile is on, there is nothing of it.
. "${srcdir:-.}/tests/apache/mod_reap_lib.sh"
need_file "$httpd_libs/libreap-profile.so" libreap-profile
all="$httpd_libs/libreap-malloc.so:$reaps:$httpd_libs/libreap-ask.so:$httpd_libs/libreap-profile.so"
piece=65536

# held FORM: in the last look, "NAME MODULE BYTES" of the handler's module, sorted.
held() {
    case $1 in
        json) python3 -c "
import json, sys
for m in json.load(open('$tmp/body'))['mallocs']:
    if m['module'] == 'mod_runaway.so': print(m['for'], m['bytes'])" ;;
        auto) sed -n 's/^ReapMalloc "mod_runaway\.so" for "\(.*\)": \([0-9]*\) bytes, [0-9]* objects$/\1 \2/p' "$tmp/body" ;;
        prometheus) sed -n 's/^reap_malloc_bytes{module="mod_runaway\.so",for="\(.*\)"} /\1 /p' "$tmp/body" ;;
    esac | sort >"$tmp/held"
}
# holds NAME PIECES...: these names have as many pieces, and no other name has any; samples err by a fiftieth.
holds() {
    printf '%s %s\n' "$@" | python3 -c "
import sys
wanted = {line.rsplit(' ', 1)[0]: int(line.rsplit(' ', 1)[1]) * $piece for line in sys.stdin if line.strip()}
got = {line.rsplit(' ', 1)[0]: int(line.rsplit(' ', 1)[1]) for line in open('$tmp/held')}
sys.exit(wanted.keys() != got.keys() or any(abs(got[n] - wanted[n]) > wanted[n] / 50 for n in wanted))"
}
# shows NAME PIECES...: each form, in a look from now on. A child of prefork looks by itself, and the page may come before.
shows() {
    fresh_look
    for form in json auto prometheus; do
        within 60 shows_now "$@" || complain "$form shows: $(tr '\n' ';' <"$tmp/held"), not: $*"
    done
}
perl_keeps() {
    ask '/reap-status?auto'
    bytes=$(sed -n 's,^ReapMalloc "libperl\.so[^"]*" for "request /perl/report": \([0-9]*\) bytes.*,\1,p' "$tmp/body")
    [ "${bytes:-0}" -gt 1300000 ] && [ "$bytes" -lt 3000000 ]
}
shows_now() { ask "/reap-status?$form" && held $form && holds "$@"; }

under() {
    mpm=$1 mode="$1"
    reap_prepare "$tmp/$mpm" "$mpm" 'ReapStatus On' '<VirtualHost *>' 'ServerName main.test' '</VirtualHost>' \
        '<VirtualHost *>' 'ServerName quiet.test' 'ReapStatus Off' '</VirtualHost>'
    [ "$2" != perl ] || cat >>"$dir/httpd.conf" <<END
LoadModule perl_module $httpd_modules/mod_perl.so
<Perl>
package Keep; our @kept;
sub handler { push @kept, "x" x 1000 for 1..2000; print "kept"; 0 }
\$INC{"Keep.pm"} = 1;
</Perl>
<Location /perl>
SetHandler perl-script
PerlResponseHandler Keep
</Location>
END
    touch "$dir/htdocs/stay"
    export REAP_OPTIONS=ask=@reap.%p
    [ "$2" = off ] || export REAP_PROFILE="$tmp/at-exit" REAP_PROFILE_BYTES=4096
    httpd_start "$dir" "$all"
    unset REAP_PROFILE REAP_OPTIONS
    site="http://127.0.0.1:$httpd_port"
    # Two URLs on one connection, and a query that is none of a URL's; then a request that goes on.
    curl -s -o "$tmp/page" "$site/runaway/leak?leak=60&n=1" -o "$tmp/page" "$site/runaway/other?leak=30" \
        -o "$tmp/page" "$site/runaway/leak?leak=40&n=2" -o "$tmp/page" "$site/page.txt"
    curl -s -o "$tmp/page" -H 'Host: quiet.test' "$site/runaway/secret?leak=50"
    curl -s -o "$tmp/page" "$site/runaway/stays?malloc=80&stay=60000" &
    client=$!
    sleep 1
    # The option starts a clock in the first process, whose reaps have ages then: still they are shared.
    ask '/reap-status?json'
    python3 -c "import json; d = json.load(open('$tmp/body'))['totals']; assert d['inherited_bytes'] > 100000, d" 2>"$tmp/said" || complain "what children share"
    if [ "$2" = off ]; then
        shows
        ask '/reap-status?json'
        grep -q '"mallocs":\[\]' "$tmp/body" || complain "something of malloc without a profile"
    else
        shows 'request /runaway/leak' 100 'request /runaway/other' 30 request 50 'request /runaway/stays' 80
        child=$(curl -s "$site/reap-status?json" | python3 -c "
import json, sys
print(next(r['pid'] for r in json.load(sys.stdin)['requests'] if '/stays' in r['uri']))")
        "$build/tools/ask/reap-ask" "$child" profile flames >"$tmp/svg" || complain "no flame graph"
        grep -q '<title>malloc for request /runaway/stays: ' "$tmp/svg" || complain "no box of the request"
    fi
    # Two megabytes that an interpreter keeps, by objects of a kilobyte: of five, one is sampled. A piece is, but for one in ten million.
    if [ "$2" = perl ]; then
        curl -s -o "$tmp/page" "$site/perl/report?n=1"
        within 60 perl_keeps || complain "perl keeps '$bytes'"
    fi
    rm -f "$dir/htdocs/stay"
    wait $client
    [ "$2" = off ] || shows 'request /runaway/leak' 100 'request /runaway/other' 30 request 50
    httpd_end_well
}

# The recipe of doc/deploying.md: the directive turns the profile on, in children that come later too, and off; nothing else
# is preloaded for it, and reap-ask asks for it.
profiled() {
    fresh_look
    ask '/reap-status?json'
    python3 -c "
import json, sys
held = sum(m['bytes'] for m in json.load(open('$tmp/body'))['mallocs'] if m['for'] == 'request /runaway/leak')
sys.exit(not $1 <= held <= $2)"
}
directive() {
    mpm=$1 mode="$1, the directive"
    reap_prepare "$tmp/directive" "$mpm" 'ReapStatus On' "Include $tmp/profile.conf"
    echo 'ReapProfile On' >"$tmp/profile.conf"
    export "$(sed -n 's/^    export \(REAP_OPTIONS=.*\)/\1/p' "$srcdir/doc/deploying.md")"
    httpd_start "$dir" "$(sed -n 's/^    export LD_PRELOAD=\(.*profile.*\)/\1/p' "$srcdir/doc/deploying.md" | sed "s,libreap-\([a-z]*\)\.so\.0,$httpd_libs/libreap-\1.so,g")"
    for state in On Off On; do
        [ "$state" = On ] && most=200000000 || most=0
        ask '/runaway/leak?leak=2000'
        within 60 profiled $((most / 2)) $most || complain "$state: $(grep -o '"mallocs":.\{300\}' "$tmp/body")"
        child=$(curl -s "http://127.0.0.1:$httpd_port/reap-status?json" | grep -o '"processes":\[{"pid":[0-9]*' | grep -o '[0-9]*$')
        "$build/tools/ask/reap-ask" "$child" profile >"$tmp/said" 2>&1 || complain "reap-ask $child profile"
        [ $most = 0 ] || grep -q '^profile: on' "$tmp/said" || complain "profile: $(head -n 1 "$tmp/said")"
        old=$(httpd_children)
        [ "$state" = On ] && echo 'ReapProfile Off' >"$tmp/profile.conf" || echo 'ReapProfile On' >"$tmp/profile.conf"
        kill -USR1 "$httpd_pid"
        within 60 renewed || complain "old children stay"
    done
    httpd_end_well
    reap_prepare "$tmp/alone" "$mpm" 'ReapStatus On' 'ReapProfile On'
    httpd_start "$dir" "$reaps"
    expect 1 "$(logged 'ReapProfile: the heap profile is not on: are libreap-malloc and libreap-profile preloaded' 1)" 'the line'
    httpd_end_well
}
renewed() { for each in $old; do ! kill -0 "$each" 2>/dev/null || return 1; done; }
as() {
    case $1 in
        directive) directive event ;;
        off) under event off ;;
        perl) lacks_file "$httpd_modules/mod_perl.so" "mod_perl (Debian: libapache2-mod-perl2)" || under prefork perl ;;
        *) under "$1" on ;;
    esac
}
at_once as ${1:-event worker prefork off perl directive}
exit $bad
