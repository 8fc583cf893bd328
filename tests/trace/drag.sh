#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Drag by call, with last uses from QEMU's user mode and from Valgrind's lackey. Of traced's `waste` the first 500
# objects are used last when they are written, and stay until all 1000 have begun: on average for 750 objects. The others
# stay for 250, and are read at the end. Held over needed is (500 * 750 + 500 * 250) / (500 * 250) = 4, and all drag is
# of the first place.
. "${srcdir:-.}/tests/trace/trace_lib.sh"
ran=0
# under_qemu USES MODE: QEMU's own environment has REAP_TRACE, and the program's alone the preload.
under_qemu() {
    "$qemu" -E LD_PRELOAD="$libs/libreap-trace.so" -plugin "$libs/libreap-uses.so,to=$1" "$traced" "$2" 2>"$tmp/said"
}
# drags TOOL USES TRACE
drags() {
    ran=$((ran + 1))
    "$analyse" --places 2 --uses "$2" "$3" >"$tmp/text" 2>"$tmp/remarks" || wrong "$1: status $?"
    ratio=$(sed -n 's/^drag .*needed \([0-9.]*\) over time.*/\1/p' "$tmp/text")
    awk -v r="$ratio" 'BEGIN { exit !(r > 3.5 && r < 4.5) }' || wrong "$1: held over needed is $ratio, and not 4"
    first=$(sed -n '/^most drag/,$p' "$tmp/text" | sed -n '2,8p')
    echo "$first" | grep -qE '(some|early) in traced' || wrong "$1: the worst place is not early()"
    share=$(echo "$first" | sed -n '1s/ *\([0-9]*\).*/\1/p')
    [ "${share:-0}" -ge 85 ] || wrong "$1: early() has $share % of all drag"
    [ $bad = 0 ] || cat "$tmp/text" "$tmp/remarks"
}

qemu=$(command -v "qemu-$(uname -m)")
if [ -z "$qemu" ] || ! "$qemu" -help | grep -q -- '^-plugin'; then
    absent "qemu-$(uname -m)" "or it has no plugins"
else
    export REAP_TRACE="$tmp/q,stacks=6"
    under_qemu "$tmp/quses" waste || { wrong "QEMU does not run it:"; cat "$tmp/said"; }
    drags QEMU "$tmp/quses" "$tmp/q"
    # Freed after its last use each of the first 500 is gone before the next one: half of what lives at once.
    "$analyse" --early --places 1 --uses "$tmp/quses" "$tmp/q" >"$tmp/early" || wrong "no list of last uses"
    "$build/bench/replay" -s 0 "$tmp/q" "$tmp/early" >"$tmp/out" || wrong "the list of last uses is not replayed"
    [ "$(sed -n 's/^early=//p' "$tmp/out")" = 500 ] && [ "$(sed -n 's/^asked_kib=//p' "$tmp/out")" = 488 ] ||
        { wrong "500 objects are not freed early:"; cat "$tmp/out"; }
    "$analyse" --early "$tmp/q" 2>"$tmp/said" && wrong "last uses without --uses"
    # Where no kernel empties the recorder's page, a forked child has its own trace all the same, and its own uses.
    export REAP_TRACE="$tmp/fork"
    under_qemu "$tmp/fuses" fork || { wrong "QEMU does not run a fork:"; cat "$tmp/said"; }
    for trace in $(cd "$tmp" && ls | grep '^fork\(\.[0-9]*\)*$'); do
        analysed "$tmp/$trace" && [ ! -s "$tmp/remarks" ] || { wrong "$trace is not whole:"; cat "$tmp/remarks"; }
        "$analyse" --uses "$tmp/fuses${trace#fork}" "$tmp/$trace" >"$tmp/text" || wrong "$trace has no uses"
        grep -q '^objects *[1-9]' "$tmp/text" || wrong "no mark of $trace is among its uses"
    done
    [ "$(cd "$tmp" && ls | grep -c '^fork\(\.[0-9]*\)*$')" = 2 ] || wrong "a forked child has no trace of its own"
    # The program's calls reach the descriptors of the plugin.
    export REAP_TRACE="$tmp/closes"
    under_qemu "$tmp/cuses" closes || { wrong "a program that closes all files: status $?"; cat "$tmp/said"; }
    "$analyse" --uses "$tmp/cuses" "$tmp/closes" >"$tmp/text" 2>"$tmp/remarks" || wrong "its trace is not read"
    grep -q '^objects *24[0-9][0-9][0-9], ' "$tmp/text" || { wrong "not all of its objects are among its uses:"; head "$tmp/text" "$tmp/remarks"; }
    # Uses of another run, also of the same program, are no uses of this one; a part of them is told.
    export REAP_TRACE="$tmp/other"
    under_qemu "$tmp/ouses" waste || wrong "QEMU does not run it again"
    for mode in '' --json --page --early; do
        "$analyse" $mode --uses "$tmp/ouses" "$tmp/q" >"$tmp/text" 2>"$tmp/remarks" && wrong "$mode: uses of another run are no error"
        [ ! -s "$tmp/text" ] && [ "$(wc -l <"$tmp/remarks")" = 1 ] && grep -q 'are of different runs' "$tmp/remarks" ||
            { wrong "$mode: uses of another run:"; cat "$tmp/text" "$tmp/remarks"; }
    done
    head -c "$(($(wc -c <"$tmp/quses") / 2))" "$tmp/quses" >"$tmp/half"
    "$analyse" --uses "$tmp/half" "$tmp/q" >"$tmp/text" 2>"$tmp/remarks" || wrong "the first half of the uses is an error"
    grep -q 'ends before [1-9][0-9]* of the 2[0-9]* events' "$tmp/remarks" || { wrong "half of the uses:"; cat "$tmp/remarks"; }
    unset REAP_TRACE
    "$qemu" -plugin "$libs/libreap-uses.so,to=$tmp/none/x" "$traced" plain 2>"$tmp/said" && wrong "uses go nowhere"
    grep -q '^reap-uses: .*No such file' "$tmp/said" || { wrong "a directory that is not there is not told:"; cat "$tmp/said"; }
    "$qemu" -plugin "$libs/libreap-uses.so,to=/dev/full" "$traced" plain 2>"$tmp/said" && wrong "a full disk is no error"
    grep -q '^reap-uses: /dev/full: No space left' "$tmp/said" || { wrong "a full disk is not told:"; cat "$tmp/said"; }
fi

# lackey's text takes a minute and more on a busy machine.
if [ $ran -gt 0 ] && [ -n "${REAP_TEST_SHORT-}" ]; then
    echo "not by lackey: QEMU has told the same"
elif lacks valgrind lackey; then :
elif valgrind --tool=lackey --trace-mem=yes --log-file="$tmp/uses" --trace-children=yes \
    env REAP_TRACE="$tmp/t,stacks=6" LD_PRELOAD="$libs/libreap-trace.so" "$traced" waste 2>"$tmp/said"; then
    drags lackey "$tmp/uses" "$tmp/$(ls "$tmp" | grep '^t\(\.[0-9]*\)*$' | tail -n 1)" # env has one, too
else
    cat "$tmp/said"
    echo "skipped: lackey does not run it here"
fi
[ $ran -gt 0 ] || exit 77
exit $bad
