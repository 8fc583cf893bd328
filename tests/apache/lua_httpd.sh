#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# mod_reap_lua in a private httpd: on stock pools and on reaps, under prefork and event.
srcdir=${srcdir:-.}
. "$srcdir/tests/support/httpd_lib.sh"

lua_module=$(cd "${top_builddir:-.}" && pwd)/apache_module/.libs/mod_reap_lua.so
[ -e "$lua_module" ] || skip "mod_reap_lua was not built"
httpd_require
httpd_directory
failures=0

complain() {
    echo "$mode: $*"
    failures=$((failures + 1))
}

# --- the site -------------------------------------------------------------------------------------

# script NAME LINE: a script of one line. Not by echo, which may expand what is Lua's.
script() { printf '%s\n' "$2" >"$lua/$1.lua"; }

make_scripts() {
    lua=$1/htdocs/lua
    mkdir -p "$lua/limited"
    cp "$srcdir/apache_module/lua/prime.lua" "$lua/"
    script hello 'print("hello", 1, nil, true) r:write("a", 2, "b\n")'
    script fields \
        'print(r.method, r.uri, r.args, r.path_info, r.protocol, r.headers_in["x-QUESTION"], r.nothing)'
    script answer \
        'r.status = 201 r.content_type = "text/html" r.headers_out["X-Answer"] = "42" r:puts(r.headers_out["x-answer"])'
    script absent 'r.status = 404'
    script body 'local b = r:requestbody() print(#b, b:sub(1, 5), #r:requestbody())'
    script nil 'print("lost") local t = nil print(t.x)'
    script table 'error({})'
    script said 'error(setmetatable({}, { __tostring = function() return "a said error" end }))'
    script syntax 'x = = 1'
    printf '\033Lua' >"$lua/binary.lua"
    script secret 'print(1)'
    chmod 0 "$lua/secret.lua"
    script late 'for i = 1, 3000 do print(i, r.uri) end error("late")'
    script big 'for i = 1, 100000 do r:write(i % 10) end'
    script library \
        'for _, n in ipairs { "dofile", "loadfile", "io", "os", "package", "require", "debug" } do print(n, _G[n]) end'
    script load \
        'print(load("\27Lua")) print(load("return 7")()) print(load("return x", "c", "b", { x = 8 })())'
    script finalizer 'setmetatable({}, { __gc = function() end })'
    # Limits: each of these would go on for ever.
    script limited/endless 'local t = {} while true do t[#t + 1] = ("x"):rep(1000) .. #t end'
    script limited/huge 'print(#("x"):rep(1 << 30))'
    script limited/doubling 'local s = "x" while true do s = s .. s end'
    script limited/headers 'for i = 1, 1e9 do r.headers_out["X-" .. i % 10] = ("y"):rep(1000) end'
    script limited/caught 'print(pcall(string.rep, "x", 1 << 30)) print(#("x"):rep(1 << 10))'
    script limited/loop 'while true do end'
    script limited/pcall 'while true do pcall(function() while true do end end) end'
    script limited/handler 'local function f() while true do end end while true do xpcall(f, f) end'
    script limited/close \
        'local t = setmetatable({}, { __close = function() while true do end end }) local x <close> = t while true do end'
    script limited/depth 'local function f() return pcall(f) or f() end f()'
    make_arithmetic
}

