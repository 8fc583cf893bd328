#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What of the style can be checked cheaply: no line is left open, over 110 columns, or ends in
# blanks; no tabs in C. Long files are named, but may have their reason.
srcdir=${srcdir:-.}
cd "$srcdir" || exit 99

sources=$(find lib include tools apache_module tests bench doc -name '*.[ch]' -o -name '*.cc' -o -name '*.hpp')
scripts=$(find bootstrap tests bench apache_module -name '*.sh' -o -name bootstrap -o -name '*.lua' -o -name '*.py' 2>/dev/null)
makefiles=$(find Makefile.am lib include tools apache_module tests bench doc packaging -name '*.am')
[ -n "$sources" ] || { echo "no sources in $srcdir"; exit 99; }
bad=0
# A word to look for, what it means, the files.
forbid() {
    pattern=$1 what=$2
    shift 2
    if grep -nE -- "$pattern" "$@"; then
        echo "^ $what"
        bad=1
    fi
}
# shellcheck disable=SC2086  # names of files of ours have no blanks
{
    forbid '\b(TO''DO|FIX''ME|X''XX|HA''CK)\b' 'left open' $sources $scripts lib/README.md
    forbid '^.{111,}' 'more than 110 columns' $sources
    # What bash sets by itself is no setting: a default for SECONDS is never taken where sh is bash.
    forbid '\$\$?\{(SECONDS|RANDOM|SRANDOM|UID|EUID|PPID|LINENO|LINES|COLUMNS|GROUPS|HOSTNAME|REPLY|DIRSTACK|SHLVL|EPOCHSECONDS)[:}?+=-]' \
        "bash's own variable" $(grep -L '^#!.*bash' $scripts) $makefiles
    forbid '[[:blank:]]+$' 'blanks at the end' $sources $scripts
    forbid '	' 'a tab' $sources
    wc -l $sources | awk '$2 != "total" && $1 > 400 { print "long: " $2 ", " $1 " lines" }'
}
exit $bad
