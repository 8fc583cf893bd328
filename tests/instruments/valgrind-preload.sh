#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# libreap-malloc under Valgrind, which by itself would put its own malloc in the place of any other:
# programs that use the family oddly run clean on it, and one whose malloc is a reap's for a while.
. "${srcdir:-.}/tests/support/preload-lib.sh"
need valgrind

# preload_cxx is not among them: Valgrind replaces libstdc++'s nothrow new all the same, to which ours
# turns for what a new handler throws.
for program in preload/preload_errors preload/preload_early unit/libc/.libs/reap_ambient; do
    LD_PRELOAD=$preload REAP_OPTIONS=stats=1 valgrind -q --error-exitcode=9 --num-callers=20 \
        --soname-synonyms=somalloc=nouserintercepts "$top_builddir/tests/$program" >"$tmp/out" 2>&1
    status=$?
    # The report at exit is the proof that ours served, and by which path.
    if [ $status = 0 ] && grep -q '^reap: .*locked' "$tmp/out"; then
        echo "$program: $(grep -m1 '^reap: .*locked' "$tmp/out")"
    else
        echo "$program ends with status $status"
        head -n 40 "$tmp/out"
        bad=1
    fi
done
exit $bad
