#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Under AddressSanitizer every mistake that tests/instruments/reap_asan knows must be found, with the places where the
# object was allocated and freed, and what is no mistake must not.
. "${srcdir:-.}/tests/support/script.sh"
program=$build/tests/instruments/reap_asan
ASAN_OPTIONS=detect_leaks=0:fast_unwind_on_malloc=0
export ASAN_OPTIONS
runs=0

# finds OPTIONS MISTAKE TEXT...: the mistake is reported in lines that have each text
finds() {
    runs=$((runs + 1))
    options=$1 mistake=$2
    REAP_OPTIONS=$options "$program" "$mistake" >"$tmp/said" 2>&1 && { wrong "$options $mistake: not found"; return; }
    shift 2
    for text; do grep -q "$text" "$tmp/said" || wrong "$options $mistake: no word of '$text'"; done
}

error="ERROR: AddressSanitizer"
for options in stats=0 bypass=1,harden=1; do
    REAP_OPTIONS=$options "$program" nothing_wrong >"$tmp/said" 2>&1 || wrong "$options: something found"
    for mistake in just_past_the_end past_a_large_one past_the_end past_whole_units; do
        finds $options $mistake "$error" "in $mistake" "allocated by thread" "in reap"
    done
    for mistake in after_free start_after_free written_after_free after_clear after_clear_refilled after_rewind \
        after_growing after_destroy after_destroy_and_many of_a_buffer stale_builder; do
        finds $options $mistake "$error: heap-use-after-free" "in $mistake" "freed by thread" "allocated by thread"
    done
    finds $options freed_by_libc "$error: attempting double-free" "freed by thread" "allocated by thread"
    finds $options freed_twice "^reap: reapFree(0x[0-9a-f]*): freed twice" "freed by thread" "allocated by thread"
    finds $options of_another_reap "^reap: reapFree(0x[0-9a-f]*): an object of another reap" "allocated by thread"
    finds $options after_shrinking "$error: heap-buffer-overflow"
    finds $options after_clear "in reapFreeAll"
    finds $options after_destroy "in reapDestroy"
    finds $options just_past_the_end "use-after-poison"
done
echo "$runs mistakes"
exit $bad
