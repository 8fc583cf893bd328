#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Reaps do what they do with each object apart from all others, in malloc's memory or with zones around it: the
# tests that do not ask where objects lie say so.
. "${srcdir:-.}/tests/support/script.sh"
tests=$build/tests
for options in bypass=1 harden=1; do
    for test in unit/reap/check_reap_limit unit/reap/check_reap_handle \
        unit/reap/check_reap_threads unit/libc/reap_ambient unit/reap/reap_apart; do
        ! lacks_file "$tests/$test" "Check programs" "$options, $test" || continue
        REAP_OPTIONS=$options "$tests/$test" || wrong "$options $test: status $?"
    done
done
# Children of forks look at objects that other threads were making. A fork at each instruction stands apart: it
# sets options itself, these among them.
lacks_file "$tests/unit/reap/check_reap_fork" "Check programs" "harden=1, check_reap_fork" ||
    CK_EXCLUDE_TAGS=apart REAP_OPTIONS=harden=1 "$tests/unit/reap/check_reap_fork" || wrong "harden=1 check_reap_fork: status $?"
exit $bad
