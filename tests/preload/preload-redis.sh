#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# redis-server under libreap-malloc, on a socket of its own: load, a snapshot by fork, a restart from it.
#
# Debian's redis-server is linked to jemalloc. Its malloc, free and malloc_usable_size go to the
# preload; what it asks jemalloc alone (mallctl: used for INFO memory and active defragmentation,
# which is off by default) still goes there, and so tells of a jemalloc that nobody uses.
. "${srcdir:-.}/tests/support/preload-lib.sh"
need redis-cli redis-benchmark redis-check-rdb
# The server is redis-check-rdb by another name; redis-tools has it without the system's service.
ln -s "$(command -v redis-check-rdb)" "$tmp/redis-server"

# shellcheck disable=SC2034  # run by the trap of preload-lib
at_exit='[ ! -e "$tmp/pid" ] || kill "$(cat "$tmp/pid")" 2>/dev/null'
ask() { redis-cli -s "$PWD/socket" "$@"; }
answers() { [ "$(ask ping 2>/dev/null)" = PONG ]; }
start() {
    "$tmp/redis-server" --port 0 --unixsocket "$PWD/socket" --dir "$PWD" --save '' --logfile "$PWD/log" \
        --appendonly no --io-threads 2 &
    server=$!
    echo "$server" >"$tmp/pid"
    within 60 answers && return
    cat log
    return 1
}
is_saved() { ask info persistence | grep -q 'rdb_bgsave_in_progress:0'; }
stop() {
    ask shutdown "$1"
    wait "$server"
    status=$?
    rm "$tmp/pid"
    return $status
}
# The data only: keys, lists and a hash, in an order that does not depend on hashing.
contents() {
    ask dbsize
    ask --csv mget $(seq -f 'key%.0f' 1 500)
    ask --csv lrange list 0 -1
    ask --csv hmget hash $(seq -f 'field%.0f' 1 200)
}

work() {
    start || return
    {
        seq -f 'set key%.0f %.0f-value' 1 2000
        seq -f 'append key%.0f .............................................tail' 1 3 2000
        seq -f 'rpush list item-%.0f' 1 800
        seq -f 'hset hash field%.0f %.0f' 1 600
        seq -f 'del key%.0f' 7 7 2000
    } | ask | sort | uniq -c
    redis-benchmark -s "$PWD/socket" -q -n 3000 -r 2000 -d 300 -t set,get,lpush,lrange_100,zadd >benchmark.txt || return
    ask del mylist myzset >/dev/null
    ask bgsave
    within 60 is_saved
    ask info persistence | grep -o 'rdb_last_bgsave_status:ok'
    contents >before
    stop nosave || return
    start || return
    contents | cmp - before && sed 's/^[0-9]*$/keys/' before | cksum
    stop nosave
}
compare_work
