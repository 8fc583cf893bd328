#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# One version: configure.ac, reap.h, the first section of NEWS, each manual page and the recipes for packages name the same.
# Where NEWS gives that section a date, it is the date of the recipes, of the pages and of the security table, and no page
# says that nothing is released. With a directory as an argument: of that tree (the test of this test).
srcdir=${1:-${srcdir:-.}}
self=$(realpath "$0") && cd "$srcdir" || exit 99
bad=0
# same WHAT IS EXPECTED
same() { [ "$2" = "$3" ] || { echo "wrong: $1 has '$2', not '$3'"; bad=1; }; }

version=$(sed -n 's/^AC_INIT(\[reap\], \[\([0-9.]*\)\],.*/\1/p' configure.ac)
[ -n "$version" ] || { echo "configure.ac has no version of numbers and points"; exit 1; }
same reap.h "$(sed -n 's/^#define REAP_VERSION "\(.*\)"/\1/p' include/reap.h)" "$version"
same "reap.h, in numbers" "$(sed -n 's/^#define REAP_VERSION_[A-Z]* //p' include/reap.h | paste -s -d .)" "$version"
section=$(grep -m 1 '^[0-9]' NEWS)
same NEWS "${section%%, *}" "$version"
date=$(echo "$section" | grep -oE '20[0-9]{2}-[01][0-9]-[0-3][0-9]')
case $section in
    "$version, $date: "*) ;;
    "$version, not released yet"*) echo "NEWS gives $version no date: dates are not compared" ;;
    *) same NEWS "$section" "$version, YEAR-MONTH-DAY: ..., or $version, not released yet ..." ;;
esac
same debian/changelog "$(sed -n '1s/^reap (\([^-)]*\)-.*) .*/\1/p' debian/changelog)" "$version"
same packaging/reap.spec "$(sed -n 's/^Version: *//p' packaging/reap.spec)" "$version"
same "packaging/reap.spec, %changelog" "$(sed -n '/^%changelog/{n;s/.* - \([0-9.]*\)-.*/\1/p}' packaging/reap.spec)" "$version"
pages=0
for page in doc/*.[137]; do
    case $(head -c 4 "$page") in .so*) continue ;; esac
    title=$(sed -n 's/^\.TH //p' "$page")
    case $title in *" \"reap $version\" "*) ;; *) same "$page" "$title" "reap $version" ;; esac
    [ -z "$date" ] || same "$page" "$(echo "$title" | cut -d ' ' -f 3)" "$date"
    pages=$((pages + 1))
done
[ "$pages" -ge 20 ] || { echo "there are $pages manual pages"; bad=1; }
if [ -n "$date" ]; then
    same debian/changelog "$(date -u -d "$(sed -n 's/^ -- .*>  //p;T;q' debian/changelog)" +%F)" "$date"
    same "packaging/reap.spec, %changelog" "$(sed -n '/^%changelog/{n;s/^\* ... \(... [0-9]* [0-9]*\) .*/\1/p}' packaging/reap.spec)" \
        "$(LC_ALL=C date -u -d "$date" '+%b %d %Y')"
    same doc/security-table.md "$(sed -n 's/.* made this page on \([0-9-]*\)$/\1/p' doc/security-table.md)" "$date"
    ! grep -n 'not released' README.md SECURITY.md doc/*.[137] || bad=1
fi
[ -z "${1-}" ] || exit $bad

# A tree that differs in one of them is seen.
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
mkdir "$tmp/include" "$tmp/debian" "$tmp/packaging"
# seen FILE CHANGE: sed's
seen() {
    cp configure.ac NEWS README.md SECURITY.md "$tmp/" && cp include/reap.h "$tmp/include/" && cp debian/changelog "$tmp/debian/" &&
        cp packaging/reap.spec "$tmp/packaging/" && rm -rf "$tmp/doc" && mkdir "$tmp/doc" && cp doc/*.md doc/*.[137] "$tmp/doc/" || exit 99
    sed -i "$2" "$tmp/$1" && ! cmp -s "$1" "$tmp/$1" || { echo "$1 has nothing to change by $2"; bad=1; }
    ! sh "$self" "$tmp" >/dev/null || { echo "not seen in $1: $2"; bad=1; }
}
seen configure.ac "s/^\(AC_INIT(\[reap\], \[[0-9.]*\)\]/\19]/"
seen configure.ac "s/^\(AC_INIT(\[reap\], \[[0-9.]*\)\]/\1-rc\]/"
seen include/reap.h 's/^\(#define REAP_VERSION "[0-9.]*\)/\19/'
seen include/reap.h 's/^\(#define REAP_VERSION_MINOR \)/\19/'
seen NEWS '/^[0-9]/s/,/9,/'
seen NEWS '/^[0-9]/s/, .*: /, soon: /'
seen debian/changelog '1s/-/9-/'
seen packaging/reap.spec '/^Version:/s/$/9/'
seen packaging/reap.spec '/^%changelog/,$s/ - / - 9/'
seen doc/hoard.3 's/"reap [0-9.]*"/reap/'
if [ -n "$date" ]; then
    seen doc/hoard.3 '/^\.TH/s/ 20/ 19/'
    seen debian/changelog '/^ -- /s/ 20\([0-9]* [0-9:]* \)/ 19\1/'
    seen packaging/reap.spec '/^%changelog/,$s/ 20/ 19/'
    seen doc/security-table.md 's/page on 20/page on 19/'
    seen README.md '1s/$/: not released/'
fi
exit $bad
