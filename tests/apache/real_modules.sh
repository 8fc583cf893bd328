#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Modules that administrators run give the same answers with httpd's pools on reaps as on stock pools: PHP, mod_perl,
# mod_wsgi and ModSecurity as Debian has them. A client compares all answers of a load with the first; one is compared with
# the stock server's, and the error log is looked at. The table has, of the parent and its children after the load, PSS, the
# anonymous memory of each (both as the kernel says), and how much of that lies in pools and in malloc, as mod_reap says.
#
#     tests/apache/real_modules.sh [MODULE...]       from the build directory, or with top_builddir set
#
# REQUESTS (300) is how many; the long form, an empty REAP_TEST_SHORT, has 50000, and each load once more with the malloc
# preloaded as well, and with the heap profile. A module that is not here is skipped.
. "${srcdir:-.}/tests/apache/mod_reap_lib.sh"

requests=${REQUESTS:-300} servers='stock reaps'
if [ -z "${REAP_TEST_SHORT:-}" ]; then requests=${REQUESTS:-50000} servers='stock reaps reaps+malloc profiled'; fi
client=$(realpath "$srcdir/tests/apache/growth.py")

# --- what each module is given ------------------------------------------------------------------

# Name, its file, what needs.sh calls it, MPM, path. A child of event with mod_wsgi does not end by WINCH, stock as it is.
modules='php libphp8.2.so mod_php8.2 prefork /work.php
perl mod_perl.so mod_perl2 prefork /perl
wsgi mod_wsgi.so mod_wsgi prefork /wsgi
security mod_security2.so mod_security2 event /page.txt?text=some+harmless+words&more=100'

write_php() {
    cat >"$dir/htdocs/work.php" <<'END'
<?php
$words = [];
for ($i = 0; $i < 2000; $i++) $words["key $i"] = str_repeat(chr(97 + $i % 26), $i % 50);
echo md5(json_encode($words)), ' ', preg_match_all('/a+/', implode(' ', $words)), "\n";
echo strlen(str_repeat('x', 1 << 20)), "\n";
END
    echo "LoadModule php_module $file"
    # shellcheck disable=SC2016  # httpd's pattern
    echo '<FilesMatch \.php$>' && echo 'SetHandler application/x-httpd-php' && echo '</FilesMatch>'
}

write_perl() {
    cat >"$dir/Work.pm" <<'END'
package Work;
use strict;
use Apache2::RequestRec ();
use Apache2::RequestIO ();
use Apache2::Const -compile => 'OK';
use APR::Table ();
sub handler {
    my $r = shift;
    my %words = map { ("key $_" => chr(97 + $_ % 26) x ($_ % 50)) } 1 .. 1000;
    my @kept = sort grep { $words{$_} =~ /^a+$/ } keys %words;
    $r->content_type('text/plain');
    $r->headers_out->set('X-Kept' => scalar @kept);
    $r->print(join(',', @kept), "\n");
    return Apache2::Const::OK;
}
1;
END
    echo "LoadModule perl_module $file"
    echo "PerlRequire $dir/Work.pm"
    printf '<Location /perl>\nSetHandler modperl\nPerlResponseHandler Work\n</Location>\n'
}

write_wsgi() {
    cat >"$dir/work.wsgi" <<'END'
import json
def application(environ, start_response):
    words = {f"key {i}": chr(97 + i % 26) * (i % 50) for i in range(1000)}
    body = (json.dumps(words) + environ["REQUEST_METHOD"]).encode()
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))])
    return [body]
END
    echo "LoadModule wsgi_module $file"
    printf 'WSGIScriptAlias /wsgi %s\n<Directory %s>\nRequire all granted\n</Directory>\n' "$dir/work.wsgi" "$dir"
}

write_security() {
    echo "LoadModule unique_id_module $httpd_modules/mod_unique_id.so"
    echo "LoadModule security2_module $file"
    cat <<END
SecRuleEngine On
SecRequestBodyAccess On
SecResponseBodyAccess On
SecResponseBodyMimeType text/plain
SecDataDir $dir
SecTmpDir $dir
SecRule ARGS "@rx (?i)(union\\s+select|<script)" "id:1,phase:2,deny,status:403,t:urlDecodeUni,t:lowercase"
SecRule REQUEST_HEADERS "@pm attack evil" "id:2,phase:1,deny,status:403"
SecRule RESPONSE_BODY "@contains never in this page" "id:3,phase:4,deny,status:403"
END
}

