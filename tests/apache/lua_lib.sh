# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# What tests of mod_reap_lua share: sourced, not run. A test defines make_scripts DIR,
# lua_directives DIR, which prints configuration, and check, and ends with lua_test.
. "${srcdir:-.}/tests/support/httpd_lib.sh"

lua_module=$build/apache_module/.libs/mod_reap_lua.so
need_file "$lua_module" mod_reap_lua
httpd_require
base=/lua/

# script NAME LINE: a script of one line. Not by echo, which may expand what is Lua's.
script() { printf '%s\n' "$2" >"$lua/$1.lua"; }

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

# lua_run stock|reaps-MPM
lua_run() {
    pools=${1%-*} mpm=${1#*-} mode="${1%-*} pools, ${1#*-}"
    dir=$tmp/site lua=$tmp/site/htdocs/lua
    mkdir -p "$dir"
    httpd_prepare "$dir" "$mpm"
    mkdir -p "$lua"
    script hello 'print("hello", 1, nil, true) r:write("a", 2, "b\n")'
    make_scripts "$dir"
    {
        echo "LoadModule reap_lua_module $lua_module"
        printf '<Directory %s>\nAddHandler reap-lua .lua\n</Directory>\nReapLuaReport on\n' "$lua"
        lua_directives "$dir"
    } >>"$dir/httpd.conf"
    if [ "$pools" = reaps ]; then httpd_start "$dir" "$httpd_libs/libreap-apr.so"; else httpd_start "$dir"; fi
    logged=0
    check
    httpd_end_well
}

lua_test() { at_once lua_run stock-prefork reaps-prefork stock-event reaps-event; }
