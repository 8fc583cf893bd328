# SPDX-License-Identifier: Apache-2.0
# What tests of an installation share, to be sourced: it is made below $tmp/root; wrong says what is wrong, in $bad.
. "${srcdir:-.}/tests/support/script.sh"

# Make's own flags would have this make talk to the jobs of the one that runs the tests.
unset MAKEFLAGS MFLAGS MAKELEVEL
make -s -C "$top_builddir" install DESTDIR="$tmp/root" >"$tmp/log" 2>&1 || { cat "$tmp/log"; exit 1; }
