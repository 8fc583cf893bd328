#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What is no trace, of another version, cut off, or changed: one line that says so, and what is whole is read.
# (inputs.sh changes traces by chance.)
. "${srcdir:-.}/tests/trace/trace_lib.sh"
record good threads ',stacks=4'
analysed "$tmp/good" || { wrong "a good trace is not read"; exit 1; }
all=$(field objects)

# refused WHAT FILE PATTERN: one line, status 1, and nothing on standard output.
refused() {
    "$analyse" "$2" >"$tmp/out" 2>"$tmp/said"
    [ $? = 1 ] && [ ! -s "$tmp/out" ] && [ "$(wc -l <"$tmp/said")" = 1 ] && grep -q "$3" "$tmp/said" ||
        { wrong "$1:"; head "$tmp/said" "$tmp/out"; }
}
: >"$tmp/empty"
head -c 20 "$tmp/good" >"$tmp/short"
seq 10000 >"$tmp/foreign"
{ head -c 8 "$tmp/good"; printf '\000\000\000\000'; tail -c +13 "$tmp/good"; } >"$tmp/older"
{ head -c 8 "$tmp/good"; printf '\002\000\000\000'; tail -c +13 "$tmp/good"; } >"$tmp/newer"
refused "nothing" "$tmp/none" 'No such file or directory'
refused "a directory" "$tmp" 'is no file'
refused "an empty file" "$tmp/empty" 'is no trace'
refused "less than a head" "$tmp/short" 'is no trace'
refused "a file of others" "$tmp/foreign" 'is no trace'
refused "an older trace" "$tmp/older" 'version 0, and this program reads version 1'
refused "a newer trace" "$tmp/newer" 'version 2, and'
"$analyse" -h | grep -q '^usage: ' || wrong "no help by -h"
"$analyse" --places x "$tmp/good" >"$tmp/out" 2>&1
[ $? = 2 ] || wrong "--places x is taken"
"$analyse" --output /dev/full "$tmp/good" 2>"$tmp/said" && wrong "a page that cannot be written is no error"
"$analyse" --uses "$tmp/foreign" "$tmp/good" >"$tmp/out" 2>"$tmp/said" && wrong "uses of others are taken"
grep -q 'no line of an access' "$tmp/said" || wrong "uses of others are not told"

size=$(wc -c <"$tmp/good")
head -c $((size * 2 / 3)) "$tmp/good" >"$tmp/cut"
analysed "$tmp/cut" || wrong "a trace that is cut off is refused"
[ "$(field objects)" -gt 0 ] && [ "$(field objects)" -lt "$all" ] || wrong "of a cut trace $(field objects) of $all objects are read"
[ "$(wc -l <"$tmp/remarks")" = 1 ] && grep -q 'no whole block at byte' "$tmp/remarks" || wrong "a cut is not told"
last=$(tail -c 1 "$tmp/good" | od -An -tu1 | tr -d ' ')
{ head -c $((size - 1)) "$tmp/good"; printf "\\$(printf %o $(((last + 1) % 256)))"; } >"$tmp/changed" # a sum is wrong
analysed "$tmp/changed" || wrong "a changed trace is refused"
grep -q 'damaged' "$tmp/remarks" || wrong "a change is not told"

"$analyse" --page --output "$tmp/page.html" "$tmp/good" || wrong "no page"
grep -q '</svg>' "$tmp/page.html" || wrong "a page without a picture"
! grep -q 'https\{0,1\}:' "$tmp/page.html" || wrong "the page asks the network"
exit $bad
