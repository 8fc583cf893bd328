#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Under Valgrind each object of a reap is a block of its malloc: every mistake that tests/instruments/reap_watched
# knows must be an error there, with the places where the object was allocated and freed, and what is no mistake must
# be none; and so with the options that would do the same without Valgrind.
. "${srcdir:-.}/tests/support/script.sh"
program=$build/tests/instruments/reap_watched
need valgrind
grep -q '^#define REAP_VALGRIND 1' "$build/config.h" || skip "built without Valgrind's header (Debian: valgrind)"
# A compiler newer than Valgrind may write debug information that it gives up over.
valgrind -q "$program" none >"$tmp/log" 2>&1 ||
    ! grep -q 'debuginfo reader' "$tmp/log" ||
    { echo "skipped: this valgrind cannot read the debug information that $CC writes"; exit 77; }

# what_of MISTAKE: the status, and the stacks that Valgrind must show
what_of() {
    case $1 in
        nothing_wrong) echo 0 ;;
        of_another_reap) echo 134 ;;
        freed_twice) echo 134 "alloc'd" "free'd" ;;
        after_shrinking | undefined) echo 9 ;; # it lies in no block any more
        *past*) echo 9 "alloc'd" ;;
        *) echo 9 "alloc'd" "free'd" ;;
    esac
}

names=$("$program")
for options in stats=0 bypass=1,harden=1; do
    # shellcheck disable=SC2086  # words
    REAP_OPTIONS=$options valgrind -q --error-exitcode=9 --num-callers=20 --log-file="$tmp/log.%p" \
        "$program" $names >"$tmp/made" 2>"$tmp/said" || { cat "$tmp/made" "$tmp/said"; exit 1; }
    while read -r name process status; do
        log=$tmp/log.$process
        missing=
        # shellcheck disable=SC2046  # words
        set -- $(what_of "$name")
        expected=$1
        shift
        [ "$expected" != 9 ] || grep -q "Invalid\|Conditional" "$log" || missing="an error"
        for stack; do grep -A20 "$stack" "$log" | grep -q "reap_watched.c" || missing="$missing $stack"; done
        if [ "$status" != "$expected" ] || [ -n "$missing" ]; then
            echo "$options $name: status $status, expected $expected; missing:$missing"
            cat "$tmp/said" "$log"
            bad=1
        fi
    done <"$tmp/made"
    [ "$(wc -l <"$tmp/made")" = "$(echo "$names" | wc -w)" ] || wrong "$options: not all were made"
    names="nothing_wrong freed_twice after_free just_past_the_end of_another_reap"
done
[ "$("$program" | wc -w)" -gt 20 ] || exit 99
exit $bad
