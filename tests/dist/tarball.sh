#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# make dist twice, by another umask and after the files were touched, gives the same bytes; and another time does not.
. "${srcdir:-.}/tests/support/script.sh"
name=tarball-test # apart from what make dist makes
at_exit='cd "$build" && { [ ! -d $name ] || chmod -R u+w $name; } && rm -rf $name $name.tar.gz'
tar --version 2>/dev/null | grep -q GNU || { echo "skipped: no GNU tar here"; exit 77; }
unset MAKEFLAGS MFLAGS MAKELEVEL

# pack FILE UMASK [VARIABLE=VALUE]
pack() {
    (umask "$2" && env ${3:+"$3"} make -s -C "$build" dist distdir=$name >"$tmp/said" 2>&1) && mv "$build/$name.tar.gz" "$tmp/$1" ||
        { echo "make dist fails"; tail -n 20 "$tmp/said"; exit 1; }
}
pack one 022
sleep 1 # another second
pack two 077
cmp "$tmp/one" "$tmp/two" || { echo "two tarballs differ"; bad=1; }
[ "$(wc -c <"$tmp/one")" -gt 500000 ] || { echo "that is no tarball of ours"; bad=1; }
tar -tvzf "$tmp/one" | awk '$2 != "0/0" { print "owner: " $0; bad = 1 } END { exit bad }' || bad=1
pack three 022 SOURCE_DATE_EPOCH=1000000000
cmp -s "$tmp/one" "$tmp/three" && { echo "SOURCE_DATE_EPOCH changes nothing"; bad=1; }
tar -tvzf "$tmp/three" | grep -q ' 2001-09-0[89] ' || { echo "SOURCE_DATE_EPOCH is not the files' time"; bad=1; }
sha256sum "$tmp/one" | cut -c 1-64
exit $bad
