#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Under Valgrind each object of a reap is one to Memcheck: every mistake that tests/instruments/reap_watched knows
# must be an error there, and what is no mistake must be none; and so where each is a block of malloc, or has
# zones around it.
program=${top_builddir:-.}/tests/instruments/reap_watched
. "${srcdir:-.}/tests/support/needs.sh"
need valgrind
grep -q '^#define REAP_VALGRIND 1' "${top_builddir:-.}/config.h" || skip "built without Valgrind's header (Debian: valgrind)"
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
bad=0
# A compiler newer than Valgrind may write debug information that it gives up over.
valgrind -q "$program" none >"$tmp/log" 2>&1 ||
    ! grep -q 'debuginfo reader' "$tmp/log" ||
    { echo "skipped: this valgrind cannot read the debug information that $CC writes"; exit 77; }

# status_of OPTIONS MISTAKE: what must come of it
status_of() {
    case $1/$2 in
        */nothing_wrong) echo 0 ;;
        */freed_twice) echo 134 ;;
        redzone=32/just_past_the_end) echo 134 ;; # and then the zone is looked at
        *) echo 9 ;;
    esac
}

names=$("$program")
for options in stats=0 bypass=1 redzone=32; do
    [ $options != redzone=32 ] || names="nothing_wrong after_free after_destroy just_past_the_end"
    # shellcheck disable=SC2086  # words
    REAP_OPTIONS=$options valgrind -q --error-exitcode=9 --log-file="$tmp/log.%p" \
        "$program" $names >"$tmp/made" 2>"$tmp/said" || { cat "$tmp/made" "$tmp/said"; exit 1; }
    while read -r name process status; do
        log=$tmp/log.$process
        expected=$(status_of $options "$name")
        grep -q "Invalid\|Conditional" "$log" || [ $expected = 0 ] || [ $name = freed_twice ] || status=none
        if [ $status != $expected ]; then
            echo "$options $name: status $status, expected $expected"
            cat "$tmp/said" "$log"
            bad=1
        fi
    done <"$tmp/made"
    [ "$(wc -l <"$tmp/made")" = "$(echo "$names" | wc -w)" ] || { echo "$options: not all were made"; bad=1; }
done
[ "$("$program" | wc -w)" -gt 5 ] || exit 99
exit $bad
