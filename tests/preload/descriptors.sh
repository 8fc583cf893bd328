#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Descriptors are the program's. Each library that is preloaded into one that was started without 0, 1 and 2, or that
# closes all others and opens files of its own under their numbers, takes none of the first three, closes none that is
# not its own, and writes to no file of the program: with all that a library may have open (options, a trace, a profile, a
# socket), with few descriptors, in a forked child, at exit and at an abort. Lines for standard error go there, to
# what the program has put in its place, and else nowhere.
. "${srcdir:-.}/tests/support/preload-lib.sh"
program=$(realpath "${top_builddir:-.}/tests/preload/descriptors")
libs=$(dirname "$preload")
wrong() { echo "wrong: $name, $*"; bad=1; }

# in_place COMMAND...: in an empty directory, with the libraries and variables of $with; the status goes to $status.
# All names are bound at the start, as in the libraries of a distribution that is built with -z now.
in_place() {
    rm -rf "$tmp/at"
    mkdir "$tmp/at"
    # shellcheck disable=SC2086  # words
    (cd "$tmp/at" && timeout 60 env LD_BIND_NOW=1 $with "$@") && status=0 || status=$?
}
# holds FILE: it has what the program has written.
holds() { [ "$(cat "$tmp/at/$1")" = mine ] || { wrong "$1 is not the program's any more:"; head -c 300 "$tmp/at/$1"; }; }
said() { grep -q "$1" "$tmp/at/$2" || { wrong "no '$1' in $2"; ls "$tmp/at"; cat "$tmp/at/$2"; }; }

closed() {
    in_place "$program" "$1" <&- >&- 2>&-
    for file in own-0 own-1 own-2; do holds $file; done
}
# row NAME LIBRARIES VARIABLES...: $left is a file that they leave.
row() { aside try_row "$@"; }
try_row() {
    name=$1 libraries=
    for library in $2; do
        ! lacks_file "$libs/$library.so" "$library" "$name" || return 0
        libraries="$libraries${libraries:+:}$libs/$library.so"
    done
    shift 2
    with="${libraries:+LD_PRELOAD=$libraries} $*"
    closed closed
    [ $status = 0 ] || wrong "started without descriptors: status $status"
    [ -z "$left" ] || [ -s "$tmp/at/$left" ] || { wrong "no $left"; ls "$tmp/at"; }
    in_place "$program" taken 2>"$tmp/err"
    [ $status = 0 ] || { wrong "with files of its own: status $status"; cat "$tmp/err"; }
    holds own
    # shellcheck disable=SC3045  # dash and bash have it
    (ulimit -n 64; in_place "$program" taken 2>"$tmp/err"; echo "$status" >"$tmp/status")
    [ "$(cat "$tmp/status")" = 0 ] || { wrong "with 64 descriptors: status $(cat "$tmp/status")"; cat "$tmp/err"; }
    holds own
    # shellcheck disable=SC3045
    (ulimit -n 64; closed closed; echo "$status" >"$tmp/status")
    [ "$(cat "$tmp/status")" = 0 ] || wrong "64 descriptors, without the first: status $(cat "$tmp/status")"
    echo "$name: tried"
}

left=
row "no library" ""
row malloc libreap-malloc
row "locked path" libreap-malloc REAP_OPTIONS=path=locked
row "the report" libreap-malloc REAP_OPTIONS=stats=1,leaks=1,harden=1
row "the purge thread" libreap-malloc DESCRIPTORS_WAIT= REAP_OPTIONS=purge_thread=1,purge_ms=1
row "the socket" "libreap-malloc libreap-ask" DESCRIPTORS_WAIT= REAP_OPTIONS=ask=@reap-descriptors.%p
row "the socket at a path" "libreap-malloc libreap-ask" DESCRIPTORS_WAIT= REAP_OPTIONS=ask=socket.%p
left=profile
row "the profile" "libreap-malloc libreap-profile" REAP_PROFILE=profile REAP_PROFILE_BYTES=4096
row "the profile of another malloc" libreap-profile REAP_PROFILE=profile REAP_PROFILE_BYTES=4096
left=trace
row "the recorder" "libreap-trace libreap-malloc" REAP_TRACE=trace
row "stacks" "libreap-trace libreap-malloc" REAP_TRACE=trace,stacks=8
left=profile
row "all" "libreap-trace libreap-malloc libreap-ask libreap-profile" DESCRIPTORS_WAIT= REAP_TRACE=trace,stacks=8 REAP_PROFILE=profile \
    REAP_PROFILE_BYTES=4096 REAP_OPTIONS=ask=@reap-descriptors.%p,stats=1
settled

# --- standard error ---------------------------------------------------------------------------
name="standard error" with="LD_PRELOAD=$preload REAP_OPTIONS=stats=1"
closed misuse
[ $status = 134 ] || wrong "a misuse ends with status $status"
in_place "$program" data 2>"$tmp/err"
[ $status = 0 ] || wrong "status $status"
holds own
for how in truncate append; do
    in_place "$program" log $how 2>"$tmp/err"
    said '^reap: live ' log
    [ ! -s "$tmp/err" ] || wrong "its first standard error gets something, too"
done
in_place sh -c "'$program' data 2<>given"
holds own
for way in '2>log' '2>>log' '2<>log'; do
    in_place sh -c "'$program' log x $way; '$program' taken $way"
    said '^reap: live ' log
done
# Who cannot write says so on standard error, if there is one.
for library in trace profile ask malloc; do
    name="what $library says"
    case $library in
        trace) with="LD_PRELOAD=$libs/libreap-trace.so:$preload REAP_TRACE=none/x" ;;
        profile) with="LD_PRELOAD=$libs/libreap-profile.so REAP_PROFILE=none/x" ;;
        ask) with="LD_PRELOAD=$preload:$libs/libreap-ask.so REAP_OPTIONS=ask=none/x" ;;
        malloc) with="LD_PRELOAD=$preload REAP_OPTIONS=stats=none/x" ;;
    esac
    [ -e "$libs/libreap-$library.so" ] || continue
    in_place "$program" taken 2>"$tmp/err"
    grep -qE '^reap(-trace)?: .*none/x' "$tmp/err" || { wrong "nothing:"; cat "$tmp/err"; }
    in_place "$program" data 2>"$tmp/err"
    holds own
    closed closed
    [ $status = 0 ] || wrong "without standard error: status $status"
done
exit $bad
