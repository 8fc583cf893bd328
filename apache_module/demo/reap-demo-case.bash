# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2154  # variables of reap-demo
# reap-demo's part: the case, the 1000th prime by bignums written in Lua.

# post NAME PATH: asks with a body that is held back until the answer's first line has come, and
# watches the child's memory up to then; sets answer, held and most (KB). It reads only what is there:
# a read with a timeout may lose a byte when its time is up.
post() {
    local socket line
    exec {socket}<>"/dev/tcp/127.0.0.1/${server_port[$1]}" || fail "no connection to the server"
    printf 'POST %s HTTP/1.0\r\nHost: localhost\r\nContent-Length: 1\r\n\r\n' "$2" >&$socket
    answer='' held='' most=0
    while [[ -z $answer ]]; do
        watch_memory
        read -r -t 0 <&$socket || { pause 0.001; continue; }
        read -r line <&$socket || fail "the server gave no answer: $(tail -n 1 "$dir/$1/error.log")"
        line=${line%$'\r'}
        [[ $line != "X-Reap-Bytes-Held: "* ]] || held=${line#*: }
        [[ -z $held || $line == *:* ]] || answer=$line # the one line of the body
    done
    watch_memory
    printf x >&$socket
    cat <&$socket >/dev/null
    exec {socket}>&-
}

watch_memory() {
    local now
    now=$(resident "$child")
    ((now <= most)) || most=$now
}

# run_case NAME stock|reaps FREE: a fresh child, warmed by the same kind of request to a small script.
run_case() {
    local name=$1 pools=$2 free=$3 before repeat
    for ((repeat = 1; repeat <= repeats; repeat++)); do
        ((repeat == 1 || SECONDS < 130)) || { repeats=$((repeat - 1)); break; }
        progress "the case, $pools, ReapLuaFree $free, $repeat of $repeats"
        start "$name" "$pools" prefork "$free"
        for _ in 1 2 3; do post "$name" /warm.lua; done
        get "$name" /page.html >/dev/null
        before=$(resident "$child")
        post "$name" /prime.lua
        [[ $answer == 7919 ]] || fail "the 1000th prime is 7919, not '$answer'"
        echo $((most - before)) >>"$dir/growth.$name"
        echo "$held" >>"$dir/held.$name"
        stop "$name"
    done
}
