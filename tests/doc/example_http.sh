#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# doc/examples/http_server: right answers, both limits refuse and leave room for others, a client that goes
# away leaves nothing, and after a stop in order nothing is held.
. "${srcdir:-.}/tests/support/script.sh"
server=${top_builddir:-.}/doc/examples/http_server
need_file "$server" http_server
need curl
pid=
at_exit='[ -z "$pid" ] || kill -9 $pid 2>/dev/null; touch "$tmp/go"; wait'

"$server" 0 >"$tmp/said" 2>&1 &
pid=$!
within 60 grep -q '^listening' "$tmp/said" || { cat "$tmp/said"; exit 1; }
url=http://127.0.0.1:$(sed -n 's/^listening on port //p' "$tmp/said")

ask() { curl -s -S -m 60 --noproxy '*' -w '%{http_code} ' "$@" 2>&1 | tr '\n' ' '; }
# answers EXPECTED ARGUMENTS...: what curl gets, and the status.
answers() {
    expected=$1
    shift
    answer=$(ask "$@")
    [ "$answer" = "$expected " ] || wrong "$answer in the place of $expected: $*"
}

answers '7 words, 4 distinct 200' --data-binary 'a b c a  b
a d' "$url"
answers '0 words, 0 distinct 200' --data-binary '  ' "$url"
answers 'POST a text 404' "$url/nowhere"
seq 20000 >"$tmp/text" # 109 KB, and as a table of words 256 KB more
answers 'refused 413' --data-binary "@$tmp/text" "$url"
head -c 250000 /dev/zero | tr '\0' x >"$tmp/word"
answers '1 words, 1 distinct 200' --data-binary "@$tmp/word" "$url"
cat "$tmp/word" "$tmp/word" >"$tmp/words"
answers 'refused 413' --data-binary "@$tmp/words" "$url"
for i in 1 2 3 4 5 6 7 8 9 10; do answers "$((i * 100)) words, $((i * 100)) distinct 200" --data-binary "$(seq $((i * 100)))" "$url"; done
ask "$url/status" >"$tmp/status"
grep -q '^2 refused .*server.* request.* receiving.* 200 $' "$tmp/status" || wrong "status: $(cat "$tmp/status")"

# A client that goes away in the middle.
(cat "$tmp/word"; sleep 2) | curl -s -m 1 --noproxy '*' -T - "$url" >/dev/null

# Eight at once, all of them halfway: together they want twice what the server may hold.
for i in 1 2 3 4 5 6 7 8; do
    (cat "$tmp/word"; within 60 test -e "$tmp/go") | ask -T - "$url" >"$tmp/answer.$i" &
    clients="$clients $!"
done
some_refused() { ask "$url/status" | grep -qE '^([3-9]|1[0-9]) refused .* 200 $'; }
within 30 some_refused || wrong "nobody is refused: $(ask "$url/status")"
touch "$tmp/go"
wait $clients
count() { cat "$tmp"/answer.* | tr ' ' '\n' | grep -c "^$1$"; }
[ "$(count 503)" -ge 1 ] && [ "$(count 200)" -ge 1 ] && [ $(($(count 503) + $(count 200))) = 8 ] ||
    wrong "eight at once: $(cat "$tmp"/answer.*)"
answers '3 words, 2 distinct 200' --data-binary 'as good as' "$url"

kill -TERM $pid
wait $pid || wrong "the server ends with $?"
pid=
grep -q '; 0 requests and 0 bytes left$' "$tmp/said" || wrong "at the end: $(cat "$tmp/said")"
[ "$(wc -l <"$tmp/said")" = 2 ] || wrong "the server says more: $(cat "$tmp/said")"
cat "$tmp/status" "$tmp/said"
exit $bad
