#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# doc/deploying.md on Debian, step by step, in a copy of /etc/apache2 with its own ports and directories: modules by
# a2enmod, the preload in envvars, configtest, start, graceful restarts under load, rotated logs, stop, and the way
# back. DEPLOY_ROOT names a directory with the unpacked package (dpkg -x apache2_*.deb DIR), where it is not installed.
. "${srcdir:-.}/tests/support/httpd_lib.sh"

root=${DEPLOY_ROOT:-}
[ -x "$root/usr/sbin/apache2ctl" ] && [ -e "$root/etc/apache2/envvars" ] ||
    { absent apache2ctl; exit 77; }
need perl
httpd_require

# --- Debian's server in $tmp ------------------------------------------------------------------------

export APACHE_CONFDIR="$tmp/etc" APACHE_STATE_DIRECTORY="$tmp/state"
export APACHE_STARTED_BY_SYSTEMD=true # so that apachectl asks no systemd to start the system's own server
ctl() { LD_LIBRARY_PATH=$httpd_libs "$root/usr/sbin/apache2ctl" "$@" >"$tmp/said" 2>&1; }

# enable_modules NAME...: a2enmod finds what it does by its own name
enable_modules() { "$root/usr/sbin/a2enmod" -q "$@" >"$tmp/said" 2>&1 || { cat "$tmp/said"; fail "a2enmod $*"; }; }

prepare() {
    cp -r "$root/etc/apache2" "$APACHE_CONFDIR"
    mkdir "$tmp/log" "$tmp/www"
    sed -i "s|^\(export APACHE_[A-Z_]*=\)/var/|\1$tmp/var/|; s|^\(export APACHE_LOG_DIR=\).*|\1$tmp/log|" "$APACHE_CONFDIR/envvars"
    mkdir -p "$tmp/var/run" "$tmp/var/lock"
    [ "$(id -u)" = 0 ] || sed -i "s/^\(export APACHE_RUN_USER\)=.*/\1=$(id -un)/; s/^\(export APACHE_RUN_GROUP\)=.*/\1=$(id -gn)/" \
        "$APACHE_CONFDIR/envvars"
    httpd_free_port
    echo "Listen 127.0.0.1:$httpd_port" >"$APACHE_CONFDIR/ports.conf"
    cat >"$APACHE_CONFDIR/sites-enabled/site.conf" <<END
ServerName localhost
LogLevel notice
DocumentRoot $tmp/www
CustomLog \${APACHE_LOG_DIR}/access.log combined
CustomLog "|$(command -v rotatelogs) $tmp/log/piped.log 86400" common
<Directory $tmp/www>
Require all granted
</Directory>
END
    ! lacks rotatelogs "piped logs" || sed -i '/piped/d' "$APACHE_CONFDIR/sites-enabled/site.conf"
    seq 1 2000 >"$tmp/www/page.txt"
    enable_modules mpm_event authz_core authz_host mime dir env alias status
}

# The packages' own files, with the modules of the build.
add_modules() {
    modules=
    for module in reap reap_lua; do
        built=$build/apache_module/.libs/mod_$module.so
        ! lacks_file "$built" "mod_$module" "a2enmod $module" || continue
        sed "s|/usr/lib/apache2/modules/mod_$module.so|$built|" "$srcdir/debian/$module.load" >"$APACHE_CONFDIR/mods-available/$module.load"
        cp "$srcdir/debian/$module.conf" "$APACHE_CONFDIR/mods-available/"
        enable_modules $module
        modules="$modules $module"
    done
}

# The lines for envvars, as the page has them.
add_preload() {
    sed -n '/^    # reap:/,/^$/s/^    //p' "$srcdir/doc/deploying.md" >"$tmp/lines"
    grep -q LD_PRELOAD "$tmp/lines" || fail "doc/deploying.md has no lines for envvars"
    cat "$tmp/lines" >>"$APACHE_CONFDIR/envvars"
    option=$(sed -n 's/.*`\(export REAP_OPTIONS=ask=[^`]*\)`.*/\1/p' "$srcdir/doc/deploying.md")
    # shellcheck disable=SC2016  # a line for envvars
    [ -n "$option" ] && printf '%s\n' "$option" 'export LD_PRELOAD="$LD_PRELOAD:libreap-ask.so.0"' >>"$APACHE_CONFDIR/envvars"
}

# --- asking -----------------------------------------------------------------------------------------

pid_of_server() { httpd_pid=$(cat "$tmp/var/run/apache2/apache2.pid" 2>/dev/null); }
answers() { curl -s -o "$tmp/got" "http://127.0.0.1:$httpd_port/page.txt" && cmp -s "$tmp/got" "$tmp/www/page.txt"; }

# until_ WHAT COMMAND...: within 100 s
until_() {
    what=$1
    shift
    within 100 "$@" || { cat "$tmp/log/error.log"; fail "not within 100 s: $what"; }
}

start() {
    ctl start || { cat "$tmp/said"; fail "apachectl start"; }
    until_ "the server answers" answers
    pid_of_server
}

stop() {
    pid_of_server
    pid=$httpd_pid children=$(httpd_children)
    ctl graceful-stop || { cat "$tmp/said"; fail "apachectl graceful-stop"; }
    for each in $pid $children; do until_ "process $each ends" is_gone "$each"; done
    httpd_pid=
}

