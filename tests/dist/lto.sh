#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# CFLAGS with -flto: configure leaves it out in one line, libreap.a is machine code after make install, and a program
# that is linked with -flto may have names of its own like those within. With clang as well, where it is.
. "${srcdir:-.}/tests/support/script.sh"
[ ! -e "$srcdir/config.status" ] || { echo "skipped: the source directory itself is configured"; exit 77; }
unset MAKEFLAGS MFLAGS MAKELEVEL
CONFIG_SHELL=/bin/sh # libtool runs in it, which takes half the time in dash of what it takes in bash
export CONFIG_SHELL

cat >"$tmp/program.c" <<'C'
#include <reap.h>
#include <stdio.h>
int cpu = 1, options = 2, heap_rows = 3, ambient_reap = 4;
int main(void)
{
    void *reap;
    reapCreate(&reap, NULL);
    char *text = reapPrintf(&reap, "%d", cpu + options + heap_rows + ambient_reap);
    puts(text);
    reapDestroy(&reap);
    return cpu != 1 || options != 2;
}
C

# with NAME COMPILER: all of it, in a directory of its own
with() {
    build=$tmp/$1 compiler=$2
    mkdir "$build"
    (cd "$build" && "$srcdir/configure" -C --disable-dependency-tracking --disable-probes --disable-shared \
        CC="$compiler" CXX=false CFLAGS='-O0 -flto' PKG_CONFIG_LIBDIR=/nowhere \
        ac_cv_path_APXS=no ac_cv_header_mimalloc_h=no) >"$tmp/log" 2>&1 ||
        { wrong "$1: configure"; tail -n 5 "$tmp/log"; return; }
    grep -q '^configure: -flto of CFLAGS is left out' "$tmp/log" || wrong "$1: configure does not say that it leaves -flto out"
    make -s -C "$build" -j2 libreap.la >"$tmp/log" 2>&1 || { wrong "$1: make"; tail -n 5 "$tmp/log"; return; }
    make -s -C "$build" lib_LTLIBRARIES=libreap.la install-libLTLIBRARIES install-exec-hook DESTDIR="$tmp/root-$1" \
        >"$tmp/log" 2>&1 || { wrong "$1: make install"; tail -n 5 "$tmp/log"; return; }
    # shellcheck disable=SC2086  # flags are words
    $compiler -O2 -flto -I"$srcdir/include" "$tmp/program.c" "$tmp/root-$1/usr/local/lib/libreap.a" -o "$tmp/program" \
        >"$tmp/log" 2>&1 || { wrong "$1: a program with -flto"; tail -n 5 "$tmp/log"; return; }
    [ "$("$tmp/program")" = 10 ] || wrong "$1: the program answers otherwise"
}

# A compiler that cannot link with -flto at all is not what is looked at.
can_link() { echo 'int main(void) { return 0; }' | $1 -flto -x c - -o "$tmp/can" >/dev/null 2>&1; }
tried=0
for name in cc clang; do
    compiler=$name
    [ $name = clang ] || compiler=$CC
    ! lacks "$compiler" || continue
    can_link "$compiler" || { echo "skipped: $compiler does not link with -flto here"; continue; }
    with $name "$compiler"
    tried=$((tried + 1))
done
[ $tried != 0 ] || { echo "skipped: no compiler links with -flto here"; exit 77; }
exit $bad
