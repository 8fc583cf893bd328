#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# This stands for the tests that configure left out, for want of a library or a compiler: LEFT_OUT has PACKAGE:TEST.
. "${srcdir:-.}/tests/support/needs.sh"
left=$(printf '%s\n' ${LEFT_OUT-})
for package in $(printf '%s\n' "$left" | sed 's/:.*//' | sort -u); do
    tests=$(printf '%s\n' "$left" | sed -n "s/^$package://p")
    echo "skipped: configured without it (Debian: $package): $(printf '%s\n' "$tests" | wc -l) tests:" $tests
done
[ -z "$left" ] || exit 77
