#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# make fuzz: random calls beside a model for SECONDS in JOBS processes at once, over all builds (plain, sanitizers,
# libFuzzer), options and numbers of threads, a minute each in turn. Programs that fail are kept in fuzz/ of the build.
srcdir=${srcdir:-.}
top_builddir=${top_builddir:-.}
seconds=${1:-3600} jobs=${2:-1}
each=${FUZZ_EACH:-60}
dir=$top_builddir/fuzz
mkdir -p "$dir" || exit 99
end=$(($(date +%s) + seconds))

built=plain
cp "$top_builddir/tests/fuzz/fuzz" "$dir/plain" || exit 99
for kind in debug delays ubsan asan tsan libfuzzer; do
    "${SHELL:-/bin/sh}" "$srcdir/tests/fuzz/fuzz_build.sh" $kind "$dir/$kind" && built="$built $kind"
done
echo "builds: $built"

# What is run in turn: a build, threads, options. Under tsan no sections: it does not see what they write.
rows() {
    for options in purge_ms=100 bypass=1 harden=1 purge_ms=0 heaps=cpu path=locked heaps=thread \
        heaps=dynamic:3 heaps=roundrobin heaps=core heaps=single lock=spin,path=locked lock=block,path=locked \
        empty_fraction=1,slack=0 thp=always thp=never \
        purge_ms=0,purge_thread=1 memory_limit=refuse; do
        for build in plain debug ubsan asan; do
            for threads in 1 2 4; do echo "$build $threads $options"; done
        done
    done
    for options in path=locked heaps=thread heaps=roundrobin,lock=spin heaps=single,lock=block path=locked,purge_ms=0; do
        echo "delays 3 $options"
        echo "tsan 2 $options"
        echo "tsan 4 $options"
    done
    for options in purge_ms=100 purge_ms=0 bypass=1 harden=1; do
        for threads in 2 3 4; do echo "delays $threads $options"; done
    done
    for options in purge_ms=100 path=locked harden=1; do echo "libfuzzer 1 $options"; done
}

play() {
    build=$1 threads=$2 options=$3
    case " $built " in *" $build "*) ;; *) return 0 ;; esac
    log=$dir/log.$build.$threads.$options
    export REAP_OPTIONS="$options" TSAN_OPTIONS="halt_on_error=1 history_size=7 report_thread_leaks=0 suppressions=$srcdir/tests/fuzz/tsan.supp" ASAN_OPTIONS=detect_leaks=0
    if [ "$build" = libfuzzer ]; then
        mkdir -p "$dir/corpus"
        "$dir/libfuzzer" -max_total_time="$each" -max_len=16000 -artifact_prefix="$dir/" "$dir/corpus" >"$log" 2>&1
    else
        "$dir/$build" --seconds "$each" --threads "$threads" --keep-going --out "$dir" >"$log" 2>&1
    fi
    status=$?
    echo "$(date +%H:%M:%S) $build, $threads threads, $options: $(tail -n 1 "$log" | cut -c 1-120)"
    [ $status = 0 ] && rm -f "$log"
    return $status
}

# Each job takes every jobs-th row, in an order of its own, until the time is over.
job() {
    bad=0
    while [ "$(date +%s)" -lt "$end" ]; do
        rows | shuf >"$dir/rows.$1"
        while read -r build threads options; do
            [ "$(date +%s)" -lt "$end" ] || break
            play "$build" "$threads" "$options" </dev/null || bad=1
        done <"$dir/rows.$1"
    done
    return $bad
}

pids=''
for number in $(seq "$jobs"); do
    job "$number" &
    pids="$pids $!"
done
bad=0
for pid in $pids; do wait "$pid" || bad=1; done
[ $bad = 0 ] && echo "nothing found" || echo "logs and programs of what failed: $dir"
exit $bad
