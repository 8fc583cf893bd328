#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Running processes are asked from outside: with libreap-malloc and libreap-ask preloaded to programs that know nothing
# of them, with libreap, after fork and exec, by this user, by another one and by root. What reap-ask says where it gets no answer.
# The JSON is JSON, and agrees with the totals.
. "${srcdir:-.}/tests/support/preload-lib.sh"
need python3
ask=$(realpath "${top_builddir:-.}/tools/ask/reap-ask")
library=$(realpath "${top_builddir:-.}/.libs/libreap-ask.so")
programs=$(realpath "${top_builddir:-.}/tests/preload")

# start N LOG COMMAND...: COMMAND with option `ask` in the background, its input a pipe that stop closes; waits
# until it has printed N lines. The first of them goes to $pid.
start() {
    lines=$1 log=$2
    shift 2
    rm -f "$tmp/input" "$tmp/$log" # what another program said there is not the answer
    mkfifo "$tmp/input"
    REAP_OPTIONS=$options "$@" <"$tmp/input" >"$tmp/$log" 2>"$tmp/$log.err" &
    started=$!
    exec 9>"$tmp/input"
    within 60 has "$lines" "$tmp/$log" ''
    pid=$(head -n 1 "$tmp/$log")
    [ -n "$pid" ] || wrong "$* did not start"
}
stop() {
    exec 9>&-
    wait $started || wrong "$log ends with status $?"
}
at_exit='exec 9>&-'

helps() { "$ask" "$1" help >"$tmp/help" 2>"$tmp/err"; }
# answers PROCESS: it does, once its thread has started.
answers() {
    within 60 helps "$1"
    grep -q '^tree: ' "$tmp/help" || { wrong "process $1 does not answer:"; cat "$tmp/err"; }
}
# says STATUS LINE COMMAND...: it writes nothing but this line to standard error.
says() {
    status=$1 line=$2
    shift 2
    "$@" >"$tmp/out" 2>"$tmp/err"
    got=$?
    [ $got = "$status" ] || wrong "status $got, not $status: $*"
    [ -s "$tmp/out" ] && wrong "it prints: $*"
    grep -qF -- "$line" "$tmp/err" || { wrong "$* does not say '$line', but:"; cat "$tmp/err"; }
}

# --- any program ------------------------------------------------------------------------------
for path in $paths; do
    options=ask=@reap.%p$(options_of "$path" | sed 's/^./,&/')
    start 3 asked env LD_PRELOAD="$preload $library" "$programs/asked" 2
    for process in $(cat "$tmp/asked"); do
        answers "$process"
        "$ask" "$process" json >"$tmp/json" || wrong "$path: no JSON"
        python3 -m json.tool "$tmp/json" >"$tmp/tool" || wrong "$path: this is no JSON"
        grep -q "\"process\": $process,\$" "$tmp/tool" || wrong "$path: another process answers"
        "$ask" "$process" usage >"$tmp/usage" || wrong "$path: no usage"
        grep -q '^reap: live [0-9]* bytes' "$tmp/usage" || wrong "$path: no usage"
        grep -q 'Threads:.*2$' "/proc/$process/status" || wrong "$path: not two threads"
    done
    stop
    [ ! -s "$tmp/asked.err" ] || { wrong "$path: it writes to standard error"; cat "$tmp/asked.err"; }
done
options=ask=@reap.%p
start 1 shell env LD_PRELOAD="$preload $library" sh -c 'x=$(date); echo $$; read x; exec sleep 30'
answers "$pid"
echo go >&9
within 60 grep -q sleep "/proc/$pid/comm"
answers "$pid" # a program started by exec, in place of the other
"$ask" "$pid" json | grep -q '"program": "sleep"' || wrong "not the program that was started by exec"
kill "$pid"
wait $started 2>/dev/null

# --- a program with reaps ---------------------------------------------------------------------
start 1 reaps "$programs/asked_reaps"
answers "$pid"
for question in tree tags json; do "$ask" "$pid" $question >"$tmp/$question" || wrong "no $question"; done
python3 - "$tmp" <<'PYTHON' || wrong "tree, tags and JSON differ"
import json, re, sys
read = lambda name: open(sys.argv[1] + "/" + name).read()
answer = json.loads(read("json"))
reaps, backend = answer["reaps"], answer["backend"]
assert len(reaps) == 271 and reaps[0]["name"] == "server" and reaps[0]["parent"] is None
by_reap = {r["reap"]: r for r in reaps}
assert sum(r["parent"] == reaps[0]["reap"] and r["depth"] == 1 for r in reaps) == 200 and max(r["depth"] for r in reaps) == 71
assert sorted({r["name"] for r in reaps}) == ["", '"odd\\ name"', "connection", "request", "server"]
held, live = sum(r["bytes"] for r in reaps), sum(r["live_bytes"] for r in reaps)
number = lambda text, word: sum(map(int, re.findall(r"(\d+) " + word, text)))
for text in read("tree"), read("tags"):
    assert (number(text, "held"), number(text, "bytes"), number(text, "objects")) == \
        (held, live, sum(r["objects"] for r in reaps)), text
