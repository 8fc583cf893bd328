#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What `make bench` ends with follows from the runs that it writes down: reap's time to the best peer's, where
# reaps under APR and yardsticks are no peers, and the memory of a pool. Three objects a pool, for that is quick.
. "${srcdir:-.}/tests/support/bench_lib.sh"
bench_tree launch busy pool_reap pool_obstack pool_malloc pool_raw pool_bump

python3 "$srcdir/bench/run.py" --build "$tmp" --rounds 2 --workloads "three,idle 10000" pools memory \
    >"$tmp/told" 2>"$tmp/errors"
status=$?
cat "$tmp/told" "$tmp/errors"
[ $status = 0 ] || exit 1

# awk's field separator is what csv writes; its lines end in a carriage return.
tr -d '\r' <"$tmp/bench/results-pools.csv" | awk -F, '
    $2 == "three" && $5 == "ns" && (!($3 in least) || $6 < least[$3]) { least[$3] = $6 }
    END {
        for (name in least)
            if (name !~ /^(reap|raw|bump)$/ && (!best || least[name] < best)) best = least[name]
        if (!("obstack" in least && "list glibc" in least && "raw" in least && "bump" in least)) exit 1
        printf "%.3f %.2f\n", least["reap"] / best, least["reap"] / least["bump"]
    }' >"$tmp/times" || { echo "contestants are missing"; exit 1; }
tr -d '\r' <"$tmp/bench/results-memory.csv" | awk -F, '
    $2 == "idle 10000" && $3 == "reap" && $5 == "grown" { sum += $6; n++ }
    END { if (n == 2) printf "%.2f\n", sum / n / 10000 }' >"$tmp/memory"
read -r best bump <"$tmp/times"
read -r idle <"$tmp/memory" || { echo "idle pools are missing"; exit 1; }

# told PATTERN WANTED: a number that stands behind the pattern is the wanted one, but for its rounding
told() {
    awk -v pattern="$1" -v wanted="$2" '
        match($0, pattern) {
            value = substr($0, RSTART + RLENGTH) + 0
            if (value > 0 && value < wanted + 0.011 && value > wanted - 0.011) found = 1
        }
        END { exit !found }' "$tmp/told" || { echo "not told: $1$2"; bad=1; }
}
told '^geometric mean, to the best +' "$best"
told 'three .* ' "$bump"
told '^idle 10000 +' "$idle"

# Who gives memory that is in use has another sum, and is left out: here each object begins in the last.
mkdir "$tmp/odd" "$tmp/odd/bench"
ln -s "$build/.libs" "$tmp/odd/.libs"
for program in launch pool_reap pool_malloc pool_bump; do ln -s "$build/bench/$program" "$tmp/odd/bench/$program"; done
sed 's/pool->bump += size;/pool->bump += size - 16;/' "$srcdir/bench/pool_raw.c" >"$tmp/odd.c"
${CC:-cc} -D_GNU_SOURCE -O2 -w -I"$srcdir/bench" -o "$tmp/odd/bench/pool_obstack" "$tmp/odd.c" \
    "$srcdir/bench/pools_source.c" "$srcdir/bench/traces.c" -lpthread || exit 99
python3 "$srcdir/bench/run.py" --build "$tmp/odd" --rounds 1 --workloads three pools >"$tmp/told" 2>"$tmp/errors"
grep -q 'left out: three on obstack: reads other than what was written' "$tmp/told" ||
    { cat "$tmp/told" "$tmp/errors"; echo "objects that overlap were not seen"; bad=1; }

# A pool does what its recording has: recorded itself, it has as many objects and bytes at once.
if [ -x "$build/tools/trace/reap-analyse" ]; then
    figures() { "$build/tools/trace/reap-analyse" --json "$1" | sed -n 's/.*"most_objects": \([0-9]*\).*/\1/p; s/.*"U": \([0-9]*\).*/\1/p' | xargs; }
    REAP_TRACE=$tmp/again LD_PRELOAD=$build/.libs/libreap-trace.so "$build/bench/pool_reap" perl short >"$tmp/told" || bad=1
    echo "$(figures "$srcdir/bench/recordings/perl-short.trace") $(figures "$tmp/again")" | tee "$tmp/figures" |
        awk '{ exit !($1 > 1000 && $3 >= $1 && $3 < $1 + 20 && $4 >= $2 && $4 < $2 * 1.05) }' ||
        { echo "a replay is not what was recorded: $(cat "$tmp/figures")"; bad=1; }
fi

# Bad days: the rates that are told are those of the runs, and both kinds of calls are timed.
ln -s "$tmp" "$tmp/old"
python3 "$srcdir/bench/run.py" --build "$tmp" --beside "$tmp/old" --rounds 1 --seconds 0.1 \
    --workloads "mixed crowded 16,reaps quiet 2" busy >"$tmp/told" 2>"$tmp/errors"
status=$?
cat "$tmp/told" "$tmp/errors"
[ $status = 0 ] || exit 1
tr -d '\r' <"$tmp/bench/results-busy.csv" | awk -F, '
    $2 == "mixed crowded 16" && $5 == "ns" { ns[$3] = $6 }
    $2 == "reaps quiet 2" && $3 == "reap" && $5 == "free_worst" { destroy = $6 }
    END {
        for (name in ns)
            if (name !~ /^(reap|old)$/ && (!best || ns[name] < best)) best = ns[name]
        if ("glibc" in ns && destroy) printf "%.3f %.3f\n", ns["reap"] / best, ns["reap"] / ns["old"]
    }' >"$tmp/rates"
read -r best old <"$tmp/rates" || { echo "figures of busy are missing"; exit 1; }
told 'mixed crowded 16 .* ' "$best"
told 'mixed crowded 16 +' "$old"

# A malloc that sleeps is seen in the figures.
cat >"$tmp/odd.c" <<'END'
#include <stdlib.h>
#include <unistd.h>
extern void *__libc_malloc(size_t);
void *malloc(size_t size)
{
    static unsigned long calls;
    if (++calls % 2000 == 0) usleep(20000);
    return __libc_malloc(size);
}
END
${CC:-cc} -shared -fPIC -fno-builtin -w -o "$tmp/odd.so" "$tmp/odd.c" || exit 99
LD_PRELOAD=$tmp/odd.so "$build/bench/busy" small 1 0.5 >"$tmp/told" || bad=1
awk -F= '{ value[$1] = $2 }
    END { exit !(value["malloc_worst"] >= 20000000 && value["malloc_long"] >= 3 && value["malloc_999"] < 10000000 &&
                 value["sleeps"] >= value["malloc_long"] / 2) }' "$tmp/told" ||
    { cat "$tmp/told"; echo "calls that took 20 ms are not seen"; bad=1; }
exit $bad
