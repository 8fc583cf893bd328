#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# make fuzz: random calls beside a model for SECONDS in JOBS processes at once, over all builds (plain, sanitizers,
# libFuzzer), tools, options and numbers of threads, a minute each in turn. Programs that fail are kept in fuzz/ of the
# build. Each row that was run is counted in fuzz-counts.txt of the sources, or of the build where these cannot be written
# to (FUZZ_COUNTS: another file), and all of that file is summed up at the end. FUZZ_ROWS: a regular expression, for some.
srcdir=${srcdir:-.}
top_builddir=${top_builddir:-.}
seconds=${1:-3600} jobs=${2:-1}
each=${FUZZ_EACH:-60}
dir=${FUZZ_DIR:-$top_builddir/fuzz}
. "$srcdir/tests/fuzz/fuzz_tool.sh"
mkdir -p "$dir" || exit 99
counts=${FUZZ_COUNTS:-$srcdir/fuzz-counts.txt}
[ -n "${FUZZ_COUNTS:-}" ] || [ -w "$srcdir" ] || counts=$top_builddir/fuzz-counts.txt
commit=$(git -C "$srcdir" rev-parse --short=10 HEAD 2>/dev/null || echo -)
[ $commit = - ] || git -C "$srcdir" diff --quiet HEAD 2>/dev/null || commit=$commit+

# What is run in turn: a build, threads, options, and after a ";" arguments. Under tsan no sections: it does not see what
# they write.
all_rows() {
    for options in purge_ms=100 bypass=1 harden=1 harden=2 leaks=1 purge_ms=0 heaps=cpu path=locked heaps=thread \
        heaps=dynamic:3 heaps=roundrobin heaps=core heaps=single lock=spin,path=locked lock=block,path=locked \
        empty_fraction=1,slack=0 thp=always thp=never \
        purge_ms=0,purge_thread=1 memory_limit=refuse; do
        for build in plain debug ubsan asan; do
            for threads in 1 2 4; do echo "$build $threads $options"; done
        done
    done
    for options in purge_ms=100 purge_ms=0 harden=1 path=locked empty_fraction=1,slack=0; do
        for build in plain debug ubsan asan; do
            for threads in 1 3; do echo "$build $threads $options;--wide"; done
        done
    done
    for options in path=locked heaps=thread heaps=roundrobin,lock=spin heaps=single,lock=block path=locked,purge_ms=0; do
        echo "delays 3 $options"
        echo "tsan 2 $options"
        echo "tsan 4 $options"
    done
    for options in purge_ms=100 purge_ms=0 bypass=1 harden=1 harden=2 'purge_ms=100;--wide'; do
        for threads in 2 3 4; do echo "delays $threads $options"; done
    done
    for tool in preload recorder profile; do
        for options in purge_ms=100 harden=1 bypass=1 path=locked 'purge_ms=100;--wide'; do
            for threads in 1 3; do echo "$tool $threads $options"; done
        done
    done
    for options in purge_ms=100 path=locked harden=1 harden=2; do echo "libfuzzer 1 $options"; done
}
rows() { all_rows | grep -E "${FUZZ_ROWS:-.}"; }

# A copy, which make does not change while it runs, and another run does not stand in the way.
copy() { cp "$top_builddir/tests/fuzz/$1" "$dir/$2.$$" && mv "$dir/$2.$$" "$dir/$2"; }
built=
for kind in $(rows | cut -d' ' -f1 | sort -u); do
    case $kind in
    plain) copy fuzz plain || exit 99 ;;
    preload) copy fuzz_public preload || exit 99 ;;
    recorder) [ -e "$top_builddir/.libs/libreap-trace.so" ] && copy fuzz_public recorder || continue ;;
    profile) [ -e "$top_builddir/.libs/libreap-profile.so" ] && copy fuzz_public profile || continue ;;
    *) "${SHELL:-/bin/sh}" "$srcdir/tests/fuzz/fuzz_build.sh" "$kind" "$dir/$kind" || continue ;;
    esac
    built="$built $kind"
done
echo "builds:$built"
[ -n "$built" ] || exit 99
end=$(($(date +%s) + seconds))

# --- what was run -------------------------------------------------------------------------------
# A table for people and awk. Who makes it gives it its heading, in one step; each line is one write, behind all others. A
# disk that was full may have cut the last one: the next one begins anew.
echo '# date commit build threads options seeds programs operations seconds failures' >"$dir/heading.$$"
ln "$dir/heading.$$" "$counts" 2>/dev/null || [ -e "$counts" ] || cp "$dir/heading.$$" "$counts" || exit 99
rm -f "$dir/heading.$$"

