#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Each harness on its corpus, and on changes by chance of each input. Traces are recorded here. And a harness that finds
# something fails.
. "${srcdir:-.}/tests/support/script.sh"
ulimit -c 0
times=2000 slow=20
[ -z "${REAP_TEST_SHORT-}" ] || { times=200 slow=4; }

# harness NAME TIMES FILE
harness() {
    ! lacks_file "$build/tests/inputs/input_$1" "input_$1" || return
    "$build/tests/inputs/input_$1" "$2" "$3" >"$tmp/said" 2>&1
    status=$?
    cat "$tmp/said"
    [ $status = 0 ] || { echo "$1: status $status"; bad=1; }
}
harness options "$times" "$srcdir/tests/inputs/options.corpus"
harness query "$times" "$srcdir/tests/inputs/query.corpus"
harness ask "$slow" "$srcdir/tests/inputs/ask.corpus"
if ! lacks_file "$build/tests/inputs/input_trace" input_trace; then
    for what in plain threads reaps; do
        REAP_TRACE=$tmp/$what,stacks=4 LD_PRELOAD=$build/.libs/libreap-trace.so "$build/tests/trace/traced" $what >/dev/null 2>&1
        [ -s "$tmp/$what" ] || wrong "no trace of $what was recorded"
        head -c 1000000 "$tmp/$what" >"$tmp/$what.bin"
        harness trace $((times * 2)) "$tmp/$what.bin"
    done
fi

# A corpus that is none, and one without inputs.
echo 'nonsense' >"$tmp/nonsense"
echo '# nothing' >"$tmp/nothing"
for file in nonsense nothing; do
    "$build/tests/inputs/input_options" 1 "$tmp/$file" >/dev/null 2>&1 && { echo "$file is run"; bad=1; }
done
exit $bad
