#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Each file that git has is distributed, or stands in the short list here; and the top level has no other files than
# those that a repository needs. What was committed by accident fails here.
. "${srcdir:-.}/tests/support/script.sh"
alone='.ci/run .clang-format .editorconfig .gitignore m4/.gitignore'
top='.clang-format .editorconfig .gitignore CONTRIBUTING.md LICENSE Makefile.am NEWS README.md SECURITY.md bootstrap configure.ac'

need git
[ -e "$srcdir/.git" ] || skip "no clone of git's, but a tarball or a package's sources here"
words() { printf '%s\n' "$@" | sort -u; }

# Root may test the clone of somebody else.
git -c safe.directory='*' -C "$srcdir" ls-files | sort >"$tmp/tracked"
[ "$(wc -l <"$tmp/tracked")" -gt 500 ] || { echo "git has no files"; exit 99; }
unset MAKEFLAGS MFLAGS MAKELEVEL
make -s -C "${top_builddir:-.}" distributed | sed "s,^$srcdir/,,; s,^[./]*/,," >"$tmp/made" || exit 99
# shellcheck disable=SC2086  # words
{
    { cat "$tmp/made"; words $alone; } | sort -u >"$tmp/known"
    words $top >"$tmp/top"
}
grep -v / "$tmp/tracked" | comm -23 - "$tmp/top" | sed 's/^/not a file for the top level: /' >"$tmp/wrong"
comm -23 "$tmp/tracked" "$tmp/known" | sed 's/^/in no list of an .am file, so not distributed: /' >>"$tmp/wrong"
comm -23 "$tmp/top" "$tmp/tracked" | sed 's/^/gone from the top level: /' >>"$tmp/wrong"
sed -n 's,^Package: \(.*\),/debian/\1/,p' "$srcdir/debian/control" | grep -vxFf "$srcdir/.gitignore" | sed 's/^/not ignored: /' >>"$tmp/wrong"
cat "$tmp/wrong"
echo "$(wc -l <"$tmp/tracked") files"
[ ! -s "$tmp/wrong" ]