assert number(read("tags"), "reaps") == 271 and "\nrequest: 50 reaps, " in read("tags")
assert all(r["live_bytes"] <= r["bytes"] <= r["peak"] and r["limit"] == 0 and r["chunks"] >= 1 for r in reaps)
assert backend["live_bytes"] >= held and backend["held_bytes"] >= backend["live_bytes"]
assert backend["os_given_bytes"] - backend["os_returned_bytes"] == backend["held_bytes"]
assert all(r["level"] == r["depth"] + 1 and r["path"] == (by_reap[r["parent"]]["path"] if r["parent"] else [])[:64] + [r["reap"]]
           for r in reaps)
assert all(c["used"] <= c["blocks"] and c["empty"] <= c["superblocks"] for c in backend["classes"])
assert any(c["chunks"] for c in backend["classes"]) and backend["path"] in ("rseq cid", "rseq cpu", "locked")
PYTHON
if ! lacks jq "a subtree by jq, as reap-ask(1) has it"; then
    # The child below which there are 70 others: the newest, so what follows the server at first.
    python3 - "$tmp/json" >"$tmp/below" <<'PYTHON'
import json, sys
reaps = json.load(open(sys.argv[1]))["reaps"]
print(reaps[1]["reap"], sum(r["bytes"] for r in reaps[1:72]))
PYTHON
    read -r top sum <"$tmp/below"
    program=$(sed -n "s/^\$ reap.*json | jq '\(.*\)'\$/\1/p" "$srcdir/doc/reap-ask.1" | sed "s/0x20/$top/")
    [ "$(jq "$program" "$tmp/json")" = "$sum" ] || wrong "jq counts otherwise than $sum: $program"
fi
[ "$("$ask" "$pid" count one two)$("$ask" "@reap.$pid" count)" = "one two 1 2" ] || wrong "the program's own question"
says 1 "no such question as 'zork'" "$ask" "$pid" zork

# A process that may have hardly any descriptors: the thread waits, and answers when there are more.
if ! lacks prlimit "hardly any descriptors"; then
    ticks() { awk '{ print $14 + $15 }' "/proc/$pid/stat"; }
    soft=$(prlimit --pid "$pid" --nofile --output SOFT --noheadings)
    prlimit --pid "$pid" --nofile=4:
    sleep 1.1 # the wait that is under way ends
    before=$(ticks)
    sleep 1
    used=$(($(ticks) - before))
    prlimit --pid "$pid" --nofile="$soft:"
    [ $used -lt 20 ] || wrong "it spins: $used ticks in a second"
    answers "$pid"
fi

# --- addresses --------------------------------------------------------------------------------
says 1 "there is no process 999999999" "$ask" 999999999 tree
says 1 "nobody listens at $tmp/none" "$ask" "$tmp/none" tree
says 1 "process $$ does not listen at @reap.$$: it must have libreap-ask (preloaded, linked, or with \
mod_reap), and have been started with REAP_OPTIONS=ask=@reap.%p in its environment, or have called reapListen(\"@reap.%p\")" "$ask" $$ tree
says 1 "the address is too long" "$ask" "$(printf '%0200d' 0 | tr 0 x)" tree
says 2 "an address has a name" "$ask" "" tree
says 2 "an address has a name" "$ask" @ tree
says 2 "-t takes seconds" "$ask" -t 1x "$pid" tree
says 2 "the question is too long" "$ask" "$pid" "$(printf '%05000d' 0)"
says 2 "usage: reap-ask" "$ask"
for help in -h --help; do "$ask" $help | grep -q "^usage: reap-ask" || wrong "no help by $help"; done
stop
says 1 "there is no process $pid" "$ask" "$pid" tree

options=ask=$tmp/socket.%p
start 1 path "$programs/asked_reaps"
"$ask" "$tmp/socket.$pid" tree | grep -q '^server 0x' || wrong "no answer at a path"
stop
[ ! -e "$tmp/socket.$pid" ] || wrong "the socket stays"

# One line where it cannot listen, and the program goes on.
options=ask=@reap-test-$$
start 1 first "$programs/asked_reaps"
answers "@reap-test-$$"
# It may end before its thread has looked: once more then, and longer.
for seconds in 0 1 2 4 8; do
    sleep $seconds | REAP_OPTIONS=$options "$programs/asked_reaps" >"$tmp/out" 2>"$tmp/err" || wrong "status $?"
    [ ! -s "$tmp/err" ] || break
done
echo "reap: ask=@reap-test-$$: another process has this address, so nobody can ask this one" | diff - "$tmp/err" ||
    wrong "an address in use"
answers "@reap-test-$$"
stop

