#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Random programs with the library under UndefinedBehaviorSanitizer, of each kind of options that takes other code: always
# the same ones, and a few others.
. "${srcdir:-.}/tests/support/script.sh"
"${SHELL:-/bin/sh}" "$srcdir/tests/fuzz/fuzz_build.sh" ubsan "$tmp/ubsan" || exit $?
seed=${FUZZ_SEED:-$(($(date +%s) * 1000))}

for options in purge_ms=100 harden=1 harden=2 bypass=1 path=locked; do
    for arguments in '--seed 1 --runs 2' '--seed 1 --runs 2 --threads 3 --wide' "--seed $seed --runs 1"; do
        # shellcheck disable=SC2086  # words
        REAP_OPTIONS=$options "$tmp/ubsan" $arguments --shrink-seconds 30 --out "$tmp" >"$tmp/log" 2>&1 || bad=1
        [ $bad = 0 ] || { tail -n 200 "$tmp/log"; cat "$tmp"/fuzz-*.txt | head -n 100; exit 1; }
        tail -n 1 "$tmp/log"
    done
done
exit $bad
