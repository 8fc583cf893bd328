#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Whatever the level of optimization, what libc allocates for itself in an entered reap is not the reap's, and what the
# program allocates is: malloc tells the two apart by its return address, which its slow paths need as well.
. "${srcdir:-.}/tests/support/script.sh"
core=$build/.libs/libcore.a
[ -e "$core" ] || skip "no $core"

cat >"$tmp/program.c" <<'C'
#include <reap.h>
#include <stdio.h>
#include <stdlib.h>
int main(void)
{
    void *reap;
    struct reap_stats stats;
    size_t small[8], n = 0;
    reapCreate(&reap, NULL);
    reapEnter(&reap);
    FILE *file = fopen("/dev/null", "w"); /* allocates some hundred bytes, and a buffer of 4096 with the first output */
    int failed = file == NULL || fputs("x", file) < 0 || reapStats(&reap, &stats) != 0 || stats.live_objects != 0;
    if (failed) printf("libc's own memory: %zu objects of the reap\n", stats.live_objects);
    for (size_t size = 10; size < 1000000; size *= 10) {
        volatile char *object = malloc(size);
        void *owner = NULL;
        if (object == NULL || reapOf((void *)object, &owner) != 0 || owner != reap) small[n++] = size;
    }
    reapLeave();
    for (size_t i = 0; i < n; i++) printf("malloc(%zu) is not the reap's\n", small[i]);
    fclose(file);
    reapDestroy(&reap);
    return failed || n != 0;
}
C
# compiled COMPILER LEVEL: of the library, what is libreap-malloc's own
compiled() {
    # shellcheck disable=SC2086  # a compiler and its flags are words
    $1 -std=gnu17 -D_GNU_SOURCE -DHAVE_CONFIG_H -I"$build" -I"$srcdir/include" -I"$srcdir/lib" $2 -Wall -Werror \
        -ftls-model=initial-exec -fno-strict-aliasing -fexceptions -fno-builtin "$tmp/program.c" \
        "$srcdir/lib/libc/malloc.c" "$srcdir/lib/libc/libc_calls.c" "$core" -lpthread -o "$tmp/program"
}
for compiler in "${CC:-cc}" clang; do
    ! lacks "$compiler" || continue
    for level in -O0 -Og -O1 -Os -O2; do
        compiled "$compiler" $level || { wrong "$compiler $level"; continue; }
        "$tmp/program" || wrong "$compiler $level: status $?"
    done
done
exit $bad
