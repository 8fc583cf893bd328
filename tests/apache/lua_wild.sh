#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Wild scripts under mod_reap_lua: each meets its limit within its time, is told in one line of the log, and the
# child that ran it lives and answers. On stock pools and on reaps, under prefork and event.
. "${srcdir:-.}/tests/apache/lua_lib.sh"

make_scripts() {
    mkdir "$lua/memory" "$lua/time" "$lua/instructions" "$lua/debug"
    # More memory than there is, in small pieces and in large ones, and where it is caught.
    script memory/endless 'local t = {} while true do t[#t + 1] = ("x"):rep(1000) .. #t end'
    script memory/doubling 'local s = "x" while true do s = s .. s end'
    script memory/headers 'for i = 1, 1e9 do r.headers_out["X-" .. i % 10] = ("y"):rep(1000) end'
    script memory/coroutines 'local t = {} while true do t[#t + 1] = coroutine.create(print) end'
    script memory/huge 'print(#("x"):rep(1 << 30))'
    script memory/body 'local b = {} for i = 1, 100 do b[i] = r:requestbody() .. i end print("all of it")'
    script memory/caught 'print(pcall(string.rep, "x", 1 << 30)) print(#("x"):rep(1 << 10))'
    script memory/garbage 'local n = 0 for i = 1, 2000 do n = n + #(("x"):rep(10000) .. i) end print(n)'
    # Each of these would go on for ever.
    script time/loop 'while true do end'
    script time/pcall 'while true do pcall(function() while true do end end) end'
    script time/handler 'local function f() while true do end end while true do xpcall(f, f) end'
    script time/close \
        'local t = setmetatable({}, { __close = function() while true do end end }) local x <close> = t while true do end'
    script time/tostring 'error(setmetatable({}, { __tostring = function() while true do end end }))'
    script time/depth 'local function f() return pcall(f) or f() end f()'
    script time/memory 'while true do pcall(string.rep, "x", 1 << 40) end'
    script time/copies 'local s = ("x"):rep(24 << 20) while true do local t = s .. "y" end'
    script time/collect 'local t = {} for i = 1, 1e5 do t[i] = i .. "" end while true do collectgarbage() end'
    script time/wrap 'local function f(d) return function() if d > 0 then for i = 1, 900 do coroutine.wrap(f(d - 1))() end end end end
        while true do pcall(f(50)) end'
    script time/suspended 'local t = {} for i = 1, 1000 do t[i] = coroutine.wrap(function() while true do pcall(coroutine.yield) end end) end
        while true do for i = 1, #t do pcall(t[i]) end end'
    script time/resume 'while true do local co = coroutine.create(function() while true do end end) coroutine.resume(co) end'
    script time/nothing 'print(#(""):rep(1 << 60)) while true do end'
    script time/move 'print(pcall(table.move, {}, 1, 1 << 60, 2)) while true do end'
    script time/insert 'local t = setmetatable({}, { __len = function() return 1 << 60 end })
        print(pcall(table.insert, t, 1, "x")) print(pcall(table.remove, t, 1)) while true do end'
    for name in loop pcall close depth memory wrap suspended resume; do cp "$lua/time/$name.lua" "$lua/instructions/"; done
    # A resume counts as 1000 instructions: 2900 are within the 3 million, 3100 are not.
    for n in 2900 3100; do
        script "instructions/resumed$n" "local f = coroutine.wrap(function() while true do coroutine.yield() end end)
            for i = 1, $n do f() end print('all')"
    done
    # Within the limits.
    script coroutines 'local f = coroutine.wrap(function(a) local b = coroutine.yield(a + 1) error("in " .. b) end) print(f(1), pcall(f, 5))
        local co = coroutine.create(function(...) for i = 1, 3 do coroutine.yield(i, ...) end return "end" end)
        for i = 1, 5 do print(coroutine.resume(co, "x")) end print(coroutine.status(co))
        local yields = coroutine.wrap(function() print(xpcall(function() return coroutine.yield("out") end, print)) end)
        print(yields()) yields("in") print(coroutine.isyieldable(), select(2, coroutine.running()))'
    script library 'print(("ab"):rep(3, "-"), table.concat(table.move({ 1, 2, 3 }, 2, 3, 1), ","), collectgarbage("count") > 1)
        local t = { 1 } table.insert(t, 2) table.insert(t, 1, 0) print(table.remove(t), #t)'
    # Errors of all kinds.
    script debug/table 'error({ code = 1 })'
    script debug/nil 'error(nil)'
    script debug/deep 'local function f(n) if n == 0 then error("deep\nbelow\0zero \27[31m") end f(n - 1) return 1 end f(100)'
    script debug/header 'r.headers_out["X-Bad"] = r:requestbody()'
    script debug/name 'r.headers_out["X-Bad: 1\r\nX-Worse"] = "2"'
    script debug/type 'r.content_type = "text/html\r\nX-Worse: 1"'
    script debug/late 'r.headers_out["X-Secret"] = "1" print("some") error("after some")'
    # Output for ever, and bytes of all kinds.
    script stream 'while true do print(("x"):rep(5000)) r:flush() end'
    script caught_stream 'while true do pcall(print, ("x"):rep(5000)) pcall(r.flush, r) end'
    script binary 'local b = r:requestbody() r.content_type = "application/octet-stream" r:write(b, "\0", b:reverse())'
    script removed 'print("here")'
}

lua_directives() {
    for limit in memory:MaxMemory:8M time:MaxTime:100ms instructions:MaxInstructions:3M debug:Debug:on; do
        printf '<Directory %s/%s>\nReapLua%s %s\n</Directory>\n' "$lua" "${limit%%:*}" "$(echo "${limit#*:}" | cut -d: -f1)" \
            "${limit##*:}"
    done
    printf '<Directory %s/instructions>\nReapLuaMaxTime 2s\n</Directory>\n' "$lua"
    printf 'LogFormat "%%U %%s done" scripts\nCustomLog %s/scripts.log scripts\n' "$1"
    printf '<Files caught_stream.lua>\nReapLuaMaxTime 500ms\n</Files>\n'
    # It unwinds for as long as it may.
    printf '<Files depth.lua>\nReapLuaMaxTime 200ms\n</Files>\n'
}

check_memory() {
    for name in endless doubling headers coroutines; do
        ask_failing 500 'not enough memory.* \(ReapLuaMaxMemory\), [0-9]+ bytes held' "memory/$name.lua"
    done
    ask_failing 500 "endless.lua: not enough memory.*, (last seen )?at .*endless.lua:1" memory/endless.lua
    ask_failing 500 'huge.lua: not enough memory \(ReapLuaMaxMemory\), [0-9]+ bytes held' memory/huge.lua
    ask memory/caught.lua
    expect "$(printf 'false\tnot enough memory\n1024')" "$body"
    head -c 9000000 /dev/zero >"$tmp/large"
    ask memory/body.lua --data-binary "@$tmp/large" -H 'Expect:'
    expect_status 500
    expect_log 'not enough memory'
    ask memory/garbage.lua
    if [ "$pools" = reaps ]; then expect 20006893 "$body"; else expect_status 500; fi
    logged=$(log_lines)
}

check_time() {
    for name in loop pcall handler close memory copies collect wrap suspended resume nothing move insert; do
        over='used its 100 ms of CPU time \(ReapLuaMaxTime\), (last seen )?at '
        [ "$pools" = reaps ] || over="$over|not enough memory" # garbage stays in stock pools
        before=$(date +%s%N)
        ask_failing 500 "$over" "time/$name.lua"
        took=$((($(date +%s%N) - before) / 1000000))
        [ $took -lt 30000 ] || complain "$name took $took ms"
    done
    ask_failing 500 '(stack overflow|ReapLuaMaxTime|ReapLuaMaxMemory)' time/depth.lua
    ask_failing 500 '.' time/tostring.lua
}

check_instructions() {
    for name in loop pcall close memory wrap suspended resume; do
        ask_failing 500 'used its 3000000 instructions \(ReapLuaMaxInstructions\), (last seen )?at ' "instructions/$name.lua"
    done
    ask instructions/resumed2900.lua
    expect all "$body"
    ask_failing 500 'ReapLuaMaxInstructions' instructions/resumed3100.lua
    ask_failing 500 '(stack overflow|ReapLuaMaxInstructions|ReapLuaMaxTime)' instructions/depth.lua
}

check_within() {
    ask coroutines.lua
    sed 's/[^[:space:]]*coroutines.lua/F/' "$tmp/body" >"$tmp/masked"
    expect "$(printf '2\tfalse\tF:1: in 5\ntrue\t1\tx\ntrue\t2\tx\ntrue\t3\tx\ntrue\tend\nfalse\tcannot resume dead coroutine\ndead\nout\ntrue\tin\nfalse\ttrue')" \
        "$(cat "$tmp/masked")"
    ask library.lua
    expect "$(printf 'ab-ab-ab\t2,3,3\ttrue\n2\t2')" "$body"
}

# Only where the configuration says so does the client see what the log has.
check_errors() {
    ask_failing 500 'table.lua: the error is a table value, at ' debug/table.lua
    ask debug/table.lua
    expect_log 'a table value'
    grep -q 'the error is a table value, at .C. in .* < .*table.lua:1 in main chunk' "$tmp/body" || complain "the client sees $body"
    ask_failing 500 'the error is a nil value|nil' debug/nil.lua
    ask_failing 500 'deep.lua:1: deep.nbelow.*deep.lua:1 in .*\.\.\. [0-9]+ more \.\.\. <.* in main chunk' debug/deep.lua
    ! grep -q "$(printf '\033')" "$dir/error.log" || complain "the log has an escape character"
    ask debug/late.lua
    expect '' "$(header x-secret)"
    expect_log 'after some'
    ask time/depth.lua
    ! grep -q 'depth.lua:' "$tmp/body" || complain "the client sees an error"
    logged=$(log_lines)
}

check_injection() {
    printf 'a\r\nX-Worse: 1' >"$tmp/value"
    for name in header name type; do
        ask "debug/$name.lua" --data-binary "@$tmp/value"
        expect_status 500
        expect '' "$(header x-worse)"
        expect_log 'control characters|no name of a header'
    done
    printf 'fine' >"$tmp/value"
    ask debug/header.lua --data-binary "@$tmp/value"
    expect fine "$(header x-bad)"
}

# The client goes away while a script prints: it ends, and its worker is free.
check_clients_gone() {
    for name in stream caught_stream; do
        curl -s "http://127.0.0.1:$httpd_port/lua/$name.lua" | head -c 20000 >"$tmp/part"
        [ -s "$tmp/part" ] || complain "$name sent nothing"
    done
    within 30 has 2 "$dir/scripts.log" 'tream.lua.*done' || complain "scripts go on without their clients"
    logged=$(log_lines)
}

check_bytes() {
    head -c 300000 /dev/urandom >"$tmp/value"
    ask binary.lua --data-binary "@$tmp/value"
    expect_status 200
    head -c 300000 "$tmp/body" | cmp - "$tmp/value" || complain "bytes are not what was sent"
    expect 600001 "$(wc -c <"$tmp/body")"
    ask removed.lua
    expect here "$body"
    rm "$lua/removed.lua"
    ask removed.lua
    expect_status 404
}

check() {
    httpd_children | sort >"$tmp/before"
    check_memory
    check_time
    check_instructions
    check_within
    check_errors
    check_injection
    check_clients_gone
    check_bytes
    httpd_children | sort >"$tmp/after"
    [ -z "$(comm -23 "$tmp/before" "$tmp/after")" ] || complain "a child has ended"
}
lua_test
exit $bad
