#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The heap profile (libreap-profile) of programs that know what they allocate: its sums are right within sampling's
# error, as pprof's format, picture and lines, with threads, fork, modules that come later, and reaps that end. Off,
# the program's calls go where they went before. Bad requests have a line each.
. "${srcdir:-.}/tests/support/preload-lib.sh"
need python3
need_file "$build/.libs/libreap-profile.so" libreap-profile
ask=$build/tools/ask/reap-ask program=$build/tests/profile/profiled module=$build/tests/profile/.libs/module.so
libraries="$preload $build/.libs/libreap-ask.so $build/.libs/libreap-profile.so"
bytes=${PROFILE_BYTES:-8192}
at_exit='exec 9>&-; kill $started 2>/dev/null'
started=

# lines N: waits until the program has printed as many.
lines() {
    within 30 has "$1" "$tmp/out" '' || wrong "the program prints no line $1"
}
# start WORK [ARGUMENT]: the program in the background, which waits for a line. Its number goes to $pid.
start() {
    rm -f "$tmp/in" "$tmp/out"
    mkfifo "$tmp/in"
    : >"$tmp/out"
    REAP_OPTIONS=ask=@reap.%p LD_PRELOAD=$libraries "$program" "$@" <"$tmp/in" >"$tmp/out" 2>"$tmp/err" &
    started=$!
    exec 9>"$tmp/in"
    lines 1
    pid=$(head -n 1 "$tmp/out")
    within 60 answers "$pid"
    grep -q '^profile: ' "$tmp/help" || wrong "the question is not there"
}
answers() { "$ask" "$1" help >"$tmp/help" 2>&1; }
go_on() { echo >&9; }
stop() {
    go_on
    exec 9>&-
    wait $started || wrong "the program ends with status $?"
    [ ! -s "$tmp/err" ] || { wrong "it says:"; cat "$tmp/err"; }
}
profile() { "$ask" "$pid" profile "$@"; }
has_samples() { profile | grep -q '^profile: .* bytes: [1-9]'; }
# says LINE COMMAND...: it fails, and writes this line only.
says() {
    line=$1
    shift
    "$@" >"$tmp/said" 2>"$tmp/refused" && wrong "no failure: $*"
    [ ! -s "$tmp/said" ] || wrong "it prints: $*"
    grep -qxF -- "reap-ask: reap: profile: $line" "$tmp/refused" || { wrong "$* does not say '$line', but:"; cat "$tmp/refused"; }
}
reports() {
    profile pprof >"$tmp/pprof" && profile flames >"$tmp/svg" && profile >"$tmp/text" && profile mallocs >"$tmp/mallocs" || wrong "no report"
    tail -n 1 "$tmp/out" >"$tmp/expected"
    python3 -B "$srcdir/tests/profile/heap_profile.py" "$tmp/pprof" "$tmp/svg" "$tmp/text" "$tmp/expected" "$bytes" || bad=1
}

# sums WORK: the profile is on while the program does its work.
sums() {
    start "$1"
    profile on "$bytes" >"$tmp/text" || wrong "it is not on"
    go_on
    lines 2
    reports
    stop
}

# --- sums -------------------------------------------------------------------------------------
for work in ${PROFILE_WORKS:-malloc kept ended cleared rewound freed moved shared entered limited charged}; do sums "$work"; done

# Of malloc's memory, whose it is and which module's; the picture and the lines were compared above.
grep -P '\tprofiled\t|\t[^\t]+$' "$tmp/mallocs" | cut -f 3- >"$tmp/said" # and what a thread of libreap-ask took for itself
[ "$(sort "$tmp/said" | tr '\n\t' ', ')" = "profiled ,profiled charged /url," ] || wrong "malloc's modules and names"
sed -n 's/^malloc for charged \/url: \([0-9]*\) live objects, \([0-9]*\) bytes.*/\2 \1/p' "$tmp/text" >"$tmp/sum"
awk -F '\t' '$4 != "" { print $1, $2 }' "$tmp/mallocs" | paste -d' ' - "$tmp/sum" >"$tmp/said" # each is rounded
awk '{ n++; exit ($1 - $3) ^ 2 > 1 || ($2 - $4) ^ 2 > 1 } END { if (n != 1) exit 1 }' "$tmp/said" || wrong "malloc's bytes and objects"

# The largest stacks, as a module hears of them: those of a tree, and of all.
start stacks
profile on "$bytes" >/dev/null
go_on
within 30 has 1 "$tmp/out" '^lower ' || wrong "no stacks"
reports
stop
awk '/^lower/ { lower = $3 } /^tree: / { n++; sum[$8] += $2; if (n == 1) first = $8; functions += $9 == "fill" && $11 == "use_stacks" }
    /^all: / && !all++ { largest = $8 }
    END { exit !(n >= 2 && n <= 10 && functions == 2 && first == "lower:" && largest == "aside:" && !sum["aside:"] &&
        (sum["lower:"] / lower - 1) ^ 2 < 0.04 && (sum["upper:"] / lower * 3 - 1) ^ 2 < 0.16) }' "$tmp/out" || { wrong "the largest stacks:"; cat "$tmp/out"; }

