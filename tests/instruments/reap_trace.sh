#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The lines of a trace, in order; nothing without one; and a word about a file that cannot be opened.
program=${top_builddir:-.}/tests/instruments/reap_leaks
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
bad=0
cat >"$tmp/expected" <<'END'
N N create AT
N N create AT
N N create AT
N N limit AT gone: 200 more, of 100
N N clear AT gone: 1 objects, 64 bytes, 1 chunks, 8192 held
N N create AT
N N create AT below AT
N N create AT shared
N N create AT below AT
N N destroy AT: 0 objects, 0 bytes, 1 chunks, 1024 held, 1024 at most, after N
N N destroy AT shared: 0 objects, 0 bytes, 1 chunks, 8192 held, 8192 at most, after N
N N destroy AT gone: 0 objects, 0 bytes, 1 chunks, 8192 held, 8192 at most, after N
N N destroy AT late: 0 objects, 0 bytes, 1 chunks, 8192 held, 8192 at most, after N
END
REAP_OPTIONS=trace=$tmp/trace,purge_ms=50 "$program" >"$tmp/handle" 2>"$tmp/said" || { echo "status $?"; bad=1; }
sed 's/0x[0-9a-f]*/AT/g; s/^[0-9]* [0-9]* /N N /; s/after [0-9]*$/after N/' "$tmp/trace" | diff "$tmp/expected" - || bad=1
[ ! -s "$tmp/said" ] || { cat "$tmp/said"; bad=1; }
for event in "create $(cat "$tmp/handle") shared" "below $(cat "$tmp/handle")" "destroy $(cat "$tmp/handle") shared:"; do
    grep -q "$event" "$tmp/trace" || { echo "not by its handle: $event"; bad=1; }
done
awk '$2 < last { print "not in order: " $0; bad = 1 } { last = $2 } END { exit bad }' "$tmp/trace" || bad=1
REAP_OPTIONS=trace=$tmp/none/trace "$program" 2>"$tmp/said"
echo "reap: REAP_OPTIONS: trace=$tmp/none/trace cannot be opened: No such file or directory" | diff - "$tmp/said" || bad=1
exit $bad
