#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# mod_reap with bad input: directives that must be refused in one clear line, requests that attack reap-status, a
# stranger at a child's address, and a directory without access.
. "${srcdir:-.}/tests/apache/mod_reap_lib.sh"

# --- directives ----------------------------------------------------------------------------------------

# What httpd is to say of each line that it refuses, after a colon and a blank. CONF is the name of the file.
refused() {
    for size in 0 0M -1 -5M +5M 1.5M 0x10 lots M 1X 1MB 1e6 9223372036854775808 9007199254740992K 99999999999999999999G off; do
        echo "ReapLimitRequest $size: ReapLimitRequest: '$size' is not a size"
    done
    for name in ReapLimitHard ReapLimitConnection; do
        for size in 0 -1G lots; do echo "$name $size: $name: '$size' is not a size"; done
    done
    for size in 0 -1G lots 99999999999G; do echo "ReapChildLimit $size: ReapChildLimit: '$size' is not a size"; done
    for n in 0 -1 +5 many 1000K 4294967296 99999999999999999999; do
        echo "ReapChildLimit 800M after $n: ReapChildLimit: '$n' is not a number of requests above 0"
    done
    for status in 200 404 -500 5000; do
        echo "ReapLimitAction deny $status: ReapLimitAction: '$status' is not a status to deny with"
    done
    for word in limit exit off; do echo "ReapReport off $word: ReapReport: off stands alone, not beside '$word'"; done
    cat <<'END'
ReapStatus maybe: ReapStatus must be On or Off
ReapStatus: ReapStatus must be On or Off
<Location /x>|ReapStatus On|</Location>: ReapStatus not allowed in
ReapLimitRequest: ReapLimitRequest takes one argument
ReapLimitRequest 1M 2M: ReapLimitRequest takes one argument
ReapLimitRequest "5 M": ReapLimitRequest: '5 M' is not a size
ReapLimitRequest "": ReapLimitRequest takes one argument
<Location /x>|ReapLimitConnection 1M|</Location>: ReapLimitConnection not allowed in
ReapLimitRequest 8M|ReapLimitHard 8M: ReapLimitHard must be above ReapLimitRequest: 8388608 (CONF:2) is not above 8388608 (CONF:1) in the server
ReapLimitHard 4M|ReapLimitRequest 8M: ReapLimitHard must be above ReapLimitRequest: 4194304 (CONF:1) is not above 8388608 (CONF:2) in the server
ReapLimitRequest 2M|<Location /x>|ReapLimitHard 1M|</Location>: 1048576 (CONF:3) is not above 2097152 (CONF:1) in /x
<Directory /x>|ReapLimitHard 1M|</Directory>|ReapLimitRequest 2M: 1048576 (CONF:2) is not above 2097152 (CONF:4) in /x
ReapLimitHard 1M|<LocationMatch "^/x">|ReapLimitRequest 2M|</LocationMatch>: 1048576 (CONF:1) is not above 2097152 (CONF:3) in ^/x
<Location /x>|ReapLimitRequest 2M|ReapLimitHard 1M|</Location>: 1048576 (CONF:3) is not above 2097152 (CONF:2) in /x
<Location /x>|ReapLimitRequest 2M|</Location>|<Location /x/y>|ReapLimitHard 1M|</Location>: 1048576 (CONF:5) is not above 2097152 (CONF:2) in /x/y
<Directory /x/y>|ReapLimitHard 1M|</Directory>|<Directory /x>|ReapLimitRequest 2M|</Directory>: 1048576 (CONF:2) is not above 2097152 (CONF:5) in /x/y
<Directory />|ReapLimitRequest 2M|</Directory>|<DirectoryMatch "^/x">|ReapLimitHard 1M|</DirectoryMatch>: 1048576 (CONF:5) is not above 2097152 (CONF:2) in ^/x
<Directory /x>|ReapLimitRequest 2M|<Files "a*">|ReapLimitHard 1M|</Files>|</Directory>: 1048576 (CONF:4) is not above 2097152 (CONF:2) in a*
<Files a>|ReapLimitRequest 2M|<If "true">|ReapLimitHard 1M|</If>|</Files>: 1048576 (CONF:4) is not above 2097152 (CONF:2) in *If
ReapLimitRequest 2M|<VirtualHost *:1>|ServerName a.shop|ReapLimitHard 1M|</VirtualHost>: 1048576 (CONF:4) is not above 2097152 (CONF:1) in virtual host a.shop
ReapLimitHard 1M|<VirtualHost *:1>|<Location /x>|ReapLimitRequest 2M|</Location>|ServerName b.shop|</VirtualHost>: 1048576 (CONF:1) is not above 2097152 (CONF:4) in /x of virtual host b.shop
ReapLimitRequest 2M|<VirtualHost 127.0.0.1:1>|ReapLimitHard 1M|</VirtualHost>: 1048576 (CONF:3) is not above 2097152 (CONF:1) in virtual host
ReapChildLimit: ReapChildLimit takes one or three arguments
ReapChildLimit 800M after: ReapChildLimit takes one or three arguments
ReapChildLimit 800M 1000: ReapChildLimit takes one or three arguments
ReapChildLimit 800M before 1000: ReapChildLimit: 'before' is not the word after, as in 800M after 1000
ReapChildLimit 1M: ReapChildLimit: 1048576 is not above the
ReapChildLimit 1 after 1000: ReapChildLimit: 1 is not above the
<Location /x>|ReapChildLimit 800M|</Location>: ReapChildLimit not allowed in
<Directory /x>|ReapChildLimit 800M|</Directory>: ReapChildLimit not allowed in
<VirtualHost *:1>|ReapChildLimit 800M|</VirtualHost>: ReapChildLimit: is for the main server: a child serves all virtual hosts
ReapLimitAction: ReapLimitAction takes 1-2 arguments
ReapProfile maybe: ReapProfile must be On or Off
<VirtualHost *:1>|ReapProfile On|</VirtualHost>: ReapProfile: is for the main server
ReapLimitAction kill: ReapLimitAction: 'kill' is not log, close or deny
ReapLimitAction log 500: ReapLimitAction: a status goes with deny, not with log
ReapLimitAction close 503: ReapLimitAction: a status goes with deny, not with close
ReapLimitAction deny 500 503: ReapLimitAction takes 1-2 arguments
ReapReport: ReapReport takes 1-2 arguments
ReapReport all: ReapReport: 'all' is not off, or limit, exit or both
ReapReport limit off: ReapReport: off stands alone, not beside 'limit'
ReapReport all off: ReapReport: 'all' is not off, or limit, exit or both
ReapReport limit exit off: ReapReport takes 1-2 arguments
<Location /x>|ReapReport exit|</Location>: ReapReport: exit is for the main server
<VirtualHost *:1>|ReapReport exit|</VirtualHost>: ReapReport: exit is for the main server
ReapUnknown On: Invalid command 'ReapUnknown'
END
}

