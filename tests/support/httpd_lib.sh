# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# A private httpd for tests: sourced, not run. It listens on 127.0.0.1 only, on a free port, lives
# in a temporary directory, and is stopped by its pid. Debian's unmodified apache2 is meant; the
# caller decides what is preloaded.
#
#     httpd_prepare DIR MPM        site and configuration
#     httpd_start DIR [PRELOAD]    answers once this returns; sets httpd_pid
#     httpd_stop DIR               waits until it is gone
#     httpd_children DIR           pids, the main process apart
#     httpd_memory KEY [PID...]    KiB, by a key of smaps_rollup; without a PID of all of them
#     httpd_pss                    the same of all, shared pages divided
#     httpd_log_is_clean DIR       says what is bad, and fails
#
#     ask PATH [curl's arguments]  sets status, body (its beginning), result (curl's); files $tmp/headers, $tmp/body
#     expect WANTED GOT [WHAT]     complains of what differs
#     logged PATTERN N             how many lines of the error log have it, once there are N, or after a moment
#     httpd_end_well [WHAT]        stops it, and complains of its error log
#
# Sets httpd_port (the site) and httpd_back (what it proxies to). script.sh's $tmp goes at exit with the server;
# HTTPD_KEEP=1 keeps it to be looked at. $mode says which server complaints are of.