# count BUILD THREADS OPTIONS SECONDS STATUS LOG
count() {
    case $1 in
    libfuzzer) # its failure is the first one
        programs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$6" | tail -n 1)
        operations=$(sed -n 's/^operations: //p' "$6" | tail -n 1) seeds=$(sed -n 's/^INFO: Seed: //p' "$6" | head -n 1)
        failures=$(($5 != 0 && $5 != 72)) ;; # 72: it was asked to end
    *) # shellcheck disable=SC2046  # words
        set -- "$@" $(sed -n 's/^\([0-9]*\) programs of \([0-9]*\) records from seed \([0-9]*\) on, .*: \([0-9]*\) failed, .*/\1 \2 \3 \4/p' "$6" | tail -n 1)
        programs=${7:-0} operations=$((${7:-0} * ${8:-0})) failures=${10:-1} # without a last line it has died
        seeds=${9:-0}-$((${9:-0} + programs - (programs > 0))) ;;
    esac
    [ -z "$(tail -c 1 "$counts")" ] || echo >>"$counts"
    printf '%s %s %s %s %s %s %s %s %s %s\n' "$(date +%Y-%m-%dT%H:%M:%S)" "$commit" "$1" "$2" "$3" "${seeds:--}" "${programs:-0}" \
        "${operations:-0}" "$4" "$failures" >>"$counts"
}

# By build, and of all. What is no whole line is told, and not counted.
total() {
    awk 'function show(what, at) {
            printf "%-10s %9d programs %12d operations %8.2f hours %5d failures\n", what, n[at], ops[at], sec[at] / 3600, bad[at]
        }
        function add(at) { n[at] += $7; ops[at] += $8; sec[at] += $9; bad[at] += $10 }
        /^#/ || NF == 0 { next }
        NF != 10 || ($4 " " $7 " " $8 " " $9 " " $10) !~ /^[0-9 ]+$/ { torn++; next }
        { add($3); add(""); lines++; if (!($3 in known)) { known[$3]; names[++builds] = $3 } }
        END {
            for (i = 1; i <= builds; i++) show(names[i], names[i])
            show("all", "")
            print lines + 0 " rows in " FILENAME (torn ? ", and " torn " lines that are none" : "")
        }' "$counts"
}

# --- running ------------------------------------------------------------------------------------
play() {
    build=$1 threads=$2 options=${3%;*} arguments=${3#"${3%;*}"}
    case " $built " in *" $build "*) ;; *) return 0 ;; esac
    log=$dir/log.$build.$threads.$options$arguments.$number.$$
    export REAP_OPTIONS="$options" TSAN_OPTIONS="halt_on_error=1 history_size=7 report_thread_leaks=0 suppressions=$srcdir/tests/fuzz/tsan.supp" ASAN_OPTIONS=detect_leaks=0
    begun=$(date +%s)
    # shellcheck disable=SC2086  # words
    case $build in
    libfuzzer)
        mkdir -p "$dir/corpus"
        set -- "$dir/libfuzzer" -max_total_time="$each" -max_len=16000 -print_final_stats=1 -artifact_prefix="$dir/" "$dir/corpus" ;;
    preload | recorder | profile)
        mkdir -p "$dir/$build.$number.$$"
        set -- under "$build" "$dir/$build.$number.$$" "$top_builddir" "$dir/$build" ;;
    *) set -- "$dir/$build" ;;
    esac
    # shellcheck disable=SC2086
    [ "$build" = libfuzzer ] || set -- "$@" ${arguments#;} --seconds "$each" --threads "$threads" --keep-going --out "$dir" ${FUZZ_ARGUMENTS:-}
    "$@" >"$log" 2>&1 &
    driver=$!
    wait $driver
    status=$?
    while kill -0 $driver 2>/dev/null; do # a signal has ended the wait, and asked it to end
        wait $driver
        status=$?
    done
    count "$build" "$threads" "$options${arguments}" $(($(date +%s) - begun)) $status "$log"
    echo "$(date +%H:%M:%S) $build, $threads threads, $options$arguments: $(tail -n 1 "$log" | cut -c 1-120)"
    rm -rf "$dir/$build.$number.$$"
    [ $failures = 0 ] && rm -f "$log"
    return "$failures"
}

# Each job takes rows in an order of its own, until the time is over. One that is asked to end counts what it has run.
job() {
    number=$1 bad=0 stopped=0 driver=
    trap 'stopped=1; [ -z "$driver" ] || kill $driver 2>/dev/null' TERM
    while [ $stopped = 0 ] && [ "$(date +%s)" -lt "$end" ]; do
        rows | shuf >"$dir/rows.$number.$$"
        while read -r build threads options; do
            [ $stopped = 0 ] && [ "$(date +%s)" -lt "$end" ] || break
            play "$build" "$threads" "$options" </dev/null || bad=1
        done <"$dir/rows.$number.$$"
    done
    rm -f "$dir/rows.$number.$$"
    return $bad
}

pids=''
for number in $(seq "$jobs"); do
    job "$number" &
    pids="$pids $!"
done
bad=0 asked=0
trap 'asked=1; kill $pids 2>/dev/null' INT TERM HUP
for pid in $pids; do
    wait "$pid" || bad=1
    while kill -0 "$pid" 2>/dev/null; do wait "$pid" || bad=1; done
done
total
[ $asked = 0 ] || exit 130
[ $bad = 0 ] && echo "nothing found" || echo "logs and programs of what failed: $dir"
exit $bad
