#!/bin/sh
# Under Valgrind each object of a reap is one to Memcheck: every mistake that tests/reap_watched knows
# must be an error there, and what is no mistake must be none.
program=${top_builddir:-.}/tests/reap_watched
command -v valgrind >/dev/null || { echo "no valgrind"; exit 77; }
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
bad=0
names=$("$program")
for name in $names; do
    valgrind -q --error-exitcode=9 --log-file="$tmp/log" "$program" "$name"
    status=$?
    expected=9
    [ "$name" != nothing_wrong ] || expected=0
    if [ $status -ne $expected ]; then
        echo "$name: status $status in the place of $expected"
        cat "$tmp/log"
        bad=1
    fi
done
[ "$(echo "$names" | wc -w)" -gt 5 ] || exit 99
# A library built without Valgrind's header does not know that it is there.
[ $bad -eq 0 ] || [ -e /usr/include/valgrind/memcheck.h ] || exit 77
exit $bad
