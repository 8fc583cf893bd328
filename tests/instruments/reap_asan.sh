#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Under AddressSanitizer every mistake that tests/instruments/reap_asan knows must be found, and what is no mistake must not;
# with objects of malloc (bypass) with the places where they were allocated and freed.
program=${top_builddir:-.}/tests/instruments/reap_asan
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
ASAN_OPTIONS=detect_leaks=0:fast_unwind_on_malloc=0
export ASAN_OPTIONS
bad=0
runs=0

# finds OPTIONS MISTAKE TEXT...: the mistake is reported in lines that have each text
finds() {
    runs=$((runs + 1))
    options=$1 mistake=$2
    REAP_OPTIONS=$options "$program" "$mistake" >"$tmp/log" 2>&1 && { complain "not found"; return; }
    shift 2
    for text; do grep -q "$text" "$tmp/log" || complain "no word of '$text'"; done
}

complain() {
    echo "$options $mistake: $1"
    cat "$tmp/log"
    bad=1
}

for options in stats=0 bypass=1 redzone=32 harden=1 bypass=1,redzone=32; do
    mistake=nothing_wrong
    REAP_OPTIONS=$options "$program" nothing_wrong >"$tmp/log" 2>&1 || complain "something found"
    finds $options just_past_the_end "ERROR: AddressSanitizer: use-after-poison.*" "in just_past_the_end"
    finds $options past_a_large_one "ERROR: AddressSanitizer" "in past_a_large_one"
    finds $options past_the_end "ERROR: AddressSanitizer" "in past_the_end"
    for mistake in after_free after_clear after_rewind after_growing after_destroy after_destroy_root \
        after_destroy_and_create after_clear_large after_destroy_large after_free_large after_clear_spare; do
        finds $options $mistake "ERROR: AddressSanitizer: .*use-after-" "in $mistake"
    done
    finds $options freed_twice "^reap: reapFree(0x[0-9a-f]*): freed twice"
done
for options in stats=0 redzone=32 harden=1; do finds $options after_destroy "use-after-poison"; done
for options in bypass=1 bypass=1,harden=1; do
    for mistake in after_free after_clear after_destroy after_rewind after_growing freed_twice; do
        finds $options $mistake "freed by thread" "allocated by thread" "in reapMalloc"
    done
    finds $options after_clear "AddressSanitizer: heap-use-after-free" "in reapFreeAll"
    finds $options after_destroy "in reapDestroy"
    finds $options after_shrinking "ERROR: AddressSanitizer: heap-buffer-overflow"
done
finds stats=0 after_shrinking "ERROR: AddressSanitizer: use-after-poison"
echo "$runs mistakes"
exit $bad
