#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Reaps do what they do with each object apart from all others, in malloc's memory or with zones around it: the
# tests that do not ask where objects lie say so.
. "${srcdir:-.}/tests/support/needs.sh"
tests=${top_builddir:-.}/tests
bad=0
for options in bypass=1 harden=1; do
    for test in unit/reap/check_reap_limit unit/reap/check_reap_handle \
        unit/reap/check_reap_threads unit/libc/reap_ambient unit/reap/reap_apart; do
        ! lacks_file "$tests/$test" "Check programs" "$options, $test" || continue
        REAP_OPTIONS=$options "$tests/$test" || { echo "$options $test: status $?"; bad=1; }
    done
done
# Children of forks look at objects that other threads were making. A fork at each instruction stands apart: it
# sets options itself, these among them.
for options in harden=1; do
    ! lacks_file "$tests/unit/reap/check_reap_fork" "Check programs" "$options, check_reap_fork" || continue
    CK_EXCLUDE_TAGS=apart REAP_OPTIONS=$options "$tests/unit/reap/check_reap_fork" || { echo "$options check_reap_fork: status $?"; bad=1; }
done
exit $bad
