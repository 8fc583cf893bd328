#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Drag by call, with last uses from Valgrind's lackey. Of traced's `waste` the first 500 objects are used last when they
# are written, and stay until all 1000 have begun: on average for 750 objects. The others stay for 250, and are read
# at the end. Held over needed is (500 * 750 + 500 * 250) / (500 * 250) = 4, and all drag is of the first place.
. "${srcdir:-.}/tests/trace/trace_lib.sh"
command -v valgrind >/dev/null || { echo "skipped: no valgrind"; exit 77; }
valgrind --tool=lackey --trace-mem=yes --log-file="$tmp/uses" --trace-children=yes \
    env REAP_TRACE="$tmp/t,stacks=6" LD_PRELOAD="$libs/libreap-trace.so" "$traced" waste 2>"$tmp/said" ||
    { cat "$tmp/said"; echo "skipped: lackey does not run it"; exit 77; }
trace=$(ls "$tmp" | grep '^t\(\.[0-9]*\)*$' | tail -n 1) # env has one, too
"$analyse" --places 2 --uses "$tmp/uses" "$tmp/$trace" >"$tmp/text" 2>"$tmp/remarks" || wrong "status $?"
ratio=$(sed -n 's/^drag .*needed \([0-9.]*\) over time.*/\1/p' "$tmp/text")
awk -v r="$ratio" 'BEGIN { exit !(r > 3.5 && r < 4.5) }' || wrong "held over needed is $ratio, and not 4"
first=$(sed -n '/^most drag/,$p' "$tmp/text" | sed -n '2,8p')
echo "$first" | grep -qE '(some|early) in traced' || wrong "the worst place is not early()"
share=$(echo "$first" | sed -n '1s/ *\([0-9]*\).*/\1/p')
[ "${share:-0}" -ge 85 ] || wrong "early() has $share % of all drag"
[ $bad = 0 ] || cat "$tmp/text" "$tmp/remarks"
exit $bad
