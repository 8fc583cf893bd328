#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What a program allocates is in its trace: with threads, a fork, an exec, on glibc's malloc and on libreap-malloc; and
# nothing is lost by _exit, SIGKILL or a crash. A file that is there is not written to. A full disk, and options that
# are none, get one line, and the program goes on.
. "${srcdir:-.}/tests/trace/trace_lib.sh"

# has WHAT BUCKET N [MORE]: libc's own objects may be of the size, too.
has() {
    n=$(bucket "$2")
    [ "$n" -ge "$3" ] && [ "$n" -le $(($3 + ${4:-8})) ] || wrong "$1: $n objects of up to $2 bytes, and not $3"
}
quiet() { [ ! -s "$tmp/remarks" ] && [ ! -s "$tmp/$1.said" ] || { wrong "$1 says:"; cat "$tmp/$1.said" "$tmp/remarks"; }; }

for malloc in '' "$libs/libreap-malloc.so"; do
    name=plain$(basename "$malloc" .so)
    record "$name" plain '' "$malloc"
    [ "$status" = 0 ] || wrong "$name: status $status"
    analysed "$tmp/$name" || wrong "$name is not read"
    has "$name" 1024 100
    [ "$(field objects_at_end)" -ge 50 ] && [ "$(field objects_at_end)" -le 60 ] || wrong "$name: $(field objects_at_end) at the end"
    [ "$(field covered)" = 0 ] || wrong "$name: an object ends without a word"
    quiet "$name"
    [ ! -e "$tmp/$name.live" ] || wrong "$name leaves its .live"

    record threads$name threads ',stacks=4' "$malloc"
    analysed "$tmp/threads$name" || wrong "threads are not read"
    has "threads on ${malloc:-glibc}" 128 4000 20
    [ "$(field covered)" = 0 ] || wrong "threads: an object ends without a word"
    [ "$(field objects_at_end)" -le 20 ] || wrong "threads: objects are left"

    record fork$name fork '' "$malloc"
    analysed "$tmp/fork$name" || wrong "a parent is not read"
    has "a parent" 128 10
    has "a parent, of its child's" 256 0
    child=$(ls "$tmp" | grep "^fork$name\.[0-9]*$")
    analysed "$tmp/$child" || wrong "a child is not read"
    has "a child" 256 20
done

# A child whose parent had a thread in ld.so, and that goes on without exec: each of its calls has a stack.
record linked linked ',stacks=8'
[ "$status" = 0 ] || wrong "linked: status $status"
analysed "$tmp/$(ls "$tmp" | grep '^linked\.[0-9]*$')" || wrong "the child of a parent in ld.so is not read"
has "the child of a parent in ld.so" 256 20

record exec exec
analysed "$tmp/exec" || wrong "what was before an exec is not read"
has "before an exec" 128 10
[ "$(wc -l <"$tmp/remarks")" = 1 ] && grep -q 'did not come to its end' "$tmp/remarks" || wrong "an exec is not told"
analysed "$(ls "$tmp"/exec.[0-9]* | grep -v live)" || wrong "what was behind an exec is not read"
has "behind an exec" 1024 100

for mode in quick killed crash; do
    record $mode $mode
    analysed "$tmp/$mode" || wrong "$mode is not read"
    has "$mode" 128 10
    [ "$(wc -l <"$tmp/remarks")" = 1 ] && grep -q 'did not come to its end' "$tmp/remarks" || wrong "$mode is not told"
done

# A program that closes all files but its own three, and has its own under their numbers.
record closes closes ',stacks=4'
[ "$status" = 0 ] || wrong "closes: status $status"
analysed "$tmp/closes" || wrong "the trace of a program that closes all files is not read"
has "behind closefrom" 256 20000
has "threads behind closefrom" 128 4010 20
quiet closes
[ ! -e "$tmp/closes.live" ] || wrong "closes leaves its .live"

# A second run does not write to the first one's file.
before=$(cksum "$tmp/quick")
record quick plain
[ "$(cksum "$tmp/quick")" = "$before" ] || wrong "a second run has written to the file of the first"
analysed "$(ls "$tmp"/quick.[0-9]* | grep -v live)" || wrong "a second run has no trace"
has "a second run" 1024 100

record odd plain ',stacks=1000'
[ "$status" = 0 ] && [ "$(wc -l <"$tmp/odd.said")" = 1 ] && grep -q '^reap-trace: REAP_TRACE=' "$tmp/odd.said" || wrong "stacks=1000 is taken"
REAP_TRACE=$tmp/none/x LD_PRELOAD=$libs/libreap-trace.so "$traced" plain 2>"$tmp/said" || wrong "without a directory the program fails"
[ "$(wc -l <"$tmp/said")" = 1 ] && grep -q 'No such file or directory, so the trace ends here' "$tmp/said" || wrong "a directory that is not there is not told"
LD_PRELOAD=$libs/libreap-trace.so "$traced" plain || wrong "without REAP_TRACE the program fails"

# Reaps: what reap.h does inline is seen, too.
record reaps reaps
analysed "$tmp/reaps" || wrong "reaps are not read"
has reaps 32 100 30
has "a child" 64 10 30
[ "$(field covered)" = 0 ] || wrong "reaps: an object ends without a word"

# A reap's end is told when another one has its place.
record late nested '' "$libs/liblate.so"
[ "$status" = 0 ] || wrong "late: status $status"
analysed "$tmp/late" || wrong "late is not read"
[ "$(field unknown_frees)" = 0 ] || wrong "a reap ends with the one that had its place before"

# A full disk: a file system of 1 MiB.
mkdir "$tmp/full"
unshare -rm sh -c "mount -t tmpfs -o size=1m none $tmp/full && REAP_TRACE=$tmp/full/t LD_PRELOAD=$libs/libreap-trace.so \
    $traced long 2>$tmp/said; echo \$? >$tmp/status; cp $tmp/full/t $tmp/cut; cp $tmp/full/t.live $tmp/cut.live" 2>/dev/null
if [ -s "$tmp/status" ]; then
    [ "$(cat "$tmp/status")" = 0 ] || wrong "a full disk: status $(cat "$tmp/status")"
    [ "$(wc -l <"$tmp/said")" = 1 ] && grep -q 'No space left on device, so the trace ends here' "$tmp/said" || wrong "a full disk is not told"
    analysed "$tmp/cut" || wrong "the trace of a full disk is not read"
    [ "$(bucket 128)" -gt 10000 ] || wrong "of a full disk $(bucket 128) objects are left"
    grep -v 'did not come to its end' "$tmp/remarks" && wrong "of a full disk a block is broken"
else
    echo "skipped: a full disk: no mount here"
fi
exit $bad