# What the stock server must have said, so that this compares real answers.
holds() {
    case $1 in
        php) grep -qx 1048576 "$2" ;;
        perl) grep -q '^X-Kept: ' "$2" ;;
        wsgi) grep -q '"key 999": .*GET' "$2" ;;
        security) grep -qx 2000 "$2" && grep -q '^HTTP/1.1 403' "$2.denied" ;;
    esac
}

# --- one server ---------------------------------------------------------------------------------

# answer_to FILE PATH: with its headers, but for what differs each time
answer_to() {
    curl -sS -i --max-time 60 "http://127.0.0.1:$httpd_port$2" >"$1" 2>&1 || fail "$name, $pools: $2: $(cat "$1")"
    sed -i -E 's/^date: .*/date: masked/I' "$1"
}

# KiB of pools, and of malloc by the profile, whose largest shares are in $tmp/shares. A process has its parent's samples, too.
as_told() {
    [ "$pools" != stock ] || { echo - -; return; }
    fresh_look
    sed -n 's/^ReapMalloc \(.*\): \([0-9]*\) bytes.*/\2 \1/p' "$tmp/auto" | sort -rn >"$tmp/shares"
    awk -F ': ' '$1 == "ReapPoolBytes" { printf "%d ", $2 / 1024 }' "$tmp/auto"
    awk '{ sum += $1 } END { if (NR) printf "%d\n", sum / 1024; else print "-" }' "$tmp/shares"
}

# serve PRELOAD...: the answers of one server, into $tmp/$pools
serve() {
    httpd_start "$dir" "$1"
    answer_to "$tmp/$name.$pools" "$path"
    [ "$name" != security ] || answer_to "$tmp/$name.$pools.denied" '/page.txt?text=union+select'
    python3 -B "$client" mix "$httpd_port" "$requests" "$tmp/count" "$path=1" >"$tmp/client" 2>&1 ||
        fail "$name, $pools: $(cat "$tmp/client")"
    held=$(httpd_pss)
    # shellcheck disable=SC2046,SC2059  # two words; the row
    printf "$row" "$name" "$pools" "$requests" "$held" "$(httpd_memory Anonymous)" $(as_told)
    [ "$pools" != profiled ] || sed -n '1,3s/^\([0-9]*\) /    \1 bytes: /p' "$tmp/shares"
    httpd_stop
    httpd_log_is_clean "$dir" || fail "$name, $pools: the error log"
    [ "$pools" != stock ] || { holds "$name" "$tmp/$name.stock" || fail "$name: the stock server's own answer"; return; }
    for answer in "$tmp/$name.stock"*; do
        cmp "$answer" "$tmp/$name.$pools${answer#"$tmp/$name.stock"}" || fail "$name, $pools: another answer than the stock server's"
    done
}

# --- all of them --------------------------------------------------------------------------------

tried=0
row='%-10s %-14s %8s %10s %10s %10s %10s\n'
# shellcheck disable=SC2059  # the row
printf "$row" module pools requests 'KiB PSS' anonymous 'in pools' 'in malloc'
while read -r name file what mpm path; do
    case " ${*:-$name} " in *" $name "*) ;; *) continue ;; esac
    file=$httpd_modules/$file
    ! lacks_file "$file" "$what" "$name" || continue
    reap_prepare "$tmp/$name" "$mpm" "ReapStatus on"
    "write_$name" >>"$dir/httpd.conf"
    for pools in $servers; do
        case $pools in
            stock) serve '' ;;
            reaps) serve "$reaps" ;;
            reaps+malloc) serve "$httpd_libs/libreap-malloc.so:$reaps" ;;
            profiled)
                export REAP_OPTIONS=ask=@reap.%p REAP_PROFILE=/dev/null REAP_PROFILE_BYTES=65536
                serve "$httpd_libs/libreap-malloc.so:$reaps:$httpd_libs/libreap-ask.so:$httpd_libs/libreap-profile.so"
                unset REAP_OPTIONS REAP_PROFILE REAP_PROFILE_BYTES
                ;;
        esac
    done
    tried=$((tried + 1))
done <<END
$modules
END
[ "$tried" != 0 ] || skip "none of these modules is here"
