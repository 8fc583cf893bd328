#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What make fuzz has run is a line for each row in a file, which adds up from run to run: of two at once, of one that is
# asked to end, and of one that is killed no line is half or mixed, and the sum at the end is that of all lines.
. "${srcdir:-.}/tests/support/script.sh"
line='^[0-9]{4}-[0-9]{2}-[0-9T:-]+ [^ ]+ plain 1 [^ ]+ [0-9]+-[0-9]+ [0-9]+ [0-9]+ [0-9]+ [0-9]+$'

# fuzz SECONDS JOBS [VARIABLE=VALUE...]
fuzz() {
    seconds=$1 jobs=$2
    shift 2
    exec env srcdir="$srcdir" top_builddir="$build" FUZZ_DIR="$tmp/fuzz" FUZZ_COUNTS="$tmp/counts" FUZZ_EACH=1 \
        FUZZ_ROWS='^plain 1 (purge_ms=100|leaks=1)(;|$)' "$@" "${SHELL:-/bin/sh}" "$srcdir/tests/fuzz/fuzz_long.sh" "$seconds" "$jobs"
}
lines() { grep -cE "$line" "$tmp/counts"; }
# counted OUTPUT TORN: all lines but so many are whole, one heading stands first, and the sum is theirs.
counted() {
    cp "$1" "$tmp/said"
    head -n 1 "$tmp/counts" | grep -q '^# date ' && [ "$(grep -c '^#' "$tmp/counts")" = 1 ] || wrong "not one heading"
    [ "$(grep -v '^#' "$tmp/counts" | grep -cvE "$line")" = "$2" ] || wrong "not $2 lines that are not whole: $(cat "$tmp/counts")"
    sum=$(grep -E "$line" "$tmp/counts" | awk '{ n += $7; o += $8; f += $10; if ($8 != $7 * 20000) exit 1 } END { print "all " n " programs " o " operations " f }')
    sed -n 's/^all  *\([0-9]*\) programs  *\([0-9]*\) operations .* hours  *\([0-9]*\) failures$/all \1 programs \2 operations \3/p' "$1" |
        grep -qxF "$sum" || wrong "the sum is not '$sum'"
    grep -q "^$(lines) rows in " "$1" || wrong "it has not the number of $(lines) rows"
}

(fuzz 2 2) >"$tmp/one" 2>&1 &
one=$!
(fuzz 2 1) >"$tmp/two" 2>&1 || { cat "$tmp/two"; wrong "a run fails"; }
wait $one || { cat "$tmp/one"; wrong "the other one fails"; }
(fuzz 0 1) >"$tmp/none" 2>&1
counted "$tmp/none" 0
[ "$(lines)" = "$(cat "$tmp/one" "$tmp/two" | grep -c '^[0-9:]* plain, ')" ] || wrong "not a line for each row"
[ "$(lines)" -ge 3 ] || wrong "few lines: $(lines)"

# Asked to end, long before its row does: what it has run is counted, and its driver has gone.
before=$(lines)
# The driver, which has its file's name, has waited for programs: for a tenth of a second of CPU time.
has_worked() {
    for process in /proc/[0-9]*; do
        [ "$(readlink "$process/exe")" != "$tmp/fuzz/plain" ] || ! awk '{ exit !($2 == "(plain)" && $16 + $17 >= 10) }' "$process/stat" || return 0
    done 2>/dev/null
    return 1
}
(fuzz 500 1 FUZZ_EACH=400 FUZZ_ROWS='^plain 1 leaks=1$') >"$tmp/ended" 2>&1 &
within 60 has 1 "$tmp/ended" '^builds:' || wrong "it does not begin"
within 60 has_worked || wrong "its driver does not work"
kill $!
wait $!
[ $? = 130 ] || wrong "asked to end, it ends with another status"
counted "$tmp/ended" 0
[ "$(lines)" = $((before + 1)) ] && tail -n 1 "$tmp/counts" | awk '{ exit !($7 > 0 && $9 < 60 && $10 == 0) }' || wrong "what it has run is not counted"

# Killed, all of it; and a line that a full disk has cut.
setsid "${SHELL:-/bin/sh}" -c 'echo $$ >"$0"; exec "$@"' "$tmp/group" env srcdir="$srcdir" top_builddir="$build" FUZZ_DIR="$tmp/fuzz" \
    FUZZ_COUNTS="$tmp/counts" FUZZ_EACH=1 FUZZ_ROWS='^plain 1 leaks=1$' "${SHELL:-/bin/sh}" "$srcdir/tests/fuzz/fuzz_long.sh" 500 2 >"$tmp/killed" 2>&1 &
within 30 has 2 "$tmp/killed" ' plain, ' || wrong "it does not run"
kill -9 -"$(cat "$tmp/group")"
wait $! 2>/dev/null
printf '2026-11-27T13:00:00 abc plain 1 pur' >>"$tmp/counts"
(fuzz 1 1) >"$tmp/after" 2>&1 || wrong "it fails after one that was killed"
counted "$tmp/after" 1
grep -q 'and 1 lines that are none' "$tmp/after" || wrong "a cut line is not told"

# With no time at all each program fails: counted, too.
(fuzz 4 1 FUZZ_ARGUMENTS='--limit 0 --no-shrink') >"$tmp/failed" 2>&1 && wrong "programs fail, and it does not"
counted "$tmp/failed" 1
tail -n 1 "$tmp/counts" | awk '{ exit !($10 > 0) }' || wrong "a failure is not counted"
exit $bad