APACHE2=${APACHE2:-$(PATH=$PATH:/usr/sbin command -v apache2)}
httpd_modules=${HTTPD_MODULES:-/usr/lib/apache2/modules}
. "${srcdir:-.}/tests/support/script.sh"
httpd_libs=${REAP_LIBDIR:-$build/.libs}
case $httpd_libs in /*) ;; *) httpd_libs=$PWD/$httpd_libs ;; esac
chmod 755 "$tmp" # the children of root run as another user
httpd_pid=
mode=
fail() { echo "FAILED: $*"; exit 1; }
complain() { wrong "${mode:+$mode: }$*"; }

httpd_require() {
    need_file "$APACHE2" apache2
    need_file "$httpd_modules/mod_mpm_event.so" "Apache's modules"
    need_file "$httpd_libs/libreap-apr.so" libreap-apr
    need curl
}

httpd_end() {
    [ -z "$httpd_pid" ] || kill -TERM "$httpd_pid" 2>/dev/null
    [ -z "${HTTPD_KEEP:-}" ] || { echo "kept: $tmp"; tmp=; }
}
at_exit=httpd_end

httpd_in_use() {
    hex=$(printf '%04X' "$1")
    awk -v port=":$hex" 'index($2, port) { found = 1 } END { exit !found }' /proc/net/tcp /proc/net/tcp6 2>/dev/null
}

# Two neighbouring ports that nobody uses, below those that connections get by themselves. Tests that run side by side
# choose before their servers listen: a file counts the calls in this build, so that each gets a pair of its own.
httpd_free_port() {
    from=$(printf %s "$build" | cksum | cut -d ' ' -f 1)
    for _ in $(seq 100); do
        turn=$({ flock 9 && echo >&9 && wc -l <"$build/httpd-ports"; } 9>>"$build/httpd-ports")
        httpd_port=$((10000 + (from + turn) % 11000 * 2))
        httpd_back=$((httpd_port + 1))
        httpd_in_use "$httpd_port" || httpd_in_use "$httpd_back" || return 0
    done
    fail "no free port"
}

httpd_make_site() {
    site=$1/htdocs
    mkdir -p "$site/big" "$site/cgi"
    echo '<p>hello</p>' >"$site/index.html"
    seq 1 2000 >"$site/page.txt"
    seq 1 100000 >"$site/large.txt"
    for i in $(seq 0 999); do echo "$i" >"$site/big/entry-with-a-name-$i.txt"; done
    echo '<i>part one</i>' >"$site/one.html"
    echo '<i>part two, <!--#echo var="DOCUMENT_NAME" --></i>' >"$site/two.shtml"
    cat >"$site/all.shtml" <<'END'
<!--#set var="name" value="reap" --><!--#include virtual="one.html" -->
<!--#if expr="v('name') = 'reap'" -->yes <!--#echo var="name" --><!--#else -->no<!--#endif -->
<!--#include virtual="two.shtml" --> <!--#fsize file="page.txt" --> <!--#include virtual="cgi/hello.cgi?x=1" -->
END
    cat >"$site/cgi/hello.cgi" <<'END'
#!/bin/sh
printf 'Content-Type: text/plain\r\nX-Script: yes\r\n\r\nquery %s method %s\n' "$QUERY_STRING" "$REQUEST_METHOD"
[ "$REQUEST_METHOD" = POST ] && cat
exit 0
END
    chmod 755 "$site/cgi/hello.cgi"
    find "$site" -exec touch -d '2020-01-01 00:00:00 UTC' {} +
}

# The number of workers is fixed, so that memory can be compared, and ample: event closes idle
# connections when all are busy, which a client may take for a failure.
httpd_mpm_settings() {
    case $1 in
        prefork) cat <<'END' ;;
ServerLimit 40
StartServers 40
MinSpareServers 40
MaxSpareServers 40
MaxRequestWorkers 40
END
        *) cat <<'END' ;;
ServerLimit 2
StartServers 2
ThreadsPerChild 40
ThreadLimit 40
MinSpareThreads 80
MaxSpareThreads 80
MaxRequestWorkers 80
END
    esac
}

# mod_http2 wants a threaded MPM.
httpd_mpm_modules() {
    case $1 in
        prefork) echo cgi ;;
        *) echo cgid http2 proxy_http2 ;;
    esac
}

httpd_configure() {
    dir=$1 mpm=$2
    modules="mpm_$mpm authz_core authz_host mime dir autoindex include filter env setenvif alias status headers
        deflate negotiation rewrite proxy proxy_http $(httpd_mpm_modules "$mpm")"
    {
        for module in $modules; do echo "LoadModule ${module}_module $httpd_modules/mod_$module.so"; done
        httpd_mpm_settings "$mpm"
        cat <<END
ServerRoot $dir
ServerName localhost
Listen 127.0.0.1:$httpd_port
Listen 127.0.0.1:$httpd_back
PidFile $dir/httpd.pid
DefaultRuntimeDir $dir
Mutex file:$dir default
ErrorLog $dir/error.log
LogLevel notice
ServerSignature Off
ExtendedStatus On
Timeout 30
KeepAlive On
MaxKeepAliveRequests 0
KeepAliveTimeout 2
# Mapped files and h2 together can crash stock httpd.
EnableMMAP Off
DocumentRoot $dir/htdocs
TypesConfig /etc/mime.types
DirectoryIndex index.html
AddType text/html .shtml
AddOutputFilter INCLUDES .shtml
IndexOptions FancyIndexing NameWidth=* DescriptionWidth=* HTMLTable
<IfModule unixd_module>
$([ "$(id -u)" != 0 ] || printf 'User www-data\nGroup www-data\n')
</IfModule>
<IfModule cgid_module>
ScriptSock $dir/cgid.sock
</IfModule>
<Directory $dir/htdocs>
Options Indexes Includes ExecCGI
Require all granted
AddHandler cgi-script .cgi
</Directory>
<Location /server-status>
SetHandler server-status
</Location>
<Location /packed>
SetOutputFilter DEFLATE
</Location>
Alias /packed $dir/htdocs
RewriteEngine On
RewriteRule ^/rewritten/([a-z]+)\$ /\$1.txt [PT]
ProxyPass /proxied/ http://127.0.0.1:$httpd_back/
<IfModule proxy_http2_module>
ProxyPass /proxied-h2/ h2c://127.0.0.1:$httpd_back/
</IfModule>
<VirtualHost 127.0.0.1:$httpd_back>
<IfModule http2_module>
Protocols h2c http/1.1
</IfModule>
</VirtualHost>
END
    } >"$dir/httpd.conf"
}

httpd_prepare() {
    httpd_free_port
    httpd_make_site "$1"
    httpd_configure "$1" "$2"
    chmod 755 "$1"
}

httpd_start() {
    dir=$1 preload=${2:-}
    [ -x "$APACHE2" ] || fail "no apache2"
    # In a session of its own: prefork signals its whole process group.
    setsid env ${preload:+"LD_PRELOAD=$preload"} LD_LIBRARY_PATH="$httpd_libs" "$APACHE2" -f "$dir/httpd.conf" \
        -DFOREGROUND >>"$dir/stdout" 2>>"$dir/stderr" &
    httpd_pid=$!
    within 60 httpd_answers_or_ends
    httpd_answers && return
    cat "$dir/stderr" "$dir/error.log" 2>/dev/null
    fail "httpd does not answer on port $httpd_port"
}
# It has the port, not another program: it writes its pid once it listens.
httpd_answers() {
    grep -sqx "$httpd_pid" "$dir/httpd.pid" && curl -s -o "$dir/ready" "http://127.0.0.1:$httpd_port/index.html"
}
httpd_answers_or_ends() { httpd_answers || is_gone "$httpd_pid"; }
is_gone() { ! kill -0 "$1" 2>/dev/null; }

httpd_children() { pgrep -P "$httpd_pid"; }
httpd_memory() {
    key=$1
    shift
    [ $# -gt 0 ] || set -- "$httpd_pid" $(httpd_children)
    for pid; do cat "/proc/$pid/smaps_rollup"; done 2>/dev/null |
        awk -v key="$key:" '$1 == key { sum += $2 } END { print sum }'
}
httpd_pss() { httpd_memory Pss; }
httpd_has() { [ "$(httpd_children | wc -l)" = "$1" ]; }

# What a server leaves behind: its children must be gone with it. Stopped by WINCH, which lets requests end:
# by TERM the event MPM closes sockets of connections that its threads are just done with, and crashes
# now and then, stock as it is (apr_os_sock_get of a socket whose pool is gone).
httpd_stop() {
    children=$(httpd_children)
    kill -WINCH "$httpd_pid" 2>/dev/null
    within 30 is_gone "$httpd_pid"
    kill -TERM "$httpd_pid" 2>/dev/null
    wait "$httpd_pid" 2>/dev/null
    httpd_pid= # soon it may be another program's, and httpd_end would end that
    for child in $children; do within 30 is_gone "$child" || fail "child $child outlives the server"; done
}

# The crash of a child, an abort of ours, a child that had to be killed, an emergency.
httpd_log_is_clean() {
    wrong_lines='AH0005[0-3]|exit signal|[Ss]egmentation|core dump|still did not exit|could not make child|:emerg\]|:crit\]'
    ! grep -E "$wrong_lines|:alert\\]" "$1/error.log" || return 1
    ! grep -E '(^|\] )reap: ' "$1/error.log" "$1/stderr"
}

httpd_end_well() {
    httpd_stop
    httpd_log_is_clean "$dir" || complain "${1:+$1: }the error log"
}

# --- asking -----------------------------------------------------------------------------------

# $base stands before each path.
base=
ask() {
    path=$1
    shift
    # shellcheck disable=SC2034  # for those who source this
    status=$(curl -s --max-time 60 -D "$tmp/headers" -o "$tmp/body" -w '%{http_code}' "$@" \
        "http://127.0.0.1:${port:-$httpd_port}$base$path") && result=0 || result=$?
    # shellcheck disable=SC2034
    body=$(head -c 4000 "$tmp/body" 2>/dev/null | tr -d '\000')
}
header() { sed -n "s/^$1: //Ip" "$tmp/headers" | tr -d '\r'; }
expect() { [ "$2" = "$1" ] || complain "${3:-$path}: got '$(printf %.200s "$2" | tr '\n' '|')', not '$1'"; }
logged() {
    within 60 has "$2" "$dir/error.log" "$1"
    grep -cE "$1" "$dir/error.log"
}