taken() {
    cat <<'END'
ReapStatus On
ReapStatus off
ReapProfile On
ReapLimitRequest 1
ReapLimitRequest 65536
ReapLimitRequest 1k
ReapLimitRequest 64m
ReapLimitRequest 8589934591G
ReapLimitRequest none
ReapLimitRequest NONE
ReapLimitConnection 1G
ReapChildLimit 800M
ReapChildLimit 800m AFTER 1000
ReapChildLimit none
ReapChildLimit 1M|ReapChildLimit none
ReapLimitRequest 8M|ReapLimitHard 9M
ReapLimitHard none|ReapLimitRequest 8M
ReapLimitAction log
ReapLimitAction CLOSE
ReapLimitAction deny
ReapLimitAction deny 413
ReapLimitAction deny 500
ReapLimitAction deny 503
ReapReport off
ReapReport limit
ReapReport exit limit
<VirtualHost *:1>|ReapStatus On|ReapLimitConnection 2M|ReapLimitRequest 1M|</VirtualHost>
<Location /x>|ReapLimitRequest 1M|ReapLimitHard 3M|ReapLimitAction deny 413|ReapReport limit|</Location>
<Directory />|ReapLimitRequest none|</Directory>
ReapLimitHard 1M|<Location /x>|ReapLimitRequest 2M|ReapLimitHard 4M|</Location>
ReapLimitRequest 2M|<Location /x>|ReapLimitHard 1M|ReapLimitRequest none|</Location>
<Location /x>|ReapLimitRequest 2M|</Location>|<Location /xy>|ReapLimitHard 1M|</Location>
<Location /x/y>|ReapLimitRequest 2M|</Location>|<Location /x/z>|ReapLimitHard 1M|</Location>
<LocationMatch "^/x">|ReapLimitRequest 2M|</LocationMatch>|<Location /x>|ReapLimitHard 1M|</Location>
<Directory /x>|ReapLimitHard 1M|</Directory>|<Directory /x/y>|ReapLimitHard 4M|ReapLimitRequest 2M|</Directory>
<If "true">|ReapLimitRequest 2M|</If>|<Else>|ReapLimitHard 1M|</Else>
<VirtualHost *:1>|ReapLimitRequest 2M|</VirtualHost>|<VirtualHost *:2>|ReapLimitHard 1M|</VirtualHost>
END
}

