#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# `make bench-steps --beside` counts the library of each build: a libreap whose calls do a hundred instructions more,
# and then what the real one does, has that much more than the real one, in the calls that reach it, and is told so.
# The inline reapMalloc does not reach it.
. "${srcdir:-.}/tests/support/bench_lib.sh"
"$build/bench/steps_reap" >/dev/null
status=$?
[ $status != 77 ] || { echo "skipped: calls cannot be stepped through here"; exit 77; }
[ $status = 0 ] || { echo "steps_reap: status $status"; exit 1; }

mkdir "$tmp/slow" "$tmp/slow/.libs"
ln -s "$build/bench" "$tmp/slow/bench"
ln -s "$build/.libs/libreap-malloc.so" "$tmp/slow/.libs/libreap-malloc.so"
ln -s "$build" "$tmp/real"
cat >"$tmp/slow.c" <<'END'
#include <dlfcn.h>
#include <stdlib.h>
#define REAP_NO_INLINE
#include "reap.h"
static void *real(const char *name)
{
    static void *library;
    if (!library) library = dlopen(REAL, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    void *function = library ? dlsym(library, name) : NULL;
    return function ? function : (abort(), NULL);
}
#define SLOW(type, name, parameters, arguments) \
    type name parameters                        \
    {                                           \
        static type(*call) parameters;          \
        __asm__ volatile(".rept 100; nop; .endr"); \
        if (!call) *(void **)&call = real(#name); \
        return call arguments;                  \
    }
SLOW(void, reapCreate, (void **r, void **p), (r, p))
SLOW(int, reapCreateWith, (void **r, void **p, const struct reap_options *o), (r, p, o))
SLOW(void, reapFreeAll, (void **r), (r))
SLOW(void, reapDestroy, (void **r), (r))
SLOW(void *, reapMalloc, (void **r, size_t n), (r, n))
SLOW(void *, reapCalloc, (void **r, size_t n, size_t s), (r, n, s))
SLOW(void *, reapRealloc, (void **r, void *o, size_t n), (r, o, n))
SLOW(void, reapFree, (void **r, void *o), (r, o))
SLOW(const char *, reapVersion, (void), ())
END
${CC:-cc} -shared -fPIC -O2 -w -I"$srcdir/include" -DREAL="\"$build/.libs/libreap.so.0\"" -Wl,-soname,libreap.so.0 \
    -o "$tmp/slow/.libs/libreap.so.0" "$tmp/slow.c" -ldl || exit 99

python3 "$srcdir/bench/run.py" --build "$tmp/slow" --beside "$tmp/real" steps >"$tmp/told" 2>"$tmp/errors"
status=$?
cat "$tmp/told" "$tmp/errors"
[ $status = 0 ] || exit 1

awk '
    /^reap.*[+-][0-9]+$/ {
        calls++
        more = $NF + 0
        # A child is made, destroyed, and below a limit asked for its first object, by a call; a bump needs none.
        wanted = /^reapCreate.*, limited/ ? 3 : /^reapCreate/ ? 2 : /^reapMalloc [0-9]+(, limited)? +[0-9]/ ? 0 : 1
        if (more < 100 * wanted || more > 110 * wanted) { print "a difference that is not " wanted " calls: " $0; bad = 1 }
    }
    /^of [0-9]+ calls with more instructions than real: / { lists++; if (/reapFree, in the middle; /) named++ }
    /^(8|64|4000) .*\+0 \+0$/ { mallocs++ }
    END {
        if (calls < 30 || lists != 2 || named != 1 || mallocs != 3) { print "rows are missing"; bad = 1 }
        exit bad
    }' "$tmp/told"
