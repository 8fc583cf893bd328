#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# With purge_thread=1 memory goes back while the program does nothing, by a thread that nobody else sees; without
# it there is no thread. Forks, threads and signals go on with it.
. "${srcdir:-.}/tests/support/preload-lib.sh"

try() {
    on=$1 more=$2
    shift 2
    for path in $on; do
        options=$(options_of "$path")
        (
            REAP_OPTIONS=${options:+$options,}$more LD_PRELOAD=$preload
            export REAP_OPTIONS LD_PRELOAD
            timeout 300 "$@"
        ) >"$tmp/out" 2>&1
        case $? in
            0) echo "$path,$more: ${1##*/}" ;;
            77) echo "$path,$more: ${1##*/} cannot be tried here" ;;
            *) echo "$path,$more: ${1##*/} fails"; head -n 20 "$tmp/out"; bad=1 ;;
        esac
    done
}
try default purge_thread=0,purge_ms=60000 "$top_builddir/tests/preload/purge" 1
try "$paths" purge_thread=1,purge_ms=20 "$top_builddir/tests/preload/purge" 2
try default purge_thread=1,purge_ms=4000 "$top_builddir/tests/preload/purge" little
try default purge_thread=1,purge_ms=1 "$top_builddir/tests/preload/preload_fork"
try default purge_thread=1,purge_ms=1 "$top_builddir/tests/preload/preload_signals"
try default purge_thread=1,heaps=cpu "$top_builddir/tests/preload/purge_sandbox"
try "$paths" purge_thread=1,purge_ms=20 "$top_builddir/tests/preload/purge_last"

# A program that has nothing but reaps of the library, which its malloc is not.
reaps() {
    REAP_OPTIONS=$1 timeout 300 "$top_builddir/tests/preload/purge_reaps" $2 || {
        echo "$1: purge_reaps $2 ends with status $?"
        bad=1
    }
}
reaps purge_thread=1,purge_ms=20 2
reaps purge_ms=1500 "2 asks" # above 1000 a fall gives nothing back at once
reaps purge_ms=60000 1
reaps purge_thread=0,purge_ms=60000 "1 asks"
exit $bad
