#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Replays of a trace: each does all of it, on each malloc that is here, on reaps and on APR's pools, and finds what it
# has written. A file that is no trace is refused.
. "${srcdir:-.}/tests/trace/trace_lib.sh"
record threads threads
record reaps reaps
record nested nested # a pool begins after its parent, which another thread makes
replays() {
    LD_PRELOAD=$1 "$build/bench/$2" -s 0 "$tmp/$3" >"$tmp/out" 2>"$tmp/said" || { wrong "$2 of $3 on ${1:-glibc}:"; cat "$tmp/said"; }
    [ "$(sed -n '1s/.* //p' "$tmp/out")" -ge "$4" ] || wrong "$2 of $3 on ${1:-glibc}: $(head -n 1 "$tmp/out")"
}
for malloc in '' "$libs/libreap-malloc.so" $(ldconfig -p | sed -n 's/.*=> \(.*lib\(jemalloc.so.2\|mimalloc.so.2\|tcmalloc_minimal.so.4\|tbbmalloc_proxy.so.2\)\)$/\1/p'); do
    replays "$malloc" replay threads 8000
    replays "$malloc" replay reaps 220
done
sed -n 's/^threads=//p' "$tmp/out" | grep -q . || wrong "a replay does not tell its threads"
replays '' replay_reap reaps 110
replays '' replay_reap threads 8000
replays '' replay_reap nested 1020
[ ! -x "$build/bench/replay_apr" ] || replays '' replay_apr nested 1020
[ ! -x "$build/bench/replay_apr" ] || replays '' replay_apr reaps 110
# Round after round, each in a process of its own: ten at least.
"$build/bench/replay" -s 0.1 "$tmp/reaps" >"$tmp/out" || wrong "no rounds"
[ "$(sed -n 's/^rounds=//p' "$tmp/out")" -ge 10 ] || { wrong "less than ten rounds:"; cat "$tmp/out"; }
"$build/bench/replay" -s 2>"$tmp/said" && wrong "-s alone is taken"
"$build/bench/replay" "$tmp/threads" "$0" 2>"$tmp/said" && wrong "a script says what ends early"
grep -q 'is nothing that reap-analyse --early' "$tmp/said" || wrong "a script that is no list is not told"
"$build/bench/replay" "$0" 2>"$tmp/said" && wrong "a script is replayed"
grep -q 'is no trace' "$tmp/said" || wrong "a script is not told"
exit $bad
