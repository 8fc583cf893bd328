#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# One version: configure.ac, reap.h, the first section of NEWS, each manual page and the recipes for packages name the same.
# Where NEWS gives that section a date, it is the date of the recipes, of the pages and of the security table, and no page
# says that nothing is released.
cd "${srcdir:-.}" || exit 99
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
exit $bad
