#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# All names of files that a user gives (stats=, ask=, reap-ask's address), and all that can be at such a name:
# the library writes there, or says in one line why it does not. The program ends as always; nothing hangs.
. "${srcdir:-.}/tests/support/preload-lib.sh"
need python3
program=$(realpath "${top_builddir:-.}/tests/preload/asked_reaps")
ask=$(realpath "${top_builddir:-.}/tools/ask/reap-ask")
other=65534
bad=0
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
        pipe-read) mkfifo "$room/$name" && exec 8<>"$room/$name" ;; # somebody could read
        link) target=$room/target && echo old >"$target" && ln -s "$target" "$room/$name" ;;
        link-new) target=$room/target && ln -s "$target" "$room/$name" ;;
        link-pipe) mkfifo "$room/target" && ln -s "$room/target" "$room/$name" ;;
        link-loop) ln -s "$room/$name" "$room/$name" ;;
        link-other) target=$room/target && echo old >"$target" && ln -s "$target" "$room/$name" &&
            chown -h $other "$room/$name" ;;
        directory) mkdir "$room/$name" ;;
        socket) python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])' "$room/$name" ;;
        below-file) echo old >"$room/file" ;;
        forbidden) mkdir "$room/locked" && chmod 0 "$room/locked" ;;
    esac
}
unmake() { exec 8<&-; }

