#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# clang builds all libraries without a warning, also without probes, and the line about a block that was written to after it was freed
# names the block there, too.
. "${srcdir:-.}/tests/support/script.sh"
need clang
[ ! -e "$srcdir/config.status" ] || { echo "skipped: the source directory itself is configured"; exit 77; }
unset MAKEFLAGS MFLAGS MAKELEVEL
CONFIG_SHELL=/bin/sh # libtool runs in it, which takes half the time in dash of what it takes in bash
export CONFIG_SHELL
ulimit -c 0

mkdir "$tmp/build"
cd "$tmp/build" || exit 99
"$srcdir/configure" -C --disable-dependency-tracking --disable-static --disable-probes CC=clang CXX=false CFLAGS=-O1 >"$tmp/log" 2>&1 ||
    { tail -n 5 "$tmp/log"; exit 1; }
make -s -j2 >"$tmp/log" 2>&1 || { tail -n 5 "$tmp/log"; exit 1; }
! grep -A 5 'warning:' "$tmp/log" || wrong "warnings"

cat >"$tmp/written.c" <<'C'
#include <hoard.h>
int main(void)
{
    void *blocks[4];
    for (int i = 0; i < 4; i++) blocks[i] = hoard_malloc(64);
    printf("%p\n", blocks[1]);
    fflush(stdout);
    hoard_free(blocks[1]);
    for (int i = 0; i < 64; i++) ((volatile char *)blocks[1])[i] = 'x';
    return hoard_malloc(64) != NULL;
}
C
clang -w -I"$srcdir/include" "$tmp/written.c" "$tmp/build/.libs/libreap.so" -Wl,-rpath,"$tmp/build/.libs" -o "$tmp/written" ||
    wrong "the program cannot be built"
("$tmp/written" >"$tmp/block" 2>"$tmp/said") 2>/dev/null && wrong "what was written to a freed block is not seen"
grep -q "^reap: malloc($(cat "$tmp/block")): memory was written to after it was freed" "$tmp/said" ||
    wrong "the line does not name $(cat "$tmp/block"): $(cat "$tmp/said")"
exit $bad
