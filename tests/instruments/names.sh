#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Mappings of the libraries have names in /proc/PID/maps, where the kernel knows names: those of malloc, of pools where
# malloc is another's, and of tables. Each mapping gets its name once and as a whole; a kernel without names is asked
# once. strace stands in for a kernel of the other kind. With names=0 nobody is asked.
. "${srcdir:-.}/tests/support/script.sh"
need python3
malloc=$build/.libs/libreap-malloc.so
knows() {
    python3 -c 'import ctypes, mmap, sys
memory = mmap.mmap(-1, 4096)
at = ctypes.addressof(ctypes.c_char.from_buffer(memory))
sys.exit(ctypes.CDLL(None).prctl(0x53564d41, 0, ctypes.c_ulong(at), ctypes.c_ulong(4096), b"name") != 0)'
}
# run PRELOAD PROGRAM: with its input closed; its mappings go to $tmp/maps.
run() {
    mkfifo "$tmp/input"
    env ${1:+"LD_PRELOAD=$1"} "$2" <"$tmp/input" >"$tmp/pid" &
    exec 9>"$tmp/input"
    within 60 test -s "$tmp/pid"
    cp "/proc/$(cat "$tmp/pid")/maps" "$tmp/maps"
    exec 9>&-
    wait $!
    rm "$tmp/input"
}
# called INJECTION PRELOAD PROGRAM: its calls that name mappings go to $tmp/calls, as ADDRESS SIZE NAME.
called() {
    strace -f -qq -o "$tmp/strace" -e trace=prctl $1 env ${2:+"LD_PRELOAD=$2"} "$3" </dev/null >/dev/null 2>"$tmp/said"
    sed -n 's/.*PR_SET_VMA, PR_SET_VMA_ANON_NAME, \(0x[0-9a-f]*\), \([0-9]*\), "\(.*\)") .*/\1 \2 \3/p' "$tmp/strace" >"$tmp/calls"
}
names() { sort -u | tr '\n' ' '; }

for case in "$malloc $build/tests/preload/asked heap" " $build/tests/preload/asked_reaps pools"; do
    preload=${case%% *} name=${case##* } program=${case#* }
    program=${program% *}
    if knows; then
        run "$preload" "$program"
        got=$(sed -n 's/.*\[anon:reap \(.*\)\]/\1/p' "$tmp/maps" | names)
        [ "$got" = "$name tables " ] || wrong "$program has mappings of: $got"
    else
        echo "skipped: this kernel has no names of mappings: /proc/PID/maps of $program"
    fi
    lacks strace "the calls of $program" && continue
    knows || { called "" "$preload" "$program"; [ "$(wc -l <"$tmp/calls")" = 1 ] || wrong "$program asks a kernel without names more than once"; }
    called "-e inject=prctl:retval=0" "$preload" "$program"
    got=$(sed 's/.*reap //' "$tmp/calls" | names)
    [ "$got" = "$name tables " ] || wrong "$program names: $got"
    REAP_OPTIONS=names=0 called "-e inject=prctl:retval=0" "$preload" "$program"
    [ ! -s "$tmp/strace" ] || wrong "$program with names=0 calls prctl"
    called "-e inject=prctl:retval=0" "$preload" "$program"
    [ -z "$(cut -d' ' -f1 "$tmp/calls" | sort | uniq -d)" ] || wrong "$program names a mapping twice"
    awk '$2 % 4096 != 0 || $2 < 32768' "$tmp/calls" | grep . && wrong "$program names less than a mapping"
done
exit $bad