# on_reaps yes|no: as the page says to look. The process of a log gets its libraries a moment after its exec.
on_reaps() {
    for pid in $httpd_pid $(httpd_children); do
        within 60 is_on_reaps "$1" "$pid" || fail "on reaps: not $1, of process $pid ($(tr '\0' ' ' <"/proc/$pid/cmdline"))"
    done
}
is_on_reaps() {
    maps=$(cat "/proc/$2/maps" 2>/dev/null)
    [ -n "$maps" ] || return 0 # a child of before the restart has just ended
    case $maps in *libreap-apr*) [ "$1" = yes ] ;; *) [ "$1" = no ] ;; esac
}

clean_log() {
    ! grep -hE 'exit signal|[Ss]egmentation|:emerg|:alert|:crit|still did not exit|(^|\] )reap: ' "$tmp"/log/error.log* || fail "$1: the error log"
}

# --- steps ------------------------------------------------------------------------------------------

check_configtest() {
    ctl configtest || { cat "$tmp/said"; fail "configtest"; }
    grep -q 'Syntax OK' "$tmp/said" || fail "configtest says $(cat "$tmp/said")"
    # The preload applies to it, and it sees the modules' directives.
    LD_DEBUG=files LD_DEBUG_OUTPUT="$tmp/debug" ctl configtest
    grep -qs 'calling init: .*libreap-apr' "$tmp"/debug.* || fail "configtest runs without the preload"
    rm -f "$tmp"/debug.*
    echo 'ReapLuaMaxMemory much' >"$APACHE_CONFDIR/conf-enabled/bad.conf"
    if ctl configtest; then fail "configtest takes a bad directive"; fi
    # A reload with a bad configuration leaves the running server alone.
    if ctl graceful; then fail "graceful takes a bad directive"; fi
    rm "$APACHE_CONFDIR/conf-enabled/bad.conf"
}

# load SECONDS: requests one after the other on eight connections, as many as there is time for
load() {
    end=$(($(date +%s) + $1))
    while [ "$(date +%s)" -lt $end ]; do
        curl -s -Z --no-progress-meter --parallel-max 8 --max-time 30 -o /dev/null -w '%{http_code} %{size_download}\n' \
            "http://127.0.0.1:$httpd_port/page.txt?[1-200]" 2>>"$tmp/curl"
    done >>"$tmp/codes"
}

# rotate: as /etc/logrotate.d/apache2 does it, without waiting for a day
rotate() {
    for log in "$tmp"/log/access.log "$tmp"/log/error.log; do mv "$log" "$log.1"; done
    ctl graceful || { cat "$tmp/said"; fail "graceful after a rotation"; }
}

# The page: each process answers reap-ask, where its option is in envvars, too.
check_asking() {
    ask=${top_builddir:-.}/tools/ask/reap-ask
    for pid in $httpd_pid $(httpd_children); do within 60 tells_tags "$pid" || { cat "$tmp/said"; fail "reap-ask $pid"; }; done
}
tells_tags() { LD_LIBRARY_PATH=$httpd_libs "$ask" "$1" tags >"$tmp/said" 2>&1 && grep -q '[0-9]' "$tmp/said"; }

all_are_logged() { [ "$(cat "$tmp"/log/access.log* | grep -c 'GET /page.txt?')" = "$requests" ]; }
check_load() {
    : >"$tmp/codes"
    load 8 &
    loader=$!
    for n in 1 2 3 4 5; do
        sleep 1
        if [ $n = 3 ]; then rotate; else ctl graceful || { cat "$tmp/said"; fail "graceful $n"; }; fi
    done
    wait $loader
    requests=$(wc -l <"$tmp/codes")
    size=$(wc -c <"$tmp/www/page.txt")
    failed=$(grep -cvx "200 $size" "$tmp/codes")
    echo "$requests requests, 5 graceful restarts and a rotation among them: $failed failed"
    [ "$failed" = 0 ] && [ "$requests" -ge 200 ] || { sort "$tmp/codes" | uniq -c | head; tail -n 3 "$tmp/curl"; fail "failed requests"; }
    until_ "the new log has lines" test -s "$tmp/log/access.log"
    until_ "a line in the logs for each of $requests requests" all_are_logged
    grep -q 'GET /page.txt?' "$tmp"/log/piped.log* 2>/dev/null || ! grep -q piped "$APACHE_CONFDIR/sites-enabled/site.conf" ||
        fail "nothing in the log that rotatelogs writes"
    on_reaps yes
    clean_log "under load"
}

# Off in one step, which takes a stop and a start: a reload keeps the process, and so its environment.
check_off() {
    sed -i '/LD_PRELOAD/s/^/#/' "$APACHE_CONFDIR/envvars"
    ctl graceful || fail "graceful"
    until_ "the server answers" answers
    on_reaps yes
    ctl restart || fail "restart"
    until_ "the server answers" answers
    on_reaps yes
    stop
    start
    on_reaps no
    [ -z "$modules" ] || answers || fail "the modules without the preload"
    stop
}

# A library that is not there: the server starts on stock pools, and ld.so says so.
check_missing() {
    sed -i '/LD_PRELOAD/d' "$APACHE_CONFDIR/envvars"
    echo 'export LD_PRELOAD=libreap-none.so.0' >>"$APACHE_CONFDIR/envvars"
    start
    grep -q "libreap-none.so.0.*cannot be preloaded" "$tmp/said" || fail "nobody says that a library is missing"
    on_reaps no
    stop
}

prepare
ctl configtest || { cat "$tmp/said"; fail "Debian's configuration by itself"; }
add_modules
add_preload
check_configtest
start
on_reaps yes
check_asking
check_load
check_off
check_missing
clean_log "at the end"