# Somebody else at the name of a process; and what an answer does to a terminal.
cat >"$tmp/stranger.py" <<'PYTHON'
import os, socket, sys
listener = socket.socket(socket.AF_UNIX)
listener.bind("\0" + sys.argv[1])
listener.listen()
print(os.getpid(), flush=True)
while True:
    client = listener.accept()[0]
    while True:
        line = client.recv(4096)
        if not line or line.endswith(b"\n"): break
    if line: client.sendall(b"\033]0;title\007\tname \302\233 \303\244\n")
    client.close()
PYTHON
sleep 1000 &
sleeper=$!
options=
start 1 stranger python3 "$tmp/stranger.py" "reap.$sleeper"
says 1 "it is process $pid of user $(id -u) that listens at @reap.$sleeper" "$ask" "$sleeper" tree
"$ask" "@reap.$sleeper" tree >"$tmp/out" || wrong "an address of this user's is not asked"
printf '\033]0;title\007\tname \302\233 \303\244\n' | cmp - "$tmp/out" || wrong "a file does not get what was sent"
python3 - "$ask" "@reap.$sleeper" >"$tmp/out" <<'PYTHON'
import pty, sys
pty.spawn([sys.argv[1], sys.argv[2], "tree"])
PYTHON
printf '?]0;title?\tname \302? \303\244\r\n' | cmp - "$tmp/out" || { wrong "a terminal gets:"; od -c "$tmp/out"; }
if [ "$(id -u)" = 0 ] && setpriv --reuid 65533 --clear-groups "$ask" -h >/dev/null 2>&1; then
    says 1 "it is process $pid of user 0" setpriv --reuid 65533 --clear-groups "$ask" "$sleeper" tree
fi
kill "$pid" "$sleeper"
wait $started 2>/dev/null

# --- users ------------------------------------------------------------------------------------
if [ "$(id -u)" != 0 ] || ! setpriv --reuid 65533 --clear-groups "$ask" -h >/dev/null 2>&1; then
    echo "skipped: no root, or no setpriv (util-linux): other users"
else
    other() { setpriv --reuid 65533 --regid 65533 --clear-groups "$@"; }
    options=ask=@reap.%p
    start 1 root "$programs/asked_reaps"
    answers "$pid"
    says 1 "only user 0 and root may ask process $pid" other "$ask" "$pid" tree
    stop
    start 1 other setpriv --reuid 65533 --regid 65533 --clear-groups "$programs/asked_reaps"
    answers "$pid"
    other "$ask" "$pid" tree >"$tmp/out" || wrong "a user cannot ask its own process"
    says 1 "only user 65533 and root may ask it" setpriv --reuid 1 --clear-groups "$ask" "$pid" tree
    stop
    options=ask=@reap.x$$
    start 1 other setpriv --reuid 65533 --regid 65533 --clear-groups "$programs/asked_reaps"
    answers "@reap.x$$"
    says 1 "process $pid is user 65533's" setpriv --reuid 1 --clear-groups "$ask" "@reap.x$$" tree
    stop
    options=ask=$tmp/socket
    start 1 path "$programs/asked_reaps"
    answers "$tmp/socket"
    says 1 "this user may not ask $tmp/socket" other "$ask" "$tmp/socket" tree
    stop
    if [ "$(echo $(cat /proc/self/uid_map))" = "0 0 4294967295" ]; then # nobody is one user here
        nobody="setpriv --reuid $(cat /proc/sys/kernel/overflowuid) --clear-groups"
        options=ask=@reap.%p
        start 1 nobody $nobody "$programs/asked_reaps"
        answers "$pid"
        $nobody "$ask" "$pid" tree >"$tmp/out" || wrong "nobody cannot ask its own process"
        stop
    fi
fi

# Users without a number of their own have the same one in their namespace, as the process has for them.
if ! unshare -U "$ask" -h >/dev/null 2>&1; then
    echo "skipped: no user namespaces, or no unshare (util-linux): users without a number"
else
    strange="is of some user who has no number of its own here"
    options=ask=@reap.%p
    start 1 mine "$programs/asked_reaps"
    answers "$pid"
    says 1 "this user may not ask $pid: process $pid $strange" unshare -U "$ask" "$pid" tree
    unshare -Ur "$ask" "$pid" tree >"$tmp/out" || wrong "root of a namespace cannot ask"
    stop
    start 1 strange unshare -U "$programs/asked_reaps"
    refuses() { "$ask" "$pid" help 2>&1 | grep -q '^reap-ask: reap: '; }
    within 60 refuses
    says 1 "reap: only root may ask process $pid: its user has no number of its own here" "$ask" "$pid" tree
    stop
fi

# --- the option -------------------------------------------------------------------------------
REAP_OPTIONS=help "$programs/asked_reaps" </dev/null 2>&1 >/dev/null | grep -q '^reap:   ask=ADDRESS (none): ' ||
    wrong "REAP_OPTIONS=help has no line for it"
exit $bad