# What prime.lua computes with, against numbers from elsewhere and against itself.
make_arithmetic() {
    { sed '/^-- --- the case/,$d' "$srcdir/apache_module/lua/prime.lua"; cat <<'END'; } >"$lua/arithmetic.lua"
local factorial = natural(1)
for i = 2, 50 do factorial = factorial * natural(i) end
assert(tostring(factorial) == "30414093201713378043612608166064768844377641568960512000000000000")
local mersenne = natural("340282366920938463463374607431768211455") -- 2^128 - 1
assert(mersenne % natural(641) == natural(0))
assert(mersenne // natural("59649589127497217") == natural("5704689200685129054720"))
assert(mersenne % natural("59649589127497217") == natural("59649589127497215"))
local function random(digits)
    local t = {}
    for i = 1, digits do t[i] = ({ 0, 9, math.random(0, 9) })[math.random(3)] end
    return natural((table.concat(t):gsub("^0+", "0")))
end
for _ = 1, 3000 do
    local a, b = random(math.random(60)), random(math.random(30)) + natural(1)
    local quotient, rest = a // b, a % b
    assert(rest < b and quotient * b + rest == a and a + b - b == a and a <= a + b)
end
print("sound")
END
}

configure() {
    {
        cat <<END
LoadModule reap_lua_module $lua_module
LogFormat "%U held=%{reap-lua-held}n peak=%{reap-lua-peak}n" lua
CustomLog $1/access.log lua
ReapLuaReport on
<Directory $1/htdocs/lua>
AddHandler reap-lua .lua
LimitRequestBody 100000
</Directory>
<Directory $1/htdocs/lua/limited>
ReapLuaMaxMemory 8M
ReapLuaMaxTime 200ms
</Directory>
<LocationMatch "^/kept/">
ReapLuaFree off
</LocationMatch>
Alias /kept $1/htdocs/lua
END
    } >>"$1/httpd.conf"
}

# --- asking ---------------------------------------------------------------------------------------

# ask PATH [curl's arguments]: sets status, body (the file too), result (curl's).
ask() {
    path=$1
    shift
    status=$(curl -s --max-time 60 -D "$tmp/headers" -o "$tmp/body" -w '%{http_code}' "$@" \
        "http://127.0.0.1:$httpd_port/lua/$path")
    result=$?
    body=$(cat "$tmp/body" 2>/dev/null)
}

header() { sed -n "s/^$1: //Ip" "$tmp/headers" | tr -d '\r'; }

expect() {
    wanted=$1
    shift
    [ "$1" = "$wanted" ] || complain "${2:-$path}: got '$(printf %.200s "$1" | tr '\n' '|')', not '$wanted'"
}

expect_status() { expect "$1" "$status" "$path: status"; }

# The log has one more line of errors, and it is like this.
log_lines() { grep -c 'reap_lua:error' "$dir/error.log"; }
expect_log() {
    lines=$(log_lines)
    [ "$lines" = $((logged + 1)) ] || complain "$path: $((lines - logged)) lines in the log, not one"
    logged=$lines
    grep 'reap_lua:error' "$dir/error.log" | tail -n 1 | grep -qE "$1" ||
        complain "$path: '$1' is not in the log: $(tail -n 1 "$dir/error.log")"
}

# ask_failing STATUS LOG PATH: the error is told, and the server goes on.
ask_failing() {
    ask "$3"
    expect_status "$1"
    expect_log "$2"
    ask hello.lua
    expect_status 200
}

# --- what is asked --------------------------------------------------------------------------------

check_answers() {
    ask hello.lua
    expect_status 200
    expect "$(printf 'hello\t1\tnil\ttrue\na2b')" "$body"
    expect 'text/plain; charset=utf-8' "$(header content-type)"
    ask 'fields.lua/more?a=b' -H 'X-Question: why'
    expect "$(printf 'GET\t/lua/fields.lua/more\ta=b\t/more\tHTTP/1.1\twhy\tnil')" "$body"
    ask answer.lua
    expect_status 201
    expect 42 "$body"
    expect 42 "$(header x-answer)"
    expect text/html "$(header content-type)"
    ask absent.lua
    expect_status 404
    ask library.lua
    expect 7 "$(grep -c nil "$tmp/body")"
    ask load.lua
    expect "$(printf "nil\tattempt to load a binary chunk (mode is 't')\n7\n8")" "$body"
    ask big.lua
    expect 100000 "$(wc -c <"$tmp/body")"
    ask arithmetic.lua
    expect sound "$body"
}

check_methods() {
    ask hello.lua -I
    expect_status 200
    expect 21 "$(header content-length)"
    ask body.lua -d 0123456789
    expect "$(printf '10\t01234\t0')" "$body"
    ask body.lua -d 0123456789 -H 'Transfer-Encoding: chunked'
    expect "$(printf '10\t01234\t0')" "$body"
    ask body.lua
    expect "$(printf '0\t\t0')" "$body"
    head -c 90000 /dev/zero | tr '\0' y >"$tmp/large"
    ask body.lua --data-binary "@$tmp/large"
    expect "$(printf '90000\tyyyyy\t0')" "$body"
    ask hello.lua --data-binary "@$tmp/large" # not read by the script
    expect_status 200
    ask hello.lua -X DELETE
    expect_status 405
    ask hello.lua -X OPTIONS
    expect_status 200
    logged=$(log_lines)
    head -c 200000 /dev/zero >"$tmp/large"
    ask body.lua --data-binary "@$tmp/large"
    expect_status 413
    ask body.lua --data-binary "@$tmp/large" -H 'Transfer-Encoding: chunked' -H 'Expect:'
    expect_status 413
    logged=$(log_lines)
}

check_errors() {
    logged=$(log_lines)
    ask missing.lua
    expect_status 404
    ask_failing 500 "nil.lua:1: attempt to index a nil value \(local 't'\)" nil.lua
    ask_failing 500 'table.lua: the error is a table value' table.lua
    ask_failing 500 'a said error' said.lua
    ask_failing 500 "syntax.lua:1: unexpected symbol near '='" syntax.lua
    ask_failing 500 'attempt to load a binary chunk' binary.lua
    ask_failing 500 'cannot have __gc' finalizer.lua
    ask_failing 403 'cannot open .*secret.lua' secret.lua
    # What came late cannot change the status, but the client must see that something is missing.
    ask late.lua
    expect 18 "$result" 'a broken answer'
    expect_log 'late.lua:1: late'
}

check_limits() {
    for name in endless huge doubling headers; do
        ask_failing 500 'not enough memory.* \(ReapLuaMaxMemory\), [0-9]+ bytes held' "limited/$name.lua"
    done
    ask limited/caught.lua
    expect "$(printf 'false\tnot enough memory\n1024')" "$body"
    for name in loop pcall handler close; do
        ask_failing 500 'used its 200 ms of CPU time \(ReapLuaMaxTime\)' "limited/$name.lua"
    done
    ask_failing 500 '(stack overflow|ReapLuaMaxTime|ReapLuaMaxMemory)' limited/depth.lua
}

# held BELOW|ABOVE BYTES PATH
expect_held() {
    ask "$3"
    expect 7919 "$body"
    held=$(header x-reap-bytes-held)
    case $1 in
        BELOW) [ "${held:-999999999}" -lt "$2" ] || complain "$3 held $held bytes, not below $2" ;;
        ABOVE) [ "${held:-0}" -gt "$2" ] || complain "$3 held $held bytes, not above $2" ;;
    esac
}

