#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What doc/examples answer. (example_http.sh has the server.)
. "${srcdir:-.}/tests/support/script.sh"
examples=${top_builddir:-.}/doc/examples

# --- phases --------------------------------------------------------------------------------------
# says PROGRAM EXPECTED...: its code, with blanks for newlines.
says() {
    program=$1
    shift
    code=$("$examples/phases" "$program" 2>"$tmp/phases" | tr -s '\n ' ' ')
    [ "$code" = " $*${*:+ }" ] || [ "$code$*" = "" ] || wrong "'$program' is '$code' in the place of '$*'"
}
fails() {
    "$examples/phases" "$@" >"$tmp/out" 2>"$tmp/err" && wrong "phases takes '$1'"
    [ ! -s "$tmp/out" ] || wrong "phases fails, and gives code for '$1'"
    tail -n 1 "$tmp/err" | sed 's/^phases: //'
}
same() { [ "$1" = "$2" ] || wrong "'$1' in the place of '$2'"; }
says '2 + 3 * 4;' push 14
says '(2 + 3) * 4 - 6 / 3;' push 18
says '2 - 3 - 4;' push -5
says '1 / 0;' push 1 push 0 apply /
says 'x; 7;' push x push 7
says 'y = x + (1 + 1);' define y push x push 2 apply + end y
says 'f(x);' push x call f
says 'f(x) = x * (1 + 2);' define f store x push x push 3 apply '*' end f
says 'f(x + 1);f(2 * 3);' push x push 1 apply + call f push 6 call f
says 'f(x)+1; f(y)=y;' push x call f push 1 apply + define f store y push y end f
says ''
says 'a = 1;'" $(i=0; while [ $i -lt 300 ]; do echo "f(b);"; i=$((i + 1)); done)" define a push 1 end a \
    $(i=0; while [ $i -lt 300 ]; do echo push b call f; i=$((i + 1)); done)
# When the tokens end the tree has two nodes for each statement; those of 300 definitions that were none are gone.
sed -n '1,/^  tree/p' "$tmp/phases" | grep -q '^  tree .*: 602 objects' || wrong "the tree: $(cat "$tmp/phases")"
same "$(fails '1 +;')" 'expected a value'
same "$(fails '(1')" 'expected )'
same "$(fails 'f(1) = 2;')" 'expected ;'
same "$(fails "$(head -c 100000 /dev/zero | tr '\0' '(')")" 'nested too deeply'
same "$(fails "$(seq 20000 | tr '\n' ';')" 100000)" 'no memory'

# --- sandbox -------------------------------------------------------------------------------------
plugin() { "$examples/sandbox" "$examples/.libs/plugin_$1.so" 2>&1 | sed 's,^.*/plugin_,,'; }
ran() { plugin "$1" >"$tmp/$1"; printf '%s.so: %s\n%s.so: 1000 calls more have cost the process 0 bytes\n' "$1" "$2" "$1" |
    diff - "$tmp/$1" || wrong "the plug-in $1: (< expected, > said)"; }
ran good 'A PLUG-IN AT WORK; left 0 bytes, was refused 0'
ran leaking '17 letters; left 17136 bytes, was refused 0'
plugin greedy >"$tmp/greedy"
grep -qE 'Cannot allocate memory; left 0 bytes, was refused [1-9][0-9]{6}$' "$tmp/greedy" || wrong "greedy: $(cat "$tmp/greedy")"
grep -q '1000 calls more have cost the process 0 bytes' "$tmp/greedy" || wrong "greedy: $(cat "$tmp/greedy")"
"$examples/sandbox" "$examples/.libs/plugin_greedy.so" "$examples/none.so" "$examples/.libs/plugin_good.so" >"$tmp/all" 2>&1 &&
    wrong "a plug-in that is not there is no failure"
grep -q 'A PLUG-IN AT WORK' "$tmp/all" || wrong "after those that fail: $(cat "$tmp/all")"

# --- query ---------------------------------------------------------------------------------------
# A limit is one on memory: with one thread, four and eight, which grow their tables until it is met.
for threads in 1 4 8; do
    "$examples/query" $threads 256 >"$tmp/query" || wrong "query $threads ends with $?"
    printf 'few: Success; many: Cannot allocate memory; again: Success\nagain: %d groups of 1000000 rows\n' $((threads * 100)) |
        diff - "$tmp/query" >"$tmp/diff"
    grep -q '^<' "$tmp/diff" && wrong "query $threads: $(cat "$tmp/query")"
    tail -n 1 "$tmp/query"
    awk '$7 == "second;" { said = 1; bad = $8 < 128 || $13 > 1.15 || $17 > 16 } END { exit bad || !said }' "$tmp/query" ||
        wrong "query $threads has more memory than its limit, or gives it not back"
done

# --- huge pages ----------------------------------------------------------------------------------
"$examples/huge_pages" >"$tmp/huge" || wrong "huge_pages ends with $?"
chunks=$(sed -n 's/^\([0-9]*\) chunks.*/\1/p' "$tmp/huge")
by_kind=$(sed -n 's/^[0-9]* chunks, [0-9]* bytes: \([0-9]*\) of .*, \([0-9]*\) of .*, \([0-9]*\) of neither$/\1 + \2 + \3/p' "$tmp/huge")
# shellcheck disable=SC2004 # dash computes an expression only where it is written out
[ "${chunks:-0}" -ge 19 ] && [ "$(($by_kind))" = "$chunks" ] || wrong "huge_pages: $(cat "$tmp/huge")"
cat "$tmp/huge"
exit $bad
