#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Debian's packages are built of a copy of what git has, without tests and optimization; lintian finds no error in them;
# what reap-tools contains its description names, and a package of a soname has no file that the next soname's has as well.
# packaging/chroots.sh packages installs them on a fresh system.
. "${srcdir:-.}/tests/support/script.sh"
need git dpkg-buildpackage dh lintian
[ -e "$srcdir/.git" ] || skip "no clone of git's, but a tarball or a package's sources here"

mkdir "$tmp/reap" "$tmp/file"
(cd "$srcdir" && git -c safe.directory='*' ls-files -z | xargs -0 cp --parents -t "$tmp/reap") || exit 99
cd "$tmp/reap" || exit 99
env -i PATH="$PATH" HOME="$tmp" LC_ALL=C.UTF-8 CONFIG_SHELL=/bin/sh DEB_BUILD_PROFILES=nocheck \
    DEB_BUILD_OPTIONS='nocheck noopt parallel=2' dpkg-buildpackage -b -us -uc >"$tmp/log" 2>&1 ||
    { tail -n 30 "$tmp/log"; exit 1; }
cd "$tmp" || exit 99
lintian --fail-on error ./*.changes 2>"$tmp/said" || { wrong "lintian"; cat "$tmp/said"; }
packages=$(ls ./*.deb | grep -v -- -dbgsym_)
[ "$(echo "$packages" | wc -l)" = 9 ] || wrong "these are the packages:" $packages
for package in $packages; do
    dpkg -c "$package" | awk '{ print $6 }' | sed -n 's,^\./\(usr/bin/..*\|usr/lib/[^/]*/lib[^/]*\.so[^/]*\)$,\1,p' >"$tmp/files"
    case $package in
        ./reap-tools_*)
            dpkg -f "$package" Description >"$tmp/text"
            [ "$(wc -l <"$tmp/files")" = 5 ] || { wrong "in reap-tools:"; cat "$tmp/files"; }
            while read -r file; do
                name=${file##*/}
                grep -qw -- "${name%.so}" "$tmp/text" || wrong "the description of reap-tools does not name $name"
            done <"$tmp/files" ;;
        ./lib*0_*) ! grep -v '\.so\.' "$tmp/files" || wrong "$package has these without a soname" ;;
    esac
done
exit $bad
