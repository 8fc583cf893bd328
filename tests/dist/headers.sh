#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The public headers in each dialect of C: no warning, and one error where the dialect is too old. And what they say
# of a call's result keeps no sanitizer from its work.
. "${srcdir:-.}/tests/support/script.sh"
libs=$(cd "${top_builddir:-.}/.libs" && pwd)

cat >"$tmp/calls.c" <<'END'
#include <hoard.h>
#include <reap.h>
#include <reap_ask.h>
int main(void)
{
    void *reap;
    hoard_free(hoard_malloc(10));
    reapCreate(&reap, NULL);
    reapFree(&reap, reapMalloc(&reap, 10));
    reapDestroy(&reap);
    return 0;
}
END
cat >"$tmp/late.c" <<'END'
#include <reap.h>
int main(void)
{
    void *reap;
    volatile int sink;
    reapCreate(&reap, NULL);
    int *object = reapMalloc(&reap, sizeof *object);
    *object = 3;
    reapDestroy(&reap);
    sink = *object;
    return sink - 3;
}
END

compilers=${CC:-cc}
lacks clang || compilers="$compilers
clang"
echo "$compilers" >"$tmp/compilers"
while read -r compiler; do
    for level in -O0 -O2; do
        build="$compiler $level -Wall -Wextra -Wdeclaration-after-statement -I$srcdir/include"
        for dialect in gnu89 c99 gnu99 c11 c17 gnu2x; do
            $build -Werror -std=$dialect -c "$tmp/calls.c" -o "$tmp/calls.o" >"$tmp/said" 2>&1 ||
                wrong "$compiler $level $dialect"
        done
        for dialect in c89 iso9899:199409; do
            $build -std=$dialect -c "$tmp/calls.c" -o "$tmp/calls.o" >"$tmp/said" 2>&1 && wrong "$compiler $dialect compiles"
            [ "$(grep -c 'error:' "$tmp/said")" = 1 ] || wrong "$compiler $level $dialect: not one error"
            grep -q 'error: .*reap.h needs C99 or later' "$tmp/said" || wrong "$compiler $level $dialect: not that error"
            grep -q 'warning:' "$tmp/said" && wrong "$compiler $level $dialect: warnings"
        done
        $build -g -fsanitize=address "$tmp/late.c" -o "$tmp/late" "$libs/libreap.so" "-Wl,-rpath,$libs" >"$tmp/said" 2>&1 ||
            { echo "skipped: $compiler has no AddressSanitizer here"; continue; }
        ASAN_OPTIONS=detect_leaks=0 "$tmp/late" >"$tmp/said" 2>&1 && wrong "$compiler $level: no use after destroy found"
        grep -q 'ERROR: AddressSanitizer: heap-use-after-free' "$tmp/said" || wrong "$compiler $level: not as heap-use-after-free"
    done
    echo "$compiler: tried"
done <"$tmp/compilers"
exit $bad
