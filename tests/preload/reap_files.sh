#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# All names of files that a user gives (ask=, reap-ask's address), and all that can be at such a name:
# the library listens there, or says in one line why it does not. The program ends as always; nothing hangs.
. "${srcdir:-.}/tests/support/preload-lib.sh"
need python3
program=$(realpath "${top_builddir:-.}/tests/preload/asked_reaps")
ask=$(realpath "${top_builddir:-.}/tools/ask/reap-ask")
other=65534
wrong() { echo "wrong: $row $option: $*"; bad=1; }

# --- what may be at a name --------------------------------------------------------------------
# make_at KIND: makes it in a directory that is there for nothing else. The file behind it, if there is one, is $target.
room=$tmp/room
make_at() {
    rm -rf "$tmp/room"
    mkdir "$room" && chmod 777 "$room"
    target=$at
    case $1 in
        file) echo old >"$room/$name" ;;
        pipe) mkfifo "$room/$name" ;;
        link) target=$room/target && echo old >"$target" && ln -s "$target" "$room/$name" ;;
        link-new) target=$room/target && ln -s "$target" "$room/$name" ;;
        link-pipe) mkfifo "$room/target" && ln -s "$room/target" "$room/$name" ;;
        link-loop) ln -s "$room/$name" "$room/$name" ;;
        directory) mkdir "$room/$name" ;;
        socket) python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])' "$room/$name" ;;
        below-file) echo old >"$room/file" ;;
        forbidden) mkdir "$room/locked" && chmod 0 "$room/locked" ;;
    esac
}
# Runs the program with an option until its line is there, in $tmp/err, or the socket. $as: a command before it.
as=
says_or_listens() { [ -s "$tmp/err" ] || timeout 5 "$ask" "$1" help >"$tmp/help" 2>/dev/null; }
run_ask() {
    mkfifo "$tmp/input"
    rm -f "$tmp/err" "$tmp/help"
    REAP_OPTIONS=$1 timeout 100 $as "$program" <"$tmp/input" >"$tmp/out" 2>"$tmp/err" &
    started=$!
    exec 9>"$tmp/input"
    within 60 says_or_listens "${1#ask=}"
    exec 9>&-
    wait $started || wrong "status $?"
    rm "$tmp/input"
}

# expect LINE: exactly this line about the file; '': none.
expect() {
    grep '^reap' "$tmp/err" >"$tmp/said"
    if [ -z "$1" ]; then
        [ ! -s "$tmp/said" ] || { wrong "it says:" && cat "$tmp/said"; }
    elif [ "$(wc -l <"$tmp/said")" != 1 ] || ! grep -qF -- "$1" "$tmp/said"; then
        wrong "not one line with '$1':" && cat "$tmp/said"
    fi
}
untouched() { [ ! -f "$target" ] || [ "$(cat "$target")" = old ] || wrong "the file is changed"; }

# --- the table --------------------------------------------------------------------------------
# row KIND NAME ASKS: at NAME in the room; what ask= says (+: nothing, and it listens there).
option=ask
row() {
    row=$1 name=$2 at=$room/$2
    make_at "$row"
    run_ask "ask=$at"
    if [ "$3" = + ]; then
        expect ''
        grep -q '^tree: ' "$tmp/help" || wrong "no answer"
        [ ! -e "$at" ] || wrong "it stays"
    else
        expect "ask=$at: $3, so nobody can ask this process"
        untouched
    fi
}

there="File exists"
row new name +
row socket name +
for kind in file pipe link link-new link-pipe link-loop directory; do row $kind name "$there"; done
row below-none none/name "No such file or directory"
row below-file file/name "Not a directory"
if [ "$(id -u)" = 0 ] && setpriv --reuid $other --regid $other --clear-groups "$ask" -h >/dev/null 2>&1; then
    as="setpriv --reuid $other --regid $other --clear-groups"
    row forbidden locked/name "Permission denied"
    as=
else
    echo "skipped: no root, or no setpriv (util-linux): directories that nobody may enter"
fi

# --- reap-ask ---------------------------------------------------------------------------------
option=reap-ask
# asks KIND NAME LINE: at NAME in the room; one line on standard error, and status 1.
asks() {
    row=$1 name=$2 at=$room/$2
    make_at "$row"
    timeout 60 $as "$ask" "$at" help >"$tmp/out" 2>"$tmp/err"
    got=$?
    [ $got = 1 ] || wrong "status $got"
    [ ! -s "$tmp/out" ] || wrong "it prints"
    expect "reap-ask: $3"
}
for kind in new file pipe link link-new directory socket; do asks $kind name "nobody listens at $room/name"; done
asks link-loop name "$room/name cannot be asked: Too many levels of symbolic links"
asks below-none none/name "nobody listens at $room/none/name"
asks below-file file/name "$room/file/name cannot be asked: Not a directory"
if [ "$(id -u)" = 0 ] && setpriv --reuid $other --regid $other --clear-groups "$ask" -h >/dev/null 2>&1; then
    as="setpriv --reuid $other --regid $other --clear-groups"
    asks forbidden locked/name "this user may not ask $room/locked/name: Permission denied"
    as=
fi
row=output
rm -f "$tmp/err" # the row before has a line there
mkfifo "$tmp/input"
REAP_OPTIONS=ask=$tmp/asked "$program" <"$tmp/input" >"$tmp/out" &
started=$!
exec 9>"$tmp/input"
within 60 says_or_listens "$tmp/asked"
for question in help tree; do
    timeout 60 "$ask" "$tmp/asked" $question >/dev/full 2>"$tmp/err"
    [ $? = 1 ] || wrong "status $?"
    expect "reap-ask: the answer cannot be written: No space left on device"
done
exec 9>&-
wait $started
exit $bad
