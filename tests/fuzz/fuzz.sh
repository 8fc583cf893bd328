#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Random calls beside a model (tests/fuzz/README.md): always the same programs first, then others each time, with one
# thread and with several, and with the options that take other code: a few of each, or for a minute in all where
# REAP_TEST_SHORT is empty. FUZZ_CHECK_SECONDS: 60.
. "${srcdir:-.}/tests/support/script.sh"
program=$build/tests/fuzz/fuzz
seconds=${FUZZ_CHECK_SECONDS:-60}
seed=${FUZZ_SEED:-$(($(date +%s) * 1000))}

# play OPTIONS SHARE ARGUMENT...: programs for so many hundredths of the time, or a few
play() {
    options=$1 share=$(($2 * seconds / 100))
    much="--runs $((1 + $2 / 8))"
    shift 2
    [ $share -gt 0 ] || share=1
    [ -n "${REAP_TEST_SHORT:-}" ] || much="--seconds $share"
    # shellcheck disable=SC2086  # words
    REAP_OPTIONS=$options "$program" $much --seed "$seed" --shrink-seconds 60 --out "$tmp" "$@" \
        >"$tmp/log" 2>&1 || bad=1
    [ $bad = 0 ] && { tail -n 1 "$tmp/log"; return; }
    tail -n 300 "$tmp/log"
    cat "$tmp"/fuzz-*.txt 2>/dev/null | head -n 500
    grep '^FAILED' "$tmp/log" # once more: the last lines are what one sees first
    exit 1
}

# The same ones each time: a few of each kind.
fixed() {
    options=$1
    shift
    REAP_OPTIONS=$options "$program" --seed 1 --no-shrink "$@" || exit 1
}

# A program that fails is saved below the build, wherever one stands. With no time at all each one fails.
mkdir "$tmp/here" && cd "$tmp/here" || exit 99
"$program" --seed 1 --limit 0 --shrink-seconds 0 >"$tmp/log" 2>&1 && { cat "$tmp/log"; exit 1; }
saved=$(sed -n 's/^saved as //p' "$tmp/log")
[ -f "$saved" ] && [ "${saved%/*}" = "${program%/*}" ] && [ -z "$(ls)" ] || { echo "saved as '$saved'"; cat "$tmp/log"; exit 1; }
rm "$saved"

fixed purge_ms=100 --runs 6
fixed purge_ms=100 --runs 2 --threads 3
play purge_ms=100 24
play purge_ms=100 14 --threads 2
play purge_ms=100 10 --threads 4
play purge_ms=100 3 --wide
play leaks=1 3 --threads 2
for options in bypass=1 harden=1 harden=2 leaks=1 purge_ms=0 heaps=cpu path=locked heaps=thread heaps=dynamic:3; do
    play "$options" 3
done
for options in path=locked,lock=spin heaps=roundrobin,lock=block purge_ms=0,purge_thread=1 harden=1; do
    play "$options" 3 --threads 3
done
exit $bad
