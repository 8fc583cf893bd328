#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Compiled scripts in mod_reap_lua: they are cached, with the same answers; a file that changes, however it does, is
# compiled again; an error of syntax is logged once for a change; a full cache gives up the longest unused.
. "${srcdir:-.}/tests/apache/lua_lib.sh"

# The file looks as if it had been there for long. Its time of change cannot be set, so the test waits.
settle() { sleep 2.2; }

make_scripts() {
    script counted 'print("one", (function() local n = 0 for i = 1, 10 do n = n + i end return n end)())'
    script broken 'print("a" = 1)'
    script failing 'local function inner() error("at line 1") end inner()'
    script shebang '#!/usr/bin/lua
print("after a line for the shell")'
    mkdir "$lua/many"
    i=0
    while [ $i -lt 40 ]; do
        { echo "print($i)"; echo "local t = {"; seq 1 400 | sed 's/.*/"text &",/'; echo "}"; } >"$lua/many/$i.lua"
        i=$((i + 1))
    done
}

# One child with a thread or several, so that each request meets the same cache.
lua_directives() {
    echo 'ReapLuaCache 128K'
    if [ "$mpm" = prefork ]; then
        printf 'StartServers 1\nMinSpareServers 1\nMaxSpareServers 1\nServerLimit 1\nMaxRequestWorkers 1\n'
    else
        printf 'StartServers 1\nServerLimit 1\nMinSpareThreads 1\nMaxSpareThreads 40\nMaxRequestWorkers 40\n'
    fi
}

# expect_script cached|compiled ANSWER [PATH]
expect_script() {
    ask "${3:-counted.lua}"
    expect_status 200
    expect "$2" "$body"
    expect "$1" "$(header x-reap-script)" "$path, how"
}

check_cached() {
    settle
    expect_script compiled "$(printf 'one\t55')"
    expect_script cached "$(printf 'one\t55')"
    expect_script compiled 'after a line for the shell' shebang.lua
    expect_script cached 'after a line for the shell' shebang.lua
    for round in compiled cached; do
        ask_failing 500 "failing.lua:1: at line 1, at .*failing.lua:1 in (local|upvalue) 'inner' < .*failing.lua:1 in main chunk" failing.lua
    done
    logged=$(log_lines)
}

# Each way in which files change: written in place with and without another size, moved over, touched, its times
# put back. While a change is recent nothing is cached.
check_changes() {
    script counted 'print("two")'
    expect_script compiled two
    script counted 'print("tri")'
    expect_script compiled tri
    settle
    expect_script compiled tri
    expect_script cached tri
    touch -r "$lua/counted.lua" "$tmp/times"
    script counted 'print("fou")'
    touch -r "$tmp/times" "$lua/counted.lua"
    expect_script compiled fou
    settle
    expect_script compiled fou
    expect_script cached fou
    script next 'print("fiv")'
    touch -r "$tmp/times" "$lua/next.lua"
    settle
    mv "$lua/next.lua" "$lua/counted.lua"
    expect_script compiled fiv
    rm "$lua/counted.lua"
    ask counted.lua
    expect_status 404
    script counted 'print("six")'
    expect_script compiled six
    if [ "$(id -u)" = 0 ]; then # the server's children run as another user
        chmod 0 "$lua/counted.lua"
        ask counted.lua
        expect_status 403
        chmod 644 "$lua/counted.lua"
        logged=$(log_lines)
    fi
}

check_syntax() {
    ask broken.lua
    expect_status 500
    expect_log "broken.lua:1: '\\)' expected near '='"
    for round in 1 2 3; do
        ask broken.lua
        expect_status 500
    done
    expect "$logged" "$(log_lines)" 'lines of the log'
    script broken 'print("b" = 1)'
    ask broken.lua
    expect_log "broken.lua:1: '\\)' expected near '='"
    script broken 'print("mended")'
    expect_script compiled mended broken.lua
}

# 40 scripts of some 10 KB of byte code each do not fit: the latest are there, the first are not.
check_full() {
    i=0
    while [ $i -lt 40 ]; do
        expect_script compiled $i "many/$i.lua"
        i=$((i + 1))
    done
    expect_script cached 39 many/39.lua
    expect_script cached 35 many/35.lua
    expect_script compiled 0 many/0.lua
}

# Threads read, change and give up scripts at once; each answer is that of its script.
check_threads() {
    rounds=0
    while [ $rounds -lt 4 ]; do
        curl -s -Z --no-progress-meter --parallel-max 16 --max-time 60 \
            "http://127.0.0.1:$httpd_port/lua/many/[0-39].lua" >"$tmp/answers" &
        curl -s -Z --no-progress-meter --parallel-max 16 --max-time 60 \
            "http://127.0.0.1:$httpd_port/lua/many/[30-39].lua?[0-9]" >>"$tmp/more"
        wait $!
        rounds=$((rounds + 1))
        expect "$(seq 0 39 | tr '\n' ' ')" "$(sort -n "$tmp/answers" | tr '\n' ' ')" 'answers at once'
    done
    expect 400 "$(wc -l <"$tmp/more")" 'more answers at once'
    rm "$tmp/more"
}

check() {
    check_cached
    check_changes
    check_syntax
    check_full
    [ "$mpm" = prefork ] || check_threads # its one child serves one connection after the other
}
lua_test
exit $bad
