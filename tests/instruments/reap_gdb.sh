#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What lib/reap-gdb.py shows of a stopped program is what the library itself reports.
. "${srcdir:-.}/tests/support/script.sh"
program=$build/tests/instruments/reap_gdb
need gdb
gdb -nx -batch -ex 'python print("python")' 2>&1 | grep -q '^python$' || { absent "gdb with Python"; exit 77; }

# run OPTIONS: what the program and the commands print, in turn
run() {
    REAP_OPTIONS=$1 DEBUGINFOD_URLS='' gdb -nx -batch -ex 'set disable-randomization off' \
        -ex 'set startup-with-shell off' -ex 'break stop_here' -ex run -ex 'echo ---\n' \
        -ex "source $srcdir/lib/reap-gdb.py" -ex 'reap' -ex 'echo ---\n' -ex 'reap connection' -ex 'echo ---\n' \
        -ex 'reap-of object' -ex 'reap-of (char *) object + 20' -ex 'reap-of freed' -ex 'reap-of large' \
        -ex 'reap-of &object' -ex 'reap object' -ex 'print *(struct reap *) connection' -ex 'reap-heaps' \
        "$program" >"$tmp/log" 2>&1
    grep -q '^---$' "$tmp/log" || { echo "skipped: gdb may not trace here"; cat "$tmp/log"; exit 77; }
    awk -v n=0 -v to="$tmp/part" '/^---$/ { n++; next } { print > (to n) }' "$tmp/log"
}

shows() { grep -qE "$1" "$tmp/part3" || wrong "$options: no '$1'"; }
for options in stats=0 bypass=1; do
    rm -f "$tmp"/part*
    run $options
    grep -E '^ *([a-z]+ )?0x[0-9a-f]+: [0-9]+ objects' "$tmp/part0" >"$tmp/reported"
    [ "$(wc -l <"$tmp/reported")" = 6 ] || wrong "$options: $(wc -l <"$tmp/reported") reaps are reported"
    diff "$tmp/reported" "$tmp/part1" || wrong "$options: reap"
    grep -v "^0x" "$tmp/reported" | diff - "$tmp/part2" || wrong "$options: reap connection"
    shows '^0x[0-9a-f]+: object 0x[0-9a-f]+, in connection 0x'
    shows '^0x[0-9a-f]+: object 0x[0-9a-f]+, 20 bytes into it, in connection 0x'
    [ $options = bypass=1 ] || shows '^0x[0-9a-f]+: freed 0x[0-9a-f]+, in connection 0x'
    shows '^0x[0-9a-f]+: object 0x[0-9a-f]+, in request 0x'
    shows '^0x[0-9a-f]+ is in no reap'
    shows '^0x[0-9a-f]+ is not a live reap'
    shows '= reap connection 0x[0-9a-f]+: 2 objects, 224 bytes, '
    shows '^heap [0-9]+: [0-9]+ superblocks of 8192 bytes, [0-9]+ live'
    shows '^heap [0-9]+: 1 superblocks of 112 bytes, [1-9][0-9]* live'
    shows '^heap [0-9]+: 1 superblocks of 22784 bytes, 68352 live'
done
[ $bad = 0 ] || cat "$tmp/log"

# stepi: a section starts anew at each step, so a process with sections never gets through a malloc. reap-stepping
# has the next run without them, and leaves other options as they are.
gdb_runs() {
    command=$1
    shift
    REAP_OPTIONS=leaks=0,path=auto DEBUGINFOD_URLS='' gdb -nx -batch -ex 'set startup-with-shell off' \
        -ex "source $srcdir/lib/reap-gdb.py" -ex "$command" -ex 'show environment REAP_OPTIONS' -ex 'break stop_here' -ex run \
        -ex 'reap-stepping' "$@" "$program" >"$tmp/log" 2>&1
}
says() { grep -qE "$1" "$tmp/log" || { wrong "stepping, $command: no '$1'"; cat "$tmp/log"; }; }
gdb_runs 'reap-stepping on' -ex 'stepi 40000' -ex 'print pairs > 20' -ex 'reap-stepping off' -ex 'show environment REAP_OPTIONS'
says '^next run: malloc takes locks'
says '^REAP_OPTIONS = leaks=0,path=locked$'
says '^this process: path locked$'
says '^\$1 = 1$'
says '^next run: malloc has sections'
says '^REAP_OPTIONS = leaks=0$'
gdb_runs 'reap-stepping'
says '^REAP_OPTIONS = leaks=0,path=auto$'
if grep -q '^this process: path rseq' "$tmp/log"; then
    gdb_runs 'reap-stepping off' -ex 'stepi 2000' -ex 'print pairs'
    says '^\$1 = 0$'
else
    echo "skipped: no restartable sequences here: a process that steps do not get through"
fi
gdb_runs 'reap-stepping odd'
says '^reap-stepping takes on, off, or nothing'

# Without debug information each command says so in one line.
real=$program
[ ! -x "${program%/*}/.libs/${program##*/}" ] || real=${program%/*}/.libs/${program##*/}
if ! lacks objcopy "a program without debug information" && objcopy --strip-debug "$real" "$tmp/stripped"; then
    for command in reap 'reap-of 1' reap-heaps; do
        DEBUGINFOD_URLS='' gdb -nx -batch -ex "source $srcdir/lib/reap-gdb.py" -ex "$command" "$tmp/stripped" >"$tmp/log" 2>&1
        grep -q '^the reap library has no debug information' "$tmp/log" || { wrong "$command without it"; cat "$tmp/log"; }
    done
fi
exit $bad
