#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A signal amid malloc or free loses no stack: libgcc's unwinder, glibc's backtrace() and gdb find main from wherever the
# kernel lets it come, and from each instruction of the sections that are passed, and their abort handlers.
. "${srcdir:-.}/tests/support/script.sh"
program=$build/tests/instruments/signal_stacks
"$program" || wrong "stacks were lost"
lacks gdb "each instruction" && exit $bad
cat >"$tmp/walk.py" <<'END'
import gdb, re
inferior, seen, lost = gdb.selected_inferior(), 0, 0
begin, end = re.search(r"(0x\w+) - (0x\w+) is __rseq_cs", gdb.execute("info files", to_string=True)).groups()
for at in range(int(begin, 16), int(end, 16), 32):
    start, length, abort = inferior.read_memory(at + 8, 24).cast("Q")
    for each in inferior.architecture().disassemble(min(start, abort), start + length - 1):
        gdb.Breakpoint(f"*{each['addr']}", temporary=True, internal=True)
gdb.execute("continue")
while inferior.pid:
    frame, seen = gdb.newest_frame(), seen + 1
    while frame and frame.name() != "main":
        frame = frame.older()
    lost += not frame
    gdb.execute("signal SIGUSR1")
print(f"gdb: {lost} of {seen} lost")
END
DEBUGINFOD_URLS='' timeout 600 gdb -nx -batch -ex 'set startup-with-shell off' -ex 'break main' -ex 'run gdb' \
    -ex "source $tmp/walk.py" "$program" >"$tmp/said" 2>&1
[ "$(grep -cE '^(gdb: )?0 of [0-9]{3,} lost$' "$tmp/said")" = 2 ] || wrong "gdb"
exit $bad
