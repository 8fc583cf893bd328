#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# reapEnter where malloc is libreap-malloc's, and where it is not: then the program is told, by one line and by
# errno; and where libreap comes before libreap-malloc, so that there are two of everything.
. "${srcdir:-.}/tests/support/script.sh"
preload=$build/.libs/libreap-malloc.so programs=$build/tests/unit/libc

told="reap: reapEnter: malloc is not libreap-malloc's, so nothing that it gives comes from the reap: link libreap-malloc first, or preload it"
order="reap: libreap comes before libreap-malloc, which does not know the objects of its reaps: link libreap-malloc first, or alone"
works="reapEnterQuietly: 0, malloc is the reap's
reapEnter: 0, malloc is the reap's
again: 0, malloc is the reap's"
does_not="reapEnterQuietly: 0, malloc is not the reap's
reapEnter: ENOTSUP, malloc is not the reap's
again: ENOTSUP, malloc is not the reap's"

# check WHAT STATUS OUTPUT ERRORS COMMAND...
check() {
    what=$1 status=$2
    printf '%s\n' "$3" >"$tmp/out" && printf '%s' "$4" >"$tmp/err"
    shift 4
    env "$@" >"$tmp/said.out" 2>"$tmp/said.err"
    is=$?
    [ $is -eq "$status" ] || wrong "$what: status $is"
    diff "$tmp/out" "$tmp/said.out" && diff "$tmp/err" "$tmp/said.err" || wrong "$what: (< expected, > said)"
}
nl='
'
check "libreap alone" 0 "$does_not" "$told$nl" "$programs/reap_enter"
check "libreap-malloc preloaded" 0 "$works" "" LD_PRELOAD="$preload" "$programs/reap_enter" free
check "libreap-malloc alone" 0 "$works" "" "$programs/reap_enter_malloc" free
check "libreap-malloc first" 0 "$works" "" "$programs/reap_enter_after" free
check "libreap first" 0 "$does_not" "$order$nl$told$nl" "$programs/reap_enter_before"
exit $bad
