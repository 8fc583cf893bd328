#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Each test of a Check program asserts something (tests/tools/assertless.py); and one that does not is found.
. "${srcdir:-.}/tests/support/script.sh"
need python3
mkdir "$tmp/unit"
cat >"$tmp/unit/check_nothing.c" <<'END'
static void looks(int n) { ck_assert_int_eq(n, 1); }
TEST(asserts) { looks(1); }
TEST(does_not, .times = 2)
{
    hoard_free(hoard_malloc(1));
}
END
python3 "$srcdir/tests/tools/assertless.py" "$tmp" >"$tmp/said" && { echo "a test without assertion is not found"; exit 1; }
grep -q ': does_not asserts nothing$' "$tmp/said" && grep -q '^2 tests in 1 programs, 1 without' "$tmp/said" ||
    { echo "wrong about two tests:"; cat "$tmp/said"; exit 1; }
exec python3 "$srcdir/tests/tools/assertless.py" "$srcdir/tests"
