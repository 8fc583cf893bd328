#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# At exit each reap that was not destroyed has its line, by name, if that is asked for; also where each object is
# one of malloc.
program=${top_builddir:-.}/tests/instruments/reap_leaks
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
bad=0
sort >"$tmp/expected" <<END
reap: never destroyed: $(printf '%0100d' 0 | tr 0 k) AT: 0 objects, 0 bytes
reap: never destroyed: request AT below session: 1 objects, 80 bytes
reap: at the end of NAME, process PID
reap: never destroyed: session AT: 2 objects, 1024 bytes
END
for options in leaks=1 leaks=1,bypass=1 leaks=1,harden=1; do
    REAP_OPTIONS=$options "$program" 2>"$tmp/said" || { echo "$options: status $?"; bad=1; }
    sed 's/0x[0-9a-f]*/AT/; s/, [0-9]* held$//; s/of [-a-z_]*, process [0-9]*$/of NAME, process PID/' "$tmp/said" | sort | diff "$tmp/expected" - || { echo "$options"; bad=1; }
done
# Whose lines they are, once, also before those of stats=1.
REAP_OPTIONS=leaks=1,stats=1 "$program" 2>"$tmp/said"
[ "$(grep -c '^reap: at the end of .*reap_leaks, process [0-9][0-9]*$' "$tmp/said")" = 1 ] || { echo "which program?"; bad=1; }
head -n 1 "$tmp/said" | grep -q '^reap: at the end of ' || { echo "not at first"; bad=1; }
REAP_OPTIONS=help "$program" 2>"$tmp/said"
for name in $(sed -n 's/^ *{"\([a-z_]*\)", AT(.*/\1/p' "${srcdir:-.}/lib/base/options.c") 'libreap-malloc(7)'; do
    grep -qF " $name" "$tmp/said" || { echo "help has no $name"; bad=1; }
done
[ "$(wc -l <"$tmp/said")" = 1 ] || { cat "$tmp/said"; bad=1; }
REAP_OPTIONS=stats=0 "$program" 2>"$tmp/said"
[ ! -s "$tmp/said" ] || { cat "$tmp/said"; bad=1; }
exit $bad
