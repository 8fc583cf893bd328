#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A request beyond a limit, byte by byte: its client gets one error page and nothing behind it, or an answer that is cut
# off, whatever the handler calls (mod_reap_deny.py has the tables). Under each MPM, or the one named.
# HTTPD_PHP names libphp8.2.so, where it is not among httpd's modules.
. "${srcdir:-.}/tests/apache/mod_reap_lib.sh"
php=${HTTPD_PHP:-$httpd_modules/libphp8.2.so}

directives() {
    cat <<END
ReapLimitRequest 1M
Protocols h2c http/1.1
<Location /runaway/unlimited>
ReapLimitRequest none
</Location>
<Location /close>
SetHandler runaway
</Location>
<LocationMatch "^(/early)?/close">
ReapLimitAction close
</LocationMatch>
Alias /index-64k $dir/htdocs/big
<Location /index-64k>
ReapLimitRequest 64K
</Location>
<Location /deflated>
SetHandler runaway
SetOutputFilter DEFLATE
</Location>
<Location /document>
SetHandler runaway
</Location>
<Location /proxied/runaway>
SetOutputFilter RUNAWAY
</Location>
END
    while read -r name document; do
        printf '<Location /document/%s>\nErrorDocument 500 %s\n</Location>\n' "$name" "$document"
    done <<END
big /large.txt
script /cgi/hello.cgi
runaway /runaway/unlimited?send=300
text "a text"
missing /nothing
index /big/
END
}

# Scripts: each step has a piece of the request's pool, and a line.
add_lua() {
    ! lacks_file "$httpd_modules/mod_lua.so" "Apache's modules" "mod_lua's scripts" || return
    printf 'LoadModule lua_module %s\nAddHandler lua-script .lua\n' "$httpd_modules/mod_lua.so" >>"$dir/httpd.conf"
    cat >"$dir/htdocs/script.lua" <<'END'
function handle(r)
    r.content_type = "text/plain"
    if r.args and r.args:find("^begin") then r:puts("begun\n") r:flush() end
    for i = 1, 120 do
        r.notes["piece" .. i] = string.rep("x", 65535)
        r:puts(string.rep("l", 199) .. "\n")
    end
    return apache2.OK
end
END
    options="$options lua"
}

add_reap_lua() {
    built=$build/apache_module/.libs/mod_reap_lua.so
    ! lacks_file "$built" mod_reap_lua "its scripts" || return
    printf 'LoadModule reap_lua_module %s\nAddHandler reap-lua .rlua\n' "$built" >>"$dir/httpd.conf"
    cat >"$dir/htdocs/script.rlua" <<'END'
local kept = {}
if r.args and r.args:find("^begin") then r:write("begun\n") r:flush() end
for i = 1, 120 do
    kept[i] = string.rep("x", 65535) .. i
    r:write(string.rep("l", 199), "\n")
end
END
    options="$options rlua"
}

# PHP is for processes without threads.
add_php() {
    [ "$1" = prefork ] || return
    ! lacks_file "$php" mod_php8.2 "its scripts" || return
    printf 'LoadModule php_module %s\n<FilesMatch "\\.php$">\nSetHandler application/x-httpd-php\n</FilesMatch>\n' "$php" >>"$dir/httpd.conf"
    cat >"$dir/htdocs/script.php" <<'END'
<?php
header('Content-Type: text/plain');
if (strpos($_SERVER['QUERY_STRING'], 'begin') === 0) { echo "begun\n"; flush(); }
for ($i = 0; $i < 120; $i++) {
    apache_note("piece$i", str_repeat('x', 65535));
    echo str_repeat('l', 199), "\n";
}
END
    options="$options php"
}

# An include that is denied; what comes before it is out, since mod_include passes that first, and more comes behind it.
add_page() {
    {
        echo 'the page begins'
        echo '<!--#include virtual="/runaway?begin&by=puts&deaf&grow=120" -->'
        head -n 5000 "$dir/htdocs/large.txt"
    } >"$dir/htdocs/include.shtml"
}

run() {
    mpm=$1 mode=$1 options=
    reap_prepare "$tmp/$mpm" "$mpm"
    directives >>"$dir/httpd.conf"
    [ "$mpm" != prefork ] || sed -i '/^Protocols/d' "$dir/httpd.conf"
    add_lua
    add_reap_lua
    add_php "$mpm"
    add_page
    httpd_start "$dir" "$reaps"
    # shellcheck disable=SC2086  # words
    python3 -B "$srcdir/tests/apache/mod_reap_deny.py" "$httpd_port" "$httpd_back" "$dir/access.log" "$mpm" \
        "$dir/htdocs/large.txt" $options >"$tmp/said" 2>&1 || complain "see below"
    tail -n 40 "$tmp/said"
    httpd_end_well
}

at_once run ${1:-event worker prefork}
exit $bad
