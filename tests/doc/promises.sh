#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What documents say of packages and sizes is what the recipes and the code say; and no document counts lines of code,
# since such a count is wrong after the next commit.
cd "${srcdir:-.}" || exit 99
bad=0
wrong() {
    echo "FAILED: $*"
    bad=1
}

# --- packages --------------------------------------------------------------------------------------
packages=$(sed -n 's/^Package: //p' debian/control)
[ -n "$packages" ] || exit 99
told=$(sed -n '/^## Packages/,/^## What/p' doc/building.md | grep -oE '`(lib)?(reap|apache2-mod)[a-z0-9-]*`' | tr -d '`')
for package in $packages; do
    echo "$told" | grep -qx -- "$package" || wrong "doc/building.md, Packages, does not name $package"
done

# The packages of ours that a package's files are linked to: dpkg-shlibdeps sees it.
needed_by() {
    case $1 in
        libreap-apr0 | libreap-ask0) echo libreap0 ;;
        libapache2-mod-reap) echo libreap-ask0 ;;
    esac
}
grep -q '^libreap_apr_la_LIBADD = libreap\.la' apache_module/apache.am || wrong "libreap-apr is linked to other libraries"
grep -q '^apache_module_mod_reap_la_LIBADD = libreap-ask\.la$' apache_module/apache.am || wrong "mod_reap is linked to other libraries"
for document in README.md doc/deploying.md; do
    line=$(grep -E '^ +apt install .*libreap' "$document")
    [ -n "$line" ] || wrong "$document does not say what to install"
    for package in $packages; do
        case $line in *"./${package}_*.deb"*) ;; *) continue ;; esac
        for other in $(needed_by "$package"); do
            case $line in *"./${other}_*.deb"*) ;; *) wrong "$document: $package does not install without $other" ;; esac
        done
    done
    case $line in *./libreap-apr0_*) ;; *) wrong "$document: the packages of this tree are files" ;; esac
done

# --- sizes -------------------------------------------------------------------------------------------
arena=$(($(sed -n 's/^ *SUPERBLOCK_SHIFT = \([0-9]*\).*/\1/p' lib/arena/*.h) + 6 - 20)) # log of MiB
spans=$(sed -n 's/^ *ARENA_SPAN_MAX = \([0-9]*\) \* ARENA.*/\1/p' lib/arena/arena.h)
span=$((spans << arena))
[ "$span" -gt 0 ] || exit 99
head=$(sed -n '2,/\*\//p' lib/arena/arena.h | tr -d '*' | tr -s ' \n' ' ')
says() { case $head in *"$1"*) ;; *) wrong "arena.h does not say '$1'" ;; esac; }
says "An arena is $((1 << arena)) MiB"
says "has up to $span MiB"
drawn=$(echo "$head" | sed -n 's/.*mapping of \([0-9]*\) MiB.*/\1/p')
[ "${drawn:-0}" -gt "$span" ] || wrong "arena.h draws a mapping of $drawn MiB, which would be a span"
grep -qF "up to $span MiB are spans" lib/README.md || wrong "lib/README.md: the size of spans"

# --- counts of lines -----------------------------------------------------------------------------------
awk -v RS= '/^Files: / && /[0-9] (lines|uses)|\.[ch]`,? [0-9]+[;.,]/ { print; found = 1 } END { exit found }' \
    doc/design/decisions.md || wrong "decisions.md counts lines"
! grep -nE '^\| mechanism \| lines' doc/design/decisions.md || wrong "decisions.md has a column of lines"
exit $bad
