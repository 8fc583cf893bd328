#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# libreap-apr stands in for all of libapr's pools and allocators: it exports every such name that
# libapr does, and in a running httpd each of them binds to it. One missed, and stock code would
# read our struct as its own.
. "${srcdir:-.}/tests/support/httpd_lib.sh"
LC_ALL=C
export LC_ALL

need_file "$httpd_libs/libreap-apr.so" libreap-apr
lib=$httpd_libs/libreap-apr.so
names='^apr_(pool_|allocator_|palloc|pcalloc|psprintf|pvsprintf)'

apr=$(LD_LIBRARY_PATH=$httpd_libs ldd "$lib" | awk '$1 ~ /^libapr-1\.so/ { print $3 }')
[ -e "$apr" ] || fail "libreap-apr is not linked to libapr"
exported() { nm -D --defined-only "$1" | awk '{ print $3 }' | sort -u; }

exported "$apr" | grep -E "$names" >"$tmp/wanted"
[ "$(wc -l <"$tmp/wanted")" -ge 45 ] || fail "libapr exports only $(wc -l <"$tmp/wanted") of its pool functions"
printf '%s\n' apr_brigade_create apr_brigade_destroy apr_pfree apr_pmemdup apr_pool_reap apr_prealloc apr_pstrdup apr_pstrmemdup | sort -u - "$tmp/wanted" >"$tmp/promised"
exported "$lib" >"$tmp/exported"
diff "$tmp/promised" "$tmp/exported" || fail "exports (< promised, > exported)"

# Reaps come from libreap, and are not contained: what is not defined here is needed from there.
nm -D --undefined-only "$lib" | awk '{ print $2 }' | grep -E '^(reap[A-Z]|hoard_)' >"$tmp/needed"
for name in reapMalloc reapCreate reapDestroy reapFreeAll hoard_malloc; do
    grep -q "^$name" "$tmp/needed" || fail "$name is not taken from libreap"
done
readelf -dW "$lib" | grep -q 'NEEDED.*\[libreap\.so\.' || fail "libreap.so is not needed"
! readelf -VW "$lib" | grep -q 'Version definition' || fail "libreap-apr defines a version node"
echo "$(wc -l <"$tmp/wanted") names of libapr, and 3 of ours"

! lacks_file "$APACHE2" apache2 "what binds to libreap-apr in it" || exit 0
httpd_prepare "$tmp" event
LD_PRELOAD=$lib LD_LIBRARY_PATH=$httpd_libs LD_BIND_NOW=1 LD_DEBUG=bindings LD_DEBUG_OUTPUT=$tmp/bindings \
    "$APACHE2" -t -f "$tmp/httpd.conf" 2>"$tmp/said" || { cat "$tmp/said"; fail "apache2 -t"; }
# "binding file A [0] to B [0]: normal symbol `name' [version]"
cat "$tmp"/bindings.* | sed -n "s/.*binding file \([^ ]*\) \[0\] to \([^ ]*\) \[0\]: normal symbol \`\(apr_[a-z_]*\)'.*/\3 \1 \2/p" |
    grep -E "$names" | sort -u >"$tmp/bound"
grep -v ' [^ ]*/libreap-apr.so$' "$tmp/bound" >"$tmp/astray" && { cat "$tmp/astray"; fail "bound elsewhere"; }
for caller in apache2 libapr-1 libaprutil-1 mod_proxy_http; do
    grep -q " [^ ]*/$caller[^ ]* " "$tmp/bound" || fail "no call from $caller was seen"
done
echo "$(wc -l <"$tmp/bound") bindings in $(cut -d' ' -f2 "$tmp/bound" | sort -u | wc -l) files, all to libreap-apr"

# A program without APR runs with it too.
LD_PRELOAD=$lib LD_LIBRARY_PATH=$httpd_libs LD_BIND_NOW=1 ls / >"$tmp/ls" 2>&1 || { cat "$tmp/ls"; fail "ls"; }
