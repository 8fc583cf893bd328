#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The USDT probes are in both libraries, all of them, each with its arguments and of the provider reap; and a
# tracer (gdb) that stops at one finds there what the page says.
. "${srcdir:-.}/tests/support/script.sh"
grep -q '^#define REAP_PROBES 1' "$build/config.h" || { absent probes; exit 77; }

sed -n 's/^\.BI \([a-z_]*\)(\(.*\)/\1 \2/p' "$srcdir/doc/libreap-malloc.7" |
    awk '{ name = $1; $1 = ""; print name, gsub(/,/, "") + 1 }' | sort >"$tmp/promised"
[ "$(wc -l <"$tmp/promised")" -gt 10 ] || wrong "the page could not be read"
for lib in libreap libreap-malloc; do
    readelf -nW "$build/.libs/$lib.so" | awk '
        /Provider:/ { provider = $NF }
        $1 == "Name:" { name = $2 }
        $1 == "Arguments:" { if (provider == "reap") print name, NF - 1 }' | sort -u >"$tmp/probes"
    diff "$tmp/promised" "$tmp/probes" >"$tmp/diff" || { wrong "$lib.so: (< promised, > there)"; cat "$tmp/diff"; }
done

# misuses twice: the one misuse, seen from outside, and nothing on the fast path.
if ! lacks gdb "reap:misuse in gdb"; then
    gdb -q -nx -batch -ex "set environment LD_PRELOAD $build/.libs/libreap-malloc.so" \
        -ex 'set startup-with-shell off' -ex 'set breakpoint pending on' -ex 'break -probe-stap reap:misuse' \
        -ex run -ex 'printf "seen %s: %s\n", $_probe_arg0, $_probe_arg2' -ex kill \
        --args "$build/tests/security/misuses" twice small >"$tmp/gdb" 2>&1 </dev/null
    if grep -qE 'Could not trace|ptrace: ' "$tmp/gdb"; then
        echo "skipped: gdb may not trace here: reap:misuse in gdb"
    else
        grep -q '^seen free: freed twice' "$tmp/gdb" || { wrong "gdb does not see reap:misuse"; tail "$tmp/gdb"; }
    fi
fi
exit $bad
