#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# make fuzz-inputs: each harness with libFuzzer, AddressSanitizer and UndefinedBehaviorSanitizer, for so many seconds from its
# corpus. What is found stays in inputs-found/ of the build directory. tests/inputs/inputs_fuzz.sh SECONDS [NAME...]
srcdir=$(cd "${srcdir:-.}" && pwd)
build=$(realpath "${top_builddir:-.}")
seconds=${1:-60}
[ $# = 0 ] || shift
names=${*:-options query ask trace}
cc=${CLANG:-clang}
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
echo 'int LLVMFuzzerTestOneInput(const unsigned char *d, unsigned long n) { return d && n ? 0 : 0; }' >"$tmp/try.c"
$cc -fsanitize=fuzzer,address,undefined "$tmp/try.c" -o "$tmp/try" >"$tmp/why" 2>&1 || {
    echo "skipped: no clang with libFuzzer (Debian: clang libclang-rt-14-dev)"
    exit 77
}
flags="-std=gnu17 -D_GNU_SOURCE -g -O1 -w -fno-strict-aliasing -fno-sanitize-recover=undefined
    -I$build -I$srcdir/include -I$srcdir/lib -I$srcdir -I$srcdir/tests -I$srcdir/tools/trace"
seen=-fsanitize=fuzzer,address,undefined

# Of the library only what is looked at is instrumented: it tells AddressSanitizer itself what is an object.
build_harness() {
    case $1 in
        options) sources="$srcdir/lib/base/options.c" rest=core ;;
        ask) sources=$(ls "$srcdir"/tools/ask/*.c | grep -v '/reap-ask\.c$') rest=core ;;
        trace) sources="$srcdir/tools/trace/reader.c $srcdir/tools/trace/lives.c" rest=-llz4 ;;
        query)
            apxs=${APXS:-apxs}
            command -v "$apxs" >/dev/null || return 77
            flags="$flags -I$srcdir/apache_module/mod_reap $(pkg-config --cflags apr-1) -I$("$apxs" -q INCLUDEDIR)"
            sources='' rest='' ;;
    esac
    if [ "$rest" = core ]; then
        [ -e "$tmp/core.a" ] || (mkdir "$tmp/core" && cd "$tmp/core" && $cc $flags -c $(ls "$srcdir"/lib/*/*.c | grep -v /lib/libc/) &&
            ar rc "$tmp/core.a" ./*.o) || return 1
        rest="$tmp/core.a -lpthread"
    fi
    # The harness's parser first: of the archive the linker takes what is left.
    $cc $flags $seen "$srcdir/tests/inputs/input_$1.c" $sources $rest -o "$tmp/input_$1"
}

status=0
for name in $names; do
    build_harness "$name" 2>"$tmp/why" || { echo "skipped: $name does not build here"; cat "$tmp/why"; continue; }
    mkdir -p "$tmp/$name" "$build/inputs-found"
    [ ! -e "$srcdir/tests/inputs/$name.corpus" ] || "$build/tests/inputs/input_options" --unpack "$srcdir/tests/inputs/$name.corpus" "$tmp/$name"
    if [ "$name" = trace ] && [ -x "$build/tests/trace/traced" ]; then
        REAP_TRACE=$tmp/one LD_PRELOAD=$build/.libs/libreap-trace.so "$build/tests/trace/traced" plain >/dev/null 2>&1
        head -c 200000 "$tmp/one" >"$tmp/$name/trace"
    fi
    "$tmp/input_$name" -max_total_time="$seconds" -max_len=300000 -timeout=20 -rss_limit_mb=3000 -close_fd_mask=2 -print_final_stats=1 \
        -artifact_prefix="$build/inputs-found/$name-" "$tmp/$name" >"$tmp/said" 2>&1
    result=$?
    sed 's/^stat::number_of_executed_units: */'"$name"': executions /p; d' "$tmp/said"
    if [ $result != 0 ]; then
        echo "$name: found something (status $result)"
        tail -n 40 "$tmp/said"
        status=1
    fi
done
exit $status
