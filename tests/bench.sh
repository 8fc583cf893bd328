#!/bin/sh
# What `make bench` ends with follows from the runs that it writes down: reap's time to the best peer's, where
# reaps under APR and yardsticks are no peers, and the memory of a pool. Three objects a pool, for that is quick.
srcdir=${srcdir:-.}
build=$(realpath "${top_builddir:-.}")
command -v python3 >/dev/null || { echo "skipped: no python3"; exit 77; }
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
mkdir "$tmp/bench"
ln -s "$build/.libs" "$tmp/.libs"
for program in launch pool_reap pool_obstack pool_malloc pool_raw pool_bump; do
    ln -s "$build/bench/$program" "$tmp/bench/$program"
done

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
bad=0
told 'regions, clock: geometric mean ' "$best"
told '^geometric mean, to the best +' "$best"
told 'three .* ' "$bump"
told 'idle 10000: ' "$idle"
exit $bad
