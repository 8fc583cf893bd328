#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# mod_reap_lua in a private httpd: on stock pools and on reaps, under prefork and event.
. "${srcdir:-.}/tests/apache/lua_lib.sh"

# --- the site -------------------------------------------------------------------------------------

make_scripts() {
    cp "$srcdir/apache_module/mod_reap_lua/prime.lua" "$lua/"
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
    script forms 'local first, all = r:parseargs() print(first.a, first["b c"], first.none, #all.a, all.a[2], first[""])
        first, all = r:parsebody() print(first.text, first.flag, #(first.zero or ""), first.bad)'
    script escape 'r:write(r:escape_html("<a href=\"x\">&\39</a>")) r:warn("a warning\nof two lines") r:err("an error")'
    script headers 'local n = 0 for name, value in pairs(r.headers_in) do n = n + (name:lower() == "x-one" and value == "1" and 1 or 0) end
        r.headers_out.A = "1" r.headers_out.B = "2" for name, value in pairs(r.headers_out) do n = n .. name .. value end print(n)'
    make_arithmetic
}

# What prime.lua computes with, against numbers from elsewhere and against itself.
make_arithmetic() {
    { sed '/^-- --- the case/,$d' "$srcdir/apache_module/mod_reap_lua/prime.lua"; cat <<'END'; } >"$lua/arithmetic.lua"
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

lua_directives() {
    cat <<END
LogFormat "%U held=%{reap-lua-held}n peak=%{reap-lua-peak}n" lua
CustomLog $1/access.log lua
<Directory $1/htdocs/lua>
LimitRequestBody 100000
</Directory>
<LocationMatch "^/kept/">
ReapLuaFree off
</LocationMatch>
Alias /kept $1/htdocs/lua
END
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

check_forms() {
    ask 'forms.lua?a=1%2B1&b+c=%c3%a9&&a=two&=empty&a' --data-raw 'text=a%26b+c&flag&zero=%00&bad=100%&bad=%zz'
    expect "$(printf '1+1\t\303\251\tnil\t3\ttwo\tempty\na&b c\t\t1\t100%%')" "$body"
    ask forms.lua
    expect_status 500 # no such name: all.a is nil
    logged=$(log_lines)
    ask escape.lua
    expect '&lt;a href=&quot;x&quot;&gt;&amp;&#39;&lt;/a&gt;' "$body"
    expect_log 'an error'
    grep -q 'reap_lua:warn.*a warning.nof two lines' "$dir/error.log" || complain "the warning is not in the log"
    ask headers.lua -H 'X-One: 1'
    expect 1A1B2 "$body"
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
    within 60 has 1 "$dir/access.log" '^/lua/prime.lua held=[0-9]+ peak=[0-9]{5,}$' || complain "no notes in the access log"
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
        'ReapLuaMaxMemory 1KB' 'ReapLuaMaxInstructions many' 'ReapLuaMaxInstructions -5' 'ReapLuaMaxInstructions 9999999999999G' \
        'ReapLuaCache some' 'ReapLuaDebug maybe' '<Directory />
ReapLuaCache 1M
</Directory>' \
        'ReapLuaMaxTime soon' 'ReapLuaMaxTime -1s' 'ReapLuaFree maybe'; do
        { cat "$dir/httpd.conf"; echo "$line"; } >"$dir/bad.conf"
        if "$APACHE2" -t -f "$dir/bad.conf" 2>"$tmp/complaint"; then complain "'$line' was taken"; fi
        grep -q "$(echo "$line" | sed -n 's/^\(Reap[A-Za-z]*\).*/\1/p')" "$tmp/complaint" || complain "'$line': $(cat "$tmp/complaint")"
    done
    for line in 'ReapLuaMaxMemory 65536' 'ReapLuaMaxMemory 1g' 'ReapLuaMaxMemory 0' 'ReapLuaMaxTime 1min' \
        'ReapLuaMaxInstructions 500M' 'ReapLuaMaxInstructions 0' 'ReapLuaCache 0' 'ReapLuaCache 16M' 'ReapLuaDebug on'; do
        { cat "$dir/httpd.conf"; echo "$line"; } >"$dir/good.conf"
        "$APACHE2" -t -f "$dir/good.conf" 2>"$tmp/complaint" || complain "'$line': $(cat "$tmp/complaint")"
    done
}

# --- all of it ------------------------------------------------------------------------------------

check() {
    check_answers
    check_methods
    check_forms
    check_errors
    check_case
    check_parallel
    [ "$pools $mpm" != "stock event" ] || check_directives
}
lua_test
exit $bad
