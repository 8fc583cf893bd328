#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The papers' benchmarks and requests run, for a moment each, on ours and on each peer that is here, and all read what was written:
# sums are those of the first contestant, which is ours. A malloc that gives a few objects the same memory is told.
. "${srcdir:-.}/tests/support/bench_lib.sh"
bench_tree $(find "$build/bench" -maxdepth 1 -type f -executable -printf '%f ')

# Of these sizes are leaves of barnes, and texts of the server: nothing that leads to other objects.
cat >"$tmp/odd.c" <<'END'
#include <stdlib.h>
extern void *__libc_malloc(size_t);
extern void __libc_free(void *);
static char shared[128];
void *malloc(size_t size)
{
    static unsigned long calls;
    return (size == 40 || (size % 2 == 1 && size > 40 && size < 128)) && ++calls % 20 < 2 ? shared : __libc_malloc(size);
}
void free(void *object) { if (object != shared) __libc_free(object); }
END
${CC:-cc} -shared -fPIC -fno-builtin -w -o "$tmp/odd.so" "$tmp/odd.c" || exit 99

python3 "$srcdir/bench/run.py" --build "$tmp" --rounds 1 --short --workloads "barnes 2,mt 8,mp 8 offset,event 4" \
    --with "odd=$tmp/odd.so" threads server >"$tmp/told" 2>&1 &&
    python3 "$srcdir/bench/run.py" --build "$tmp" --rounds 1 --short custom >>"$tmp/told" 2>&1 &&
    python3 "$srcdir/bench/run.py" --build "$tmp" --rounds 1 --short requests \
        --workloads "served 10 30,resized,built,marked,limited,waited 20" >>"$tmp/told" 2>&1
status=$?
cat "$tmp/told"
[ $status = 0 ] || exit 1
grep '^left out' "$tmp/told" | grep -v ' on odd: reads other than what was written$' && bad=1
[ "$(grep -c ' on odd: reads other' "$tmp/told")" = 4 ] || { echo "objects in the same memory were not seen"; bad=1; }

# Of a case each contestant has the same sum, and several have the case: of a program its own allocator, reaps, two
# mallocs; of regions what goes back to marks by itself, too.
cat "$tmp"/bench/results-*.csv | tr -d '\r' >"$tmp/results"
sums() { awk -F, -v wanted="$1" '$2 == wanted && $5 == "sum" { print $6 }' "$tmp/results"; }
alike() {
    [ "$(sums "$1" | wc -l)" -ge "$2" ] && [ "$(sums "$1" | sort -u | wc -l)" = 1 ] ||
        { echo "$1: sums are missing or differ"; bad=1; }
}
for case in "barnes 2" "mt 8" "mp 8 offset" "event 4"; do alike "$case" 2; done
for case in parser boxed gcc lcc; do alike "$case" 4; done
for case in "served 10 30" built marked "waited 20"; do alike "$case" 4; done
alike resized 2
grep -q ',waited 20,reap,1,idle_held,[1-9]' "$tmp/results" || { echo "what a connection holds is missing"; bad=1; }
alike httpd 3 # its own allocator is APR's
# The models of the server do the same work.
[ "$({ sums "mt 8"; sums "mp 8 offset"; sums "event 4"; } | sort -u | wc -l)" = 1 ] ||
    { echo "models of the server answer differently"; bad=1; }
exit $bad