# Runs the program with an option, its lines in $tmp/err. $as: a command before it.
as=
run_option() { REAP_OPTIONS=$1 timeout 20 $as "$program" </dev/null >"$tmp/out" 2>"$tmp/err" || wrong "status $?"; }
# With ask= it waits until the line is there, or the socket.
run_ask() {
    mkfifo "$tmp/input"
    rm -f "$tmp/err" "$tmp/help"
    REAP_OPTIONS=$1 timeout 20 $as "$program" <"$tmp/input" >"$tmp/out" 2>"$tmp/err" &
    started=$!
    exec 9>"$tmp/input"
    tries=0
    until [ -s "$tmp/err" ] || timeout 5 "$ask" "${1#ask=}" help >"$tmp/help" 2>/dev/null || [ $((tries += 1)) -gt 200 ]
    do sleep 0.05; done
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
holds() {
    grep -q "$1" "$target" 2>"$tmp/grep" || wrong "no '$1' in the file"
    [ "$row" = new ] || [ "$row" = link-new ] || grep -qx old "$target" || wrong "the file's old text is lost"
}
untouched() { [ ! -f "$target" ] || [ "$(cat "$target")" = old ] || wrong "the file is changed"; }

# --- the table --------------------------------------------------------------------------------
not_file="it is neither a file nor a character device"
not_read="it is a socket, or a pipe without a reader"
what='^reap: live '
# row KIND NAME WRITES ASKS: at NAME, in the room if it has no slash first; what stats= says (+: nothing, and they
# write there; '': nothing; =LINE: another line), and what ask= says (+: it listens there; -: not tried).
row() {
    row=$1 plain=$2 writes=$3 asks=$4
    option=stats
    place
    make_at "$row"
    run_option "stats=$at"
    case $writes in
        +) expect '' && holds "$what" ;;
        '') expect '' ;;
        =*) expect "${writes#=}" ;;
        *) expect "REAP_OPTIONS: stats=$at cannot be written: $writes" && untouched ;;
    esac
    unmake
    [ "$asks" != - ] || return
    option=ask
    place
    make_at "$row"
    run_ask "ask=$at"
    case $asks in
        +)
            expect ''
            grep -q '^tree: ' "$tmp/help" || wrong "no answer"
            [ ! -e "$at" ] || wrong "it stays"
            ;;
        *) expect "ask=$at: $asks, so nobody can ask this process" && untouched ;;
    esac
    unmake
}
# Sets $name, in the room, and $at.
place() {
    name=$plain at=$room/$plain
    case $plain in /*) at=$plain ;; esac
}

there="File exists"
row new name + +
row file name + "$there"
row pipe name "$not_read" "$there"
row pipe-read name "$not_file" "$there"
row link name + "$there"
row link-new name + "$there"
row link-pipe name "$not_read" "$there"
row link-loop name "Too many levels of symbolic links" "$there"
row directory name "Is a directory" "$there"
row socket name "$not_read" +
row below-none none/name "No such file or directory" "No such file or directory"
row below-file file/name "Not a directory" "Not a directory"
row device /dev/null '' -
row device /dev/full "=No space left on device" -
if [ "$(id -u)" = 0 ] && setpriv --reuid $other --regid $other --clear-groups "$ask" -h >/dev/null 2>&1; then
    row link-other name "it is another user's link" "$there"
    as="setpriv --reuid $other --regid $other --clear-groups"
    row forbidden locked/name "Permission denied" "Permission denied"
    as=
else
    echo "skipped: no root, or no setpriv (util-linux): links of other users, and directories that nobody may enter"
fi

# A full disk: a little one.
if unshare -Urm sh -c 'mount -t tmpfs -o size=4k none "$1"' - "$tmp" 2>/dev/null; then
    mkdir "$tmp/disk"
    full() {
        unshare -Urm sh -c 'mount -t tmpfs -o size=4k,nr_inodes=3 none "$1/disk" && shift && "$@"' - "$tmp" "$@"
    }
    row=full option=stats
    REAP_OPTIONS=stats=$tmp/disk/name full sh -c 'cat /dev/zero >"$1/disk/zero" 2>/dev/null; : >"$1/disk/name"; exec "$2"' \
        - "$tmp" "$program" </dev/null >"$tmp/out" 2>"$tmp/err" || wrong "status $?"
    expect "REAP_OPTIONS: stats=$tmp/disk/name cannot be written: No space left on device"
else
    echo "skipped: no user namespaces: a full disk"
fi

# --- descriptors of the program's own ---------------------------------------------------------
row=descriptors
for name in /dev/stderr /dev/fd/2 /proc/self/fd/2; do
    REAP_OPTIONS=stats=$name timeout 20 "$program" </dev/null 2>"$tmp/err" >"$tmp/out" || wrong "status $?"
    grep -q "$what" "$tmp/err" || wrong "$name, a file"
    REAP_OPTIONS=stats=$name timeout 20 "$program" </dev/null 2>&1 >"$tmp/out" | cat >"$tmp/err"
    grep -q "$what" "$tmp/err" || wrong "$name, a pipe"
done
REAP_OPTIONS=stats=/dev/stdout timeout 20 "$program" </dev/null | cat >"$tmp/out"
grep -q "$what" "$tmp/out" || wrong "/dev/stdout"
REAP_OPTIONS=stats=/dev/fd/7 timeout 20 "$program" </dev/null 7>&1 >"$tmp/out" | cat >"$tmp/err"
grep -q "$what" "$tmp/err" || wrong "/dev/fd/7"

# --- reap-ask ---------------------------------------------------------------------------------
option=reap-ask
# asks KIND NAME LINE: at NAME in the room; one line on standard error, and status 1.
asks() {
    row=$1 name=$2 at=$room/$2
    make_at "$row"
    timeout 20 $as "$ask" "$at" help >"$tmp/out" 2>"$tmp/err"
    got=$?
    [ $got = 1 ] || wrong "status $got"
    [ ! -s "$tmp/out" ] || wrong "it prints"
    expect "reap-ask: $3"
    unmake
}
for kind in new file pipe pipe-read link link-new directory socket; do asks $kind name "nobody listens at $room/name"; done
asks link-loop name "$room/name cannot be asked: Too many levels of symbolic links"
asks below-none none/name "nobody listens at $room/none/name"
asks below-file file/name "$room/file/name cannot be asked: Not a directory"
if [ "$(id -u)" = 0 ] && setpriv --reuid $other --regid $other --clear-groups "$ask" -h >/dev/null 2>&1; then
    as="setpriv --reuid $other --regid $other --clear-groups"
    asks forbidden locked/name "this user may not ask $room/locked/name: Permission denied"
    as=
fi
row=output
mkfifo "$tmp/input"
REAP_OPTIONS=ask=$tmp/asked "$program" <"$tmp/input" >"$tmp/out" &
started=$!
exec 9>"$tmp/input"
tries=0
until "$ask" "$tmp/asked" help >"$tmp/help" 2>/dev/null || [ $((tries += 1)) -gt 200 ]; do sleep 0.05; done
for question in help tree; do
    timeout 20 "$ask" "$tmp/asked" $question >/dev/full 2>"$tmp/err"
    [ $? = 1 ] || wrong "status $?"
    expect "reap-ask: the answer cannot be written: No space left on device"
done
exec 9>&-
wait $started
exit $bad
