#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Random programs with malloc preloaded, and under the recorder and the heap profile: a few that are always the same, and a
# few others. What each tool has written is looked at after each program (fuzz_tool.sh).
. "${srcdir:-.}/tests/support/script.sh"
. "$srcdir/tests/fuzz/fuzz_tool.sh"
need_file "$build/.libs/libreap-trace.so" libreap-trace
need_file "$build/.libs/libreap-profile.so" libreap-profile
seed=${FUZZ_SEED:-$(($(date +%s) * 1000))}

for tool in preload recorder profile; do
    for arguments in '--seed 1 --runs 5' '--seed 1 --runs 2 --threads 3' "--seed $seed --runs 1" "--seed $seed --runs 1 --threads 2"; do
        # shellcheck disable=SC2086  # words
        under $tool "$tmp" "$build" "$build/tests/fuzz/fuzz_public" $arguments --shrink-seconds 30 --out "$tmp" >"$tmp/log" 2>&1 || bad=1
        [ $bad = 0 ] || { echo "$tool"; tail -n 200 "$tmp/log"; cat "$tmp"/fuzz-*.txt | head -n 100; exit 1; }
        tail -n 1 "$tmp/log"
    done
done
exit $bad
