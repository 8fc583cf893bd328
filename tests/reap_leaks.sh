#!/bin/sh
# At exit each reap that was not destroyed has its line, by name, if that is asked for; also where each object is
# one of malloc.
program=${top_builddir:-.}/tests/reap_leaks
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
bad=0
sort >"$tmp/expected" <<END
reap: never destroyed: $(printf '%0100d' 0 | tr 0 k) AT: 0 objects, 0 bytes
reap: never destroyed: request AT below session: 1 objects, 80 bytes
reap: never destroyed: session AT: 2 objects, 1024 bytes
END
for options in leaks=1 leaks=1,bypass=1 leaks=1,harden=1; do
    REAP_OPTIONS=$options "$program" 2>"$tmp/said" || { echo "$options: status $?"; bad=1; }
    sed 's/0x[0-9a-f]*/AT/; s/, [0-9]* held$//' "$tmp/said" | sort | diff "$tmp/expected" - || { echo "$options"; bad=1; }
done
REAP_OPTIONS=stats=0 "$program" 2>"$tmp/said"
[ ! -s "$tmp/said" ] || { cat "$tmp/said"; bad=1; }
exit $bad
