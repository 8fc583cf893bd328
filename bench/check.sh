#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The instructions of the hot paths are no more than those of bench/steps.expected, by 3 %, and by none in calls of less
# than 50: malloc and free, reapMalloc and reapFree as a region and as a heap, plain, shared and limited, the life of a
# reap, and APR's pools on reaps.
# check.sh record writes that file, or the one that STEPS_EXPECTED names. check.sh show prints all counts, with the atomic
# instructions among them, and those of the mallocs that are here.
#
# Counts of one compiler with its flags repeat exactly; others have others. So the file begins with what they depend on,
# and where that differs this is skipped, and says what differs. Of memset and memcpy libc has one for each kind of CPU:
# here it takes the plainest, which every CPU has. calloc and realloc, which do little else, are left out.
set -u
srcdir=${srcdir:-.}
build=$(cd "${top_builddir:-.}" && pwd)
expected=${STEPS_EXPECTED:-$srcdir/bench/steps.expected}
most=103 # of 100
short=50 # instructions
unset REAP_OPTIONS LD_PRELOAD
GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX,-AVX2,-AVX512F,-AVX512VL,-AVX512BW,-ERMS,-FSRM
export GLIBC_TUNABLES

skip() { echo "skipped: $*"; exit 77; }

setting() { sed -n "s/^$1 = *//p" "$build/Makefile"; }

# The compiler, but for the name that it was called by; the flags and options that change code.
key() {
    compiler=$(setting CC)
    # shellcheck disable=SC2086  # it may be two words, as ccache gcc
    echo "compiler $($compiler --version | sed '1!d; s/^[^ ]* //') for $($compiler -dumpmachine)"
    # shellcheck disable=SC2046  # all on one line
    echo "flags" $(for name in CPPFLAGS REAP_CFLAGS CFLAGS LDFLAGS; do setting "$name"; done | tr ' ' '\n' |
        grep -vE '^-(g[0-9a-z]*|W([^l]|l[^,]).*|f(file|debug|macro)-prefix-map=.*|std=.*|pipe)?$')
    echo "options" "$(sed -n 's/^#define \(REAP_[A-Z]*\) .*/\1/p' "$build/config.h" | sort | xargs)"
}

# A line a call: the instructions, and its name.
counts() {
    "$build/bench/steps" "$build/.libs/libreap-malloc.so" >"$tmp/mallocs" || return
    "$build/bench/steps_reap" >"$tmp/reaps" || return
    awk '{ print $2, "malloc " $1; print $4, "free " $1 }' "$tmp/mallocs"
    awk '!/^library / && !/reapCalloc|reapRealloc/ { instructions = $1; $1 = $2 = ""; sub(/^ */, ""); print instructions, $0 }' \
        "$tmp/reaps"
    [ -x "$build/bench/steps_apr" ] && [ -e "$build/.libs/libreap-apr.so" ] || return 0
    "$build/bench/steps_apr" "$build/.libs/libreap.so.0:$build/.libs/libreap-apr.so" >"$tmp/apr" || return
    awk '{ instructions = $1; $1 = $2 = ""; sub(/^ */, ""); print instructions, $0 }' "$tmp/apr"
}

tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
setarch -R true 2>/dev/null || skip "addresses are random here, and some counts with them"
key >"$tmp/key"
REAP_OPTIONS=stats=1 LD_PRELOAD=$build/.libs/libreap-malloc.so /bin/true 2>&1 | grep -q 'path rseq' ||
    skip "no restartable sequences here"
if [ "${1:-}" = show ]; then
    for library in "$build/.libs/libreap-malloc.so" '' $(/sbin/ldconfig -p | grep -oE '/.*lib(jemalloc.so.2|mimalloc.so.2|tcmalloc_minimal.so.4|tbbmalloc_proxy.so.2)$'); do
        echo "${library:-glibc}: bytes; instructions of malloc, atomic ones; of free, atomic ones"
        "$build/bench/steps" "$library" || exit
    done
    echo "reaps: instructions, atomic ones, call"
    exec "$build/bench/steps_reap"
fi
if [ "${1:-}" != record ]; then
    sed -n '/^[a-z]/p' "$expected" >"$tmp/recorded_key"
    if ! cmp -s "$tmp/key" "$tmp/recorded_key"; then
        diff "$tmp/recorded_key" "$tmp/key" | sed -n 's/^</recorded with/p; s/^>/here/p'
        skip "instructions were not counted with this compiler and flags; make bench-record counts them"
    fi
fi
counts >"$tmp/counts"
status=$?
[ $status != 77 ] || skip "no single steps here"
[ $status = 0 ] || { echo "steps: status $status"; exit 1; }

if [ "${1:-}" = record ]; then
    { echo "# Instructions of the hot paths: bench/check.sh compares, make bench-record writes."
        cat "$tmp/key" "$tmp/counts"; } >"$expected" || exit 1
    echo "$(wc -l <"$tmp/counts") calls in $expected"
    exit 0
fi

# Of a call that nobody recorded, and of one that is gone, the record has to be made anew, too.
sed -n '/^[0-9]/p' "$expected" >"$tmp/recorded"
awk -v most="$most" -v short="$short" '
    { instructions = $1; call = $0; sub(/^[0-9]+ /, "", call) }
    NR == FNR { recorded[call] = instructions; n++; next }
    !(call in recorded) { print call ": " instructions " instructions, and no record"; bad = 1; next }
    instructions * 100 > recorded[call] * (recorded[call] < short ? 100 : most) {
        print call ": " instructions " instructions, recorded " recorded[call]
        bad = 1
    }
    instructions * most < recorded[call] * 100 { fewer = fewer "; " call ": " instructions " of " recorded[call] }
    { seen++; delete recorded[call] }
    END {
        for (call in recorded)
            if (call !~ /^apr_/) { print call ": recorded, and not counted"; bad = 1 }
        if (n == 0 || seen == 0) { print "nothing was compared"; bad = 1 }
        if (fewer) print "fewer than recorded (make bench-record)" fewer
        if (bad) print "a hot path has more instructions than recorded; make bench-record, if the program gains by that"
        else print seen " calls have the instructions that were recorded"
        exit bad
    }' "$tmp/recorded" "$tmp/counts"
