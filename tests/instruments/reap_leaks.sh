#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# At exit each reap that was not destroyed has its line, by name, if that is asked for; also where each object is
# one of malloc.
. "${srcdir:-.}/tests/support/script.sh"
program=$build/tests/instruments/reap_leaks
sort >"$tmp/expected" <<END
reap: never destroyed: $(printf '%0100d' 0 | tr 0 k) AT: 0 objects, 0 bytes
reap: never destroyed: request AT below session: 1 objects, 80 bytes
reap: at the end of NAME, process PID
reap: never destroyed: session AT: 2 objects, 1024 bytes
END
for options in leaks=1 leaks=1,bypass=1 leaks=1,harden=1; do
    REAP_OPTIONS=$options "$program" 2>"$tmp/said" || wrong "$options: status $?"
    sed 's/0x[0-9a-f]*/AT/; s/, [0-9]* held$//; s/of [-a-z_]*, process [0-9]*$/of NAME, process PID/' "$tmp/said" | sort | diff "$tmp/expected" - || wrong "$options"
done
# Whose lines they are, once, also before those of stats=1.
REAP_OPTIONS=leaks=1,stats=1 "$program" 2>"$tmp/said"
[ "$(grep -c '^reap: at the end of .*reap_leaks, process [0-9][0-9]*$' "$tmp/said")" = 1 ] || wrong "which program?"
head -n 1 "$tmp/said" | grep -q '^reap: at the end of ' || wrong "not at first"
# A server leaves its starter's pipe, though it may have something to say at its end.
for how in daemon redirect close; do
    rm -f "$tmp/server"
    (REAP_OPTIONS=leaks=1,stats=1 "$program" $how "$tmp/server" 2>&1 &) | timeout 40 cat >"$tmp/said" ||
        wrong "$how: the pipe stays open"
    within 60 [ -s "$tmp/server" ]
    kill "$(cat "$tmp/server")" || bad=1
    grep reap: "$tmp/said" && bad=1
done
REAP_OPTIONS=help "$program" 2>"$tmp/said"
names=$(sed -n 's/^ *{"\([a-z_]*\)", AT(.*/\1/p' "${srcdir:-.}/lib/base/options.c")
for name in $names; do
    grep -q "^reap:   $name=[^ ].* ([^)]*): [a-zA-Z0-9]" "$tmp/said" || wrong "help has no $name"
done
head -n 1 "$tmp/said" | grep -qF 'libreap-malloc(7)' || wrong "help does not name the page"
[ "$(wc -l <"$tmp/said")" = $(($(echo "$names" | wc -l) + 1)) ] || { cat "$tmp/said"; bad=1; }
grep -q '^reap:   heaps=cid|cpu|.*dynamic:N|.* (cid): ' "$tmp/said" || wrong "help: words"
grep -q '^reap:   slack=0 to 1024 (4): ' "$tmp/said" || wrong "help: bounds"
# stats=1: six lines, the options in force, bytes with units, and figures that fit.
REAP_OPTIONS=stats=1,slack=4 "$program" 2>"$tmp/stats"
[ "$(wc -l <"$tmp/stats")" = 6 ] || { wrong "not six lines"; cat "$tmp/stats"; }
grep -qE ' held [0-9]+ \([0-9.]+ [KMG]iB\)' "$tmp/stats" || wrong "no units"
grep -q '^reap: options .* slack=4 ' "$tmp/stats" || wrong "not the options in force"
sed 's/ ([0-9.]* .iB)//g; s/,//g' "$tmp/stats" | awk '
/^reap: live/ { ok = $3 > 0 && $3 <= $10 && $10 <= $13 }
/^reap: heaps/ { ok = ok && $3 >= 1 }
/^reap: slow mallocs/ { ok = ok && $4 >= 1 && $10 >= 0 }
END { exit !ok }' || { echo "figures"; cat "$tmp/stats"; bad=1; }
REAP_OPTIONS=stats=0 "$program" 2>"$tmp/said"
[ ! -s "$tmp/said" ] || { cat "$tmp/said"; bad=1; }
exit $bad