configtest() {
    { cat "$dir/httpd.conf"; echo "Include $dir/lines.conf"; } >"$dir/test.conf"
    printf '%s\n' "$1" | tr '|' '\n' >"$dir/lines.conf"
    "$APACHE2" -t -f "$dir/test.conf" >"$tmp/complaint" 2>&1
}

check_directives() {
    mode=directives
    reap_prepare "$tmp/directives" event
    n=0
    while IFS= read -r line; do
        n=$((n + 1))
        said=${line#*: }
        line=${line%%: *}
        ! configtest "$line" || complain "'$line' was taken"
        sed "s,$dir/lines.conf,CONF,g" "$tmp/complaint" | grep -qF -- "$said" || complain "'$line': $(cat "$tmp/complaint")"
        # httpd's own line names the place; ours is the one after it
        [ "$(grep -vc '^AH' "$tmp/complaint")" -le 2 ] || complain "'$line': more than a line: $(cat "$tmp/complaint")"
    done <<END
$(refused)
END
    while IFS= read -r line; do
        n=$((n + 1))
        configtest "$line" || complain "'$line': $(cat "$tmp/complaint")"
    done <<END
$(taken)
END
    echo "$n configurations"
    for line in 'ReapLimitRequest 64' '<Location /x>|ReapLimitHard 100|</Location>' 'ReapLimitConnection 10K'; do
        configtest "$line" && grep -q "lines.conf:[12]) are less than any request has" "$tmp/complaint" || complain "'$line': $(cat "$tmp/complaint")"
    done
    configtest 'ReapLimitRequest 64K' && ! grep -q 'less than' "$tmp/complaint" || complain "64K: $(cat "$tmp/complaint")"
    # The check takes a second for 300 hosts with 4,000 sections, and of CPU time a minute at most; their squares took four.
    seq -f 'ReapLimitHard 900M|<Location /section/%.0f>|ReapLimitRequest 8M|</Location>' 4000 >"$tmp/many"
    seq -f '<VirtualHost *:%.0f>|ReapLimitRequest 9M|</VirtualHost>' 300 >>"$tmp/many"
    (ulimit -t 60 && configtest "$(tr '\n' '|' <"$tmp/many")") || complain "many sections: $(tail -n 1 "$tmp/complaint")"
    # Users have no say.
    reap_prepare "$tmp/htaccess" event "<Directory $tmp/htaccess/htdocs>" 'AllowOverride All' '</Directory>'
    echo 'ReapLimitRequest none' >"$dir/htdocs/.htaccess"
    "$APACHE2" -t -f "$dir/httpd.conf" 2>"$tmp/complaint" || complain "$(cat "$tmp/complaint")"
    chmod -R a+rX "$dir/htdocs"
    setsid "$APACHE2" -f "$dir/httpd.conf" -DFOREGROUND 2>/dev/null &
    httpd_pid=$!
    within 30 httpd_in_use "$httpd_port" || fail "httpd does not start"
    ask /page.txt
    expect 500 "$status" 'a limit in .htaccess'
    expect 1 "$(logged 'ReapLimitRequest not allowed here' 1)" 'the line for .htaccess'
    httpd_stop
    httpd_pid=
}

# --- attacks -----------------------------------------------------------------------------------------------

# Many at once, for each of which a look would be due, with long queries, and clients that go away.
check_many() {
    curl -s -Z --no-progress-meter --parallel-max 30 -o /dev/null -w '%{http_code}\n' --max-time 60 \
        "http://127.0.0.1:$httpd_port/reap-status?json&$(printf '%06000d' 0)[1-600]" >"$tmp/many" 2>&1
    expect 600 "$(grep -cx 200 "$tmp/many")" 'status requests at once'
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        curl -s --max-time 0.01 -o /dev/null "http://127.0.0.1:$httpd_port/reap-status?json"
        printf 'GET /reap-status?json HTTP/1.1\r\nHost: x\r\n' | timeout 10 python3 -c "
import socket, sys
s = socket.create_connection(('127.0.0.1', $httpd_port)); s.send(sys.stdin.buffer.read()); s.close()"
    done
    ask '/reap-status?json'
    expect 200 "$status" 'after the attack'
}

# The pool of an answer that nobody reads stays, and others have theirs.
check_slow_reader() {
    python3 -c "
import socket, time
clients = []
for _ in range(10):
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
    s.connect(('127.0.0.1', $httpd_port))
    s.send(b'GET /reap-status?json HTTP/1.1\r\nHost: x\r\n\r\n' * 5)
    clients.append(s)
time.sleep(3)" &
    slow=$!
    sleep 0.5
    ask '/reap-status?auto'
    expect 200 "$status" 'beside slow readers'
    wait "$slow"
}

# A name in the tree cannot break the JSON, and no URI can.
check_strange() {
    ask '/runaway?sleep=1200&"<>\%ff%00%22' --globoff &
    asked=$!
    sleep 0.6
    printf 'GET /runaway?sleep=1000&\\"\377\200<b> HTTP/1.1\r\nHost: "\\<i>\r\n\r\n' |
        timeout 2 python3 -c "
import socket, sys, time
s = socket.create_connection(('127.0.0.1', $httpd_port)); s.send(sys.stdin.buffer.read()); time.sleep(1)" &
    strange=$!
    sleep 0.4
    curl -s "http://127.0.0.1:$httpd_port/reap-status?json" >"$tmp/strange"
    python3 -B "$srcdir/tests/apache/mod_reap_status.py" json "$tmp/strange" || complain "strange URIs"
    ! grep -q '[<>]' "$tmp/strange" || complain "a document has angle brackets"
    wait "$asked" "$strange"
    curl -s "http://127.0.0.1:$httpd_port/reap-status?json" |
        python3 -c 'import json, sys; assert "/straße/€/😀" in json.load(sys.stdin)["settings"]["limits"][0]["where"]' || complain "UTF-8 in JSON"
    curl -s "http://127.0.0.1:$httpd_port/reap-status?prometheus" | grep -q 'where="<Location .*/straße/€/😀' || complain "UTF-8 in Prometheus"
}

# Where a child's address is taken by another program, that program is not believed.
check_stranger() {
    mode="$mpm, a stranger"
    name=$(sed -n 's/.*\(@reap-httpd[.0-9a-f]*\).*/\1/p' /proc/net/unix | grep "httpd.$httpd_pid" | head -n 1)
    [ -n "$name" ] || { complain "no child listens"; return; }
    python3 -c "
import json, os, resource, selectors, signal, socket, threading, time, urllib.request
def document():
    return json.load(urllib.request.urlopen('http://127.0.0.1:$httpd_port/reap-status?json', timeout=10))
def forge():
    while True:
        for key, _ in selector.select():
            client = key.fileobj.accept()[0]
            client.sendall(b'pools\\t7\\t987654321\\t0\\t0\\t7\\nend\\n')
            client.close()
def take(pid):
    s = socket.socket(socket.AF_UNIX)
    try:
        s.bind('\0' + prefix[1:] + '.%d' % pid)
        s.listen()
        selector.register(s, selectors.EVENT_READ)
    except OSError:
        s.close()
def silent_ones():
    return [p for p in document()['processes'] if p['pid'] != 0 and p['state'] == 'silent']
selector = selectors.DefaultSelector()
prefix = '$name'.rsplit('.', 1)[0]
threading.Thread(target=forge, daemon=True).start()
most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
# Addresses of pids that are likely to come: the stranger is there first. Another program may take the pids.
silent = []
for attempt in range(8):
    last = int(open('/proc/loadavg').read().split()[-1])
    for pid in range(last + 1, last + 1 + min(2000, (most - 100) // 8)): take(pid)
    os.kill($httpd_pid, signal.SIGUSR1)
    for look in range(20):
        time.sleep(0.2)
        silent = silent_ones()
        if silent: break
    if silent: break
print(attempt, len(silent))
assert silent, 'the stranger took no address'
assert all(p['pools']['bytes'] == 0 and p['backend'] is None and not p['tree'] for p in silent), silent
" >"$tmp/said" 2>&1 || complain "$(tail -n 2 "$tmp/said")"
    [ "$(logged 'this child cannot be asked' 1)" -ge 1 ] || complain "no line about the address"
}

attack() {
    mpm=$1 mode="$1, attacks"
    reap_prepare "$tmp/$mpm" "$mpm" 'ReapStatus On' '<Location /reap-status/closed>' 'SetHandler reap-status' \
        'Require all denied' '</Location>' '<Location "/straße/€/😀">' 'ReapLimitRequest 900M' '</Location>'
    httpd_start "$dir" "$reaps"
    check_many
    check_slow_reader
    check_strange
    ask '/reap-status/closed?json'
    expect 403 "$status" 'access'
    check_stranger
    httpd_end_well
}

check_directives
for mpm in ${1:-event worker prefork}; do attack "$mpm"; done
exit $bad
