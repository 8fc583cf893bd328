#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# `make mutants` goes on where it stopped: of a tree with one file, one test and six faults it keeps what came of each,
# when it is killed in the midst, too, and tries again those alone of which the lines, the file or the test have changed.
. "${srcdir:-.}/tests/support/script.sh"
need python3
cd "$tmp" || exit 99
mkdir -p src/lib src/tests/unit src/tests/mutants build
list=src/tests/mutants/toy.txt
touch src/tests/README.md count
for n in 1 2 3 4 5 6; do
    echo "int v$n = $n;" >>src/lib/toy.c
    printf '# Fault %s\nat: lib/toy.c; states: lib/toy.c; tests: sees.sh\n- int v%s = %s;\n+ int v%s = 0;\n\n' $n $n $n $n >>$list
done
# While there is a file `hold`, the test stands still when it runs for the fourth time: without a fault, and with the third.
cat >src/tests/unit/sees.sh <<END
echo >>$tmp/count
while [ -e $tmp/hold ] && [ \$(wc -l <$tmp/count) -ge 4 ]; do sleep 0.05; done
for n in 1 2 3 4 5; do grep -q "^int v\$n = \$n;" ../source/lib/toy.c || exit 1; done
END
cat >src/configure <<'END'
#!/bin/sh
printf '#!/bin/sh\necho --toy\n' >config.status && chmod 755 config.status
printf 'tests/%%.log:\n\t@mkdir -p $(@D); echo >$@; sh ../source/tests/$*.sh && echo ":test-result: PASS" >$(@:log=trs) || echo ":test-result: FAIL" >$(@:log=trs)\ntests/%%:\n\t@:\n' >Makefile
END
chmod 755 src/configure
(cd build && ../src/configure) || exit 99

begin() { exec python3 -B "$srcdir/tests/tools/mutants.py" --source src --build build --results results --jobs 1 "$@" $list; }
# tries N LINE [ARGUMENT...]: it runs the test so many times, and its last line is this one.
tries() {
    times=$1 line=$2 before=$(wc -l <count)
    shift 2
    (begin "$@") >said 2>&1
    status=$?
    [ $(($(wc -l <count) - before)) = "$times" ] || wrong "the test runs $(($(wc -l <count) - before)) times and not $times"
    tail -n 1 said | grep -qxF "$line" || wrong "its last line is not '$line'"
    grep -q 'without any fault' said && wrong "a fault was left in the copy"
    [ "$(grep -cvE '^[0-9a-f]{20}	(seen|survived)	Fault [0-9]	[^	]+$' results)" = "${torn:-0}" ] || wrong "a line of its results is not whole: $(cat results)"
}

# Killed, and asked to end: then it counts.
# until_held FILE: a run in the background, until it stands still.
until_held() {
    : >count
    touch hold
    (begin) >"$1" 2>&1 &
    within 30 has 4 count '' || { cat "$1"; wrong "it does not come to its fourth test"; }
}
until_held first
kill -9 $!
wait $! 2>/dev/null
[ "$(grep -c seen results)" = 2 ] || wrong "not two results are kept"
until_held second
(begin) >said 2>&1 && wrong "two are at work in one directory"
grep -q 'another run is at work' said || wrong "not told that another one is at work"
kill $!
wait $!
[ $? = 130 ] || wrong "asked to end, it ends with another status"
tail -n 1 second | grep -qx "6 faults: 4 seen, 0 unseen, 0 do not apply, 2 left; 2 were known" || { cat second; wrong "no count at its end"; }
rm hold

tries 3 "6 faults: 5 seen, 1 unseen, 0 do not apply, 0 left; 4 were known"
[ $status = 1 ] && grep -q 'survived *Fault 6' said || wrong "one that nothing sees is not told"
tries 0 "6 faults: 5 seen, 1 unseen, 0 do not apply, 0 left; 6 were known"
[ $status = 1 ] && grep -q 'survived *Fault 6' said || wrong "one that nothing sees is not told again"
# What makes a result stale: the test, the fault, the file. And what one asks for.
sed -i 's/3 4 5/3 4 5 6/' src/tests/unit/sees.sh
tries 7 "6 faults: 6 seen, 0 unseen, 0 do not apply, 0 left; 0 were known"
[ $status = 0 ] || wrong "all are seen, and the status is $status"
sed -i 's/v3 = 0/v3 = 9/' $list
tries 2 "6 faults: 6 seen, 0 unseen, 0 do not apply, 0 left; 5 were known"
tries 2 "1 faults: 1 seen, 0 unseen, 0 do not apply, 0 left; 0 were known" --only 'Fault 3' --fresh
# A line that a full disk has cut is no result, and no part of the next one.
sed -i '$d' results && truncate -s -12 results
torn=1
tries 2 "6 faults: 6 seen, 0 unseen, 0 do not apply, 0 left; 5 were known"
tries 0 "6 faults: 6 seen, 0 unseen, 0 do not apply, 0 left; 6 were known"
torn=0
rm results
echo >>src/lib/toy.c
tries 7 "6 faults: 6 seen, 0 unseen, 0 do not apply, 0 left; 0 were known"
echo >>src/lib/toy.c
tries 7 "6 faults: 6 seen, 0 unseen, 0 do not apply, 0 left; 0 were known"
exit $bad
