#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The profile's quick way to find stacks finds those of libgcc's unwinder, frame by frame, at each malloc: of frames of many
# shapes, compiled in many ways, in threads, signals and contexts, of code that comes where other code was, and of programs.
. "${srcdir:-.}/tests/support/script.sh"
library=$build/tests/profile/.libs/same_stacks.so shapes=$srcdir/tests/profile/shapes
need_file "$library" same_stacks
case $(uname -m) in x86_64) ;; *) skip "rows are for x86-64" ;; esac
SAME_STACKS=$tmp/figures
export SAME_STACKS

# compare LEAST PROGRAM...: that many per cent of its stacks at least are found quickly, and all of them are right.
compare() {
    least=$1
    shift
    : >"$SAME_STACKS"
    LD_PRELOAD=$library "$@" >"$tmp/out" 2>"$tmp/said" </dev/null || wrong "$*: status $?"
    sed "s/^/$least% asked: /" "$SAME_STACKS"
    awk -v least="$least" '{ all += $2; rows += $3 } END { exit !(all && rows >= all * least / 100) }' "$SAME_STACKS" ||
        wrong "$*: too few stacks by rows: $(cat "$SAME_STACKS")"
}

# shapes COMPILER COMPILER-OF-C++ FLAG...
shapes() {
    cc=$1 cxx=$2
    shift 2
    $cc -D_GNU_SOURCE "$@" -c -o "$tmp/c.o" "$shapes.c" && $cxx "$@" -c -o "$tmp/cc.o" "$shapes.cc" &&
        $cxx -o "$tmp/shapes" "$tmp/c.o" "$tmp/cc.o" -lpthread || wrong "no program: $cc $*"
    for words in 4 12; do
        $cc "$@" -DWORDS=$words -shared -fPIC -o "$tmp/module$words.so" "$shapes.c" || wrong "no module: $cc $*"
    done
    compare 50 "$tmp/shapes" "$tmp/module4.so" "$tmp/module12.so"
    grep -qx '[1-9][0-9]* 0' "$tmp/out" || wrong "$cc $*: modules at the same place, and those with other rows: $(cat "$tmp/out")"
}
for flags in -O0 -O2 '-O3 -fno-omit-frame-pointer' '-Os -fomit-frame-pointer -fno-plt' '-O3 -mno-red-zone -mpreferred-stack-boundary=5'; do
    shapes "${CC:-cc}" "${CXX:-c++}" $flags
done
if ! lacks clang "what clang compiles" && ! lacks clang++ "what clang compiles"; then
    for flags in -O0 '-O2 -fno-omit-frame-pointer'; do shapes clang clang++ $flags; done
fi

for program in python3 perl git; do
    [ -x /usr/bin/$program ] >/dev/null || continue
    case $program in
        python3) compare 90 /usr/bin/python3 -B -c 'import json, re, decimal; json.dumps(json.loads("[1, [2, {}]]" )); re.compile("(a|b)*c").match("abc")' ;;
        perl) compare 90 perl -e '@a = map { $_ x 3 } 1 .. 2000; print sort { $a cmp $b } @a' ;;
        git) compare 90 git --version ;;
    esac
done
exit $bad
