#!/bin/sh
# An unmodified apache2 on its stock pools, malloc by libreap-malloc: pages, a listing, a long file,
# a child that is stopped. (The pools themselves are the matter of libreap-apr and its tests.)
. "${srcdir:-.}/tests/preload-lib.sh"
APACHE2=${APACHE2:-$(PATH=$PATH:/usr/sbin command -v apache2)}
need "${APACHE2:-apache2}" curl python3
modules=${APACHE_MODULES:-/usr/lib/apache2/modules}

# shellcheck disable=SC2034  # run by the trap of preload-lib
at_exit='[ ! -e "$tmp/pid" ] || kill "$(cat "$tmp/pid")" 2>/dev/null'
free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

configure() {
    mkdir site site/listing logs
    seq 1 40000 >site/long.txt
    echo '<h1>one page</h1>' >site/index.html
    for i in $(seq 200); do echo "$i" >"site/listing/file-$i"; done
    touch -d '2001-01-01' site/listing/*
    for module in mpm_event authz_core dir autoindex mime deflate filter unixd; do
        # what is built in has no file
        [ ! -e "$modules/mod_$module.so" ] || echo "LoadModule ${module}_module $modules/mod_$module.so"
    done
    cat <<CONF
Listen 127.0.0.1:$port
ServerName localhost
ServerRoot $PWD
PidFile $tmp/pid
ErrorLog logs/error
DocumentRoot $PWD/site
DirectoryIndex index.html
IndexOptions FancyIndexing
TypesConfig /dev/null
StartServers 2
ServerLimit 2
ThreadsPerChild 8
MaxRequestWorkers 16
<Location />
    SetOutputFilter DEFLATE
</Location>
CONF
    [ "$(id -u)" != 0 ] || printf 'User www-data\nGroup www-data\n'
}

# A port may be taken between the look and the start: another is tried then.
start() {
    for _ in 1 2 3; do
        port=$(free_port)
        configure >conf
        "$APACHE2" -f "$PWD/conf" && break
        rm -r site logs
    done
    for _ in $(seq 100); do
        curl -s -o page "http://127.0.0.1:$port/" && return
        sleep 0.1
    done
    cat logs/error
    return 1
}
stop() {
    pid=$(cat "$tmp/pid")
    kill "$pid"
    for _ in $(seq 100); do
        [ -e "$tmp/pid" ] || return 0
        sleep 0.1
    done
    echo "the server does not stop"
    kill -KILL "$pid"
    return 1
}

get() { curl -s -f "$@" | cksum; }
work() {
    start || return
    status=0
    for _ in $(seq 20); do
        get "http://127.0.0.1:$port/" && get "http://127.0.0.1:$port/long.txt" &&
            get "http://127.0.0.1:$port/listing/" || status=1
        get --compressed -H 'Connection: close' "http://127.0.0.1:$port/long.txt" || status=1
    done
    # A hundred at once, on few connections.
    seq -f "url = \"http://127.0.0.1:$port/listing/file-%.0f\"" 1 100 | curl -s -f --parallel -K - | wc -c
    curl -s -o /dev/null -w '%{http_code}\n' "http://127.0.0.1:$port/missing"
    stop || status=1
    grep -E 'exit signal|Segmentation|Abort' logs/error
    return $status
}
compare_work