check_case() {
    case $pools in
        stock) expect_held ABOVE 12000000 prime.lua ;;
        reaps) expect_held BELOW 200000 prime.lua ;;
    esac
    expect_held ABOVE 12000000 ../kept/prime.lua
    ask 'prime.lua?26'
    expect 101 "$body"
    grep -qE '^/lua/prime.lua held=[0-9]+ peak=[0-9]{5,}$' "$dir/access.log" || complain "no notes in the access log"
}

# Each state is alone: many scripts at once give what one gives.
check_parallel() {
    curl -s -Z --no-progress-meter --parallel-max 16 --max-time 120 \
        "http://127.0.0.1:$httpd_port/lua/prime.lua/[1-48]?200" >"$tmp/parallel" 2>"$tmp/complaint"
    expect 48 "$(grep -cx 1223 "$tmp/parallel")" 'parallel requests'
}

# --- bad configuration ------------------------------------------------------------------------------

check_directives() {
    mode=directives
    for line in 'ReapLuaMaxMemory lots' 'ReapLuaMaxMemory -1' 'ReapLuaMaxMemory 99999999999G' 'ReapLuaMaxMemory 1X' \
        'ReapLuaMaxTime soon' 'ReapLuaMaxTime -1s' 'ReapLuaFree maybe'; do
        { cat "$dir/httpd.conf"; echo "$line"; } >"$dir/bad.conf"
        if "$APACHE2" -t -f "$dir/bad.conf" 2>"$tmp/complaint"; then complain "'$line' was taken"; fi
        grep -q "${line%% *}" "$tmp/complaint" || complain "'$line': $(cat "$tmp/complaint")"
    done
    for line in 'ReapLuaMaxMemory 65536' 'ReapLuaMaxMemory 1g' 'ReapLuaMaxMemory 0' 'ReapLuaMaxTime 1min'; do
        { cat "$dir/httpd.conf"; echo "$line"; } >"$dir/good.conf"
        "$APACHE2" -t -f "$dir/good.conf" 2>"$tmp/complaint" || complain "'$line': $(cat "$tmp/complaint")"
    done
}

# --- all of it ------------------------------------------------------------------------------------

run() {
    mode="$1 pools, $2" pools=$1
    dir=$tmp/$1-$2
    mkdir -p "$dir"
    httpd_prepare "$dir" "$2"
    make_scripts "$dir"
    configure "$dir"
    if [ "$1" = reaps ]; then httpd_start "$dir" "$httpd_libs/libreap-apr.so"; else httpd_start "$dir"; fi
    check_answers
    check_methods
    check_errors
    check_limits
    check_case
    check_parallel
    httpd_stop "$dir"
    httpd_log_is_clean "$dir" || complain "see the log"
}

chmod 755 "$tmp"
for mpm in prefork event; do
    run stock "$mpm"
    run reaps "$mpm"
done
check_directives
[ "$failures" = 0 ] || fail "$failures failures"