# A program at a fixed address, to which malloc is a jump in its own text.
program=${program}_fixed
for work in malloc kept; do sums "$work"; done
run_fixed() { printf '\n\n' | env REAP_PROFILE_BYTES="$bytes" REAP_PROFILE="$tmp/fixed" LD_PRELOAD="$libraries" "$program" kept; }
run_fixed >"$tmp/out" || wrong "at a fixed address it fails from the start"
program=$build/tests/profile/profiled

# A module that was opened while the profile was on; a child that was forked.
start module "$module"
profile on "$bytes" >/dev/null
go_on
lines 2
go_on
lines 3
reports
stop
start fork
profile on "$bytes" >/dev/null
go_on
lines 3
pid=$(sed -n 2p "$tmp/out")
reports
stop

# --- on and off -------------------------------------------------------------------------------
# Often, under three threads; children are forked meanwhile. Afterwards no word and no page is as it is while it is on.
writable() { awk '$2 ~ /w/ { split($1, a, "-"); n++ } END { print n }' "/proc/$pid/maps"; }
start churn
profile on "$bytes" >/dev/null && profile off >/dev/null # what it loads and maps once
go_on
lines 2
sleep 0.2
before=$(writable)
go_on
for turn in $(seq 40); do
    profile on 1024 >"$tmp/on" || wrong "not on"
    [ $turn -lt 40 ] || within 60 has_samples
    profile off >"$tmp/off" || wrong "not off"
done
grep -q 'profile: off, [0-9.]* s, a sample each 1024 bytes: [1-9]' "$tmp/off" || { wrong "it has no samples:"; cat "$tmp/off"; }
profile | head -n 1 | sed 's/.*bytes: //' >"$tmp/one"
sleep 0.2
profile | head -n 1 | sed 's/.*bytes: //' >"$tmp/two"
cmp -s "$tmp/one" "$tmp/two" || wrong "off, it goes on: $(cat "$tmp/one" "$tmp/two")"
after=$(writable)
[ $((after - before)) -le 8 ] || wrong "$before mappings could be written to, and $after can now"
lines 3
go_on
lines 4
[ "$(sed -n 3,4p "$tmp/out" | tr '\n' ' ')" = "forked ended " ] || { wrong "children:"; cat "$tmp/out"; }
stop

# --- requests ---------------------------------------------------------------------------------
start kept
says "it is off already" profile off
says "it was not on yet" profile pprof
says "it was not on yet" profile flames
for what in "on 0" "on -1" "on 1x" "on 1073741825" "on 99999999999999999999" "on 1 2"; do
    says "the bytes between two samples are 1 to 1073741824" profile "$what"
done
for what in onward offf "pprof x" "flames x" '\377' "$(printf '%4000s' | tr ' ' x)"; do
    says "it takes on [BYTES], off, pprof, flames, flames allocated, mallocs, or nothing" profile "$what"
done
[ "$(profile)" = "profile: off; on [BYTES] turns it on" ] || wrong "off: $(profile)"
profile on >"$tmp/text"
grep -q 'a sample each 524288 bytes: 0 samples' "$tmp/text" || { wrong "on:"; cat "$tmp/text"; }
says "it is on already" profile on
profile flames >"$tmp/svg" && python3 -c 'import sys, xml.etree.ElementTree as x; x.parse(sys.argv[1])' "$tmp/svg" || wrong "no picture of nothing"
go_on
lines 2
stop

# --- from the start ---------------------------------------------------------------------------
run() { printf '\n\n' | env REAP_PROFILE_BYTES="$1" REAP_PROFILE="$2" LD_PRELOAD="$libraries" "$program" kept 2>"$tmp/err"; }
run 4096 "$tmp/at-exit" >"$tmp/out" && [ ! -s "$tmp/err" ] || { wrong "the program says:"; cat "$tmp/err"; }
run 4096 "$tmp/at-exit.svg" >/dev/null && grep -q '</svg>' "$tmp/at-exit.svg" || wrong "no picture at exit"
run 4096 "$tmp/at-exit.txt" >/dev/null && grep -q '^malloc: ' "$tmp/at-exit.txt" || wrong "no text at exit"
echo 'from pathlib import Path; import heap_profile, sys
samples = heap_profile.read(sys.argv[1])[2]; kept = int(Path(sys.argv[2]).read_text().split()[3])
sys.exit(not 0.8 < sum(values[3] for name, _, values in samples if name == "kept") / kept < 1.25)' >"$tmp/look.py"
PYTHONPATH=$srcdir/tests/profile python3 -B "$tmp/look.py" "$tmp/at-exit" "$tmp/out" || wrong "no file at exit, or another one"
for place in /dev/full "$tmp/none/file"; do
    run 4096 "$place" >/dev/null || wrong "the program fails"
    grep -q "^reap: REAP_PROFILE=$place: it cannot be written: " "$tmp/err" || { wrong "$place:"; cat "$tmp/err"; }
done
run 0 "$tmp/none" >/dev/null
grep -qx "reap: REAP_PROFILE=$tmp/none: the bytes between two samples are 1 to 1073741824" "$tmp/err" || { wrong "0 bytes:"; cat "$tmp/err"; }
exit $bad
