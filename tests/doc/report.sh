#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The report (bench/report.py): its figures, results and page by made-up ones (report_parts.py); and a run of it on a
# program that does nothing, with peers that crash and hang, which is killed, interrupted and goes on.
. "${srcdir:-.}/tests/support/script.sh"
need python3
told=$(python3 "$srcdir/bench/report.py" --help 2>&1 >/dev/null) || case $told in "report: no "*) skip "${told#report: }" ;; esac
report= at_exit='[ -z "$report" ] || kill -9 "$report" 2>/dev/null'

# valid PAGE: HTML without an error or a warning; what has no tidy here is looked at elsewhere
valid() {
    ! lacks tidy "$1 as HTML" || return
    tidy -q -e "$1" >"$tmp/tidy" 2>&1 || { cat "$tmp/tidy"; wrong "${1##*/} is not valid"; }
}

mkdir -p "$tmp/parts" "$tmp/build/bench" "$tmp/build/.libs"
python3 "$srcdir/tests/doc/report_parts.py" "$srcdir/bench" "$tmp/parts" || bad=1
valid "$tmp/parts/report.html"
valid "$tmp/parts/empty.html"

# What is measured is a time by the name of the malloc; bench/launch is told its library as its second argument.
cat >"$tmp/build/bench/launch" <<'END'
#!/bin/sh
case $2 in
    *crash*) kill -SEGV $$ ;;
    *hang*) sleep 60 ;;
    *slow*) ns=30 ;;
    *reap*) ns=10 ;;
    *) ns=20 ;;
esac
[ ! -e "$0.slowly" ] || sleep 0.1
printf '%s000 1000\nsum=5\n' "$ns" >"$1"
echo "1024 $ns 0 7"
END
echo : >"$tmp/build/bench/threads"
chmod +x "$tmp/build/bench/launch" "$tmp/build/bench/threads"
for name in libreap-malloc crash hang slow; do echo "$name" >"$tmp/build/.libs/$name.so"; done
# What is started in the background is the report itself.
measure() {
    exec python3 "$srcdir/bench/report.py" --build "$tmp/build" --quick --suites mallocs --workloads pairs --minutes 0.2 --patience 0.3 \
        --with "crash=$tmp/build/.libs/crash.so" --with "hang=$tmp/build/.libs/hang.so" --with "slow=$tmp/build/.libs/slow.so" >"$tmp/told" 2>&1
}
kept() { cat "$tmp"/build/bench/report-results/mallocs/*.json 2>/dev/null | grep -o '"of"' | wc -l; }
kept_are() { [ "$(kept)" -ge "$1" ]; }
# begun N: waits until N runs are kept
begun() { within 60 kept_are "$1" || wrong "nothing is measured"; }

# Killed in the midst, then interrupted, then to its end: each time it goes on with what is there.
: >"$tmp/build/bench/launch.slowly"
measure &
report=$!
begun 3
kill -9 $report
wait $report 2>/dev/null
first=$(kept)
measure &
report=$!
begun $((first + 3))
kill -TERM $report # as SIGINT, which a shell lets its background ignore
wait $report
[ $? = 130 ] || { cat "$tmp/told"; wrong "an interrupt does not end it as such"; }
report=
second=$(kept)
[ "$second" -ge $((first + 3)) ] || wrong "runs are lost: $first, then $second"
grep -q 'interrupted: the next run goes on from here' "$tmp/told" || wrong "an interrupt is not told"
grep -q 'It was interrupted' "$tmp/build/bench/report.html" || wrong "the page does not say that it was interrupted"
valid "$tmp/build/bench/report.html"

rm "$tmp/build/bench/launch.slowly"
printf '{"format": 1, "suite": "mallocs", "ca' >"$tmp/build/bench/report-results/mallocs/pairs.077.json"
(measure) || wrong "the report fails"
cat "$tmp/told"
grep -q 'not used: 1 results that are damaged or of another format' "$tmp/told" || wrong "a truncated result is not told"
[ "$(kept)" -gt "$second" ] || wrong "it did not go on"
grep -qE '^Small loops: time +1 +0\.50 +1 +0 +0 +0 +0\.50' "$tmp/told" || wrong "the table does not say that ours takes half the time"
grep -q 'pairs on crash: killed by SIGSEGV' "$tmp/told" || wrong "a crash is not told"
grep -q 'pairs on hang: did not end within' "$tmp/told" || wrong "a hang is not told"
valid "$tmp/build/bench/report.html"
for word in '>crash<' '>hang<' 'Small loops of one thread' 'reap is first: 50% less time than'; do
    grep -q -- "$word" "$tmp/build/bench/report.html" || wrong "the page does not have $word"
done
third=$(kept)

# Another build of the library is measured anew, and nothing of the first one is thrown away.
echo "libreap-malloc, changed" >"$tmp/build/.libs/libreap-malloc.so"
(measure) || wrong "a report of another build fails"
grep -q 'rounds of other builds' "$tmp/told" || wrong "another build is not told"
[ "$(kept)" -gt "$third" ] || wrong "another build is not measured anew"

# Without what draws it: a line.
echo 'raise ModuleNotFoundError("no", name="matplotlib")' >"$tmp/matplotlib.py"
told=$(PYTHONPATH=$tmp python3 "$srcdir/bench/report.py" --help 2>&1) && wrong "it does without matplotlib"
[ "$told" = "report: no matplotlib (Debian: python3-matplotlib)" ] || wrong "without matplotlib it says: $told"

# No place for results: a line, and status 1.
rm -rf "$tmp/build/bench/report-results"
: >"$tmp/build/bench/report-results"
(measure) && wrong "no place for results is no error"
grep -q '^report: cannot write .*report-results' "$tmp/told" || { cat "$tmp/told"; wrong "no place for results is not told"; }
grep -q Traceback "$tmp/told" && wrong "no place for results is a traceback"
exit $bad
