#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Libraries that stand between libreap-malloc and libc, in both orders of LD_PRELOAD: one that allocates in each
# function that the library calls, and faketime.
. "${srcdir:-.}/tests/support/preload-lib.sh"
need nm

between=$(realpath "$top_builddir/.libs/libbetween.so")

# It has all functions that the library calls, but those of streams and strings, and those without code. A build with
# _FORTIFY_SOURCE calls some as __name_chk.
names() { nm -D "$1" "$2" | awk '{ sub(/@.*/, "", $NF); print $NF }' | sed 's/^__\(.*\)_chk$/\1/' | sort -u; }
names --defined-only "$between" >"$tmp/between"
names --undefined-only "$preload" | grep -vxE '_*IO_list_.*|_ITM_.*|__asan_.*|_ZSt.*|__gmon_start__|__assert_fail|__cxa_finalize|abort|dlsym|f?error|fprintf|fwrite|vsnprintf|strerrordesc_np|stderr|str.*|bcmp|mem.*|wcslen|_*environ|__errno_location|__libc_.*|_*progname|program_invocation_short_name|__rseq_.*|__stack_chk_fail|reap_.*' |
    comm -13 "$tmp/between" - >"$tmp/missing"
[ ! -s "$tmp/missing" ] || { echo "between_lib.c lacks:" && cat "$tmp/missing" && bad=1; }

# beside NAME OPTIONS PRELOADS COMMAND...: its output, once it has ended well
beside() {
    name=$1 options=$2 preloads=$3
    shift 3
    timeout 100 env REAP_OPTIONS="$options" LD_PRELOAD="$preloads" "$@" >"$tmp/out" 2>&1 && return
    echo "$name, REAP_OPTIONS=$options, ends with status $?:"
    head -n 10 "$tmp/out"
    bad=1
}
for options in "" heaps=cpu path=locked heaps=thread purge_thread=1,purge_ms=1 stats=1 bypass=1; do
    beside "before it" "$options" "$between $preload" "$top_builddir/tests/preload/between"
    grep -qx 'many calls' "$tmp/out" || { echo "before it: few calls came" && bad=1; }
    beside "after it" "$options" "$preload $between" "$top_builddir/tests/preload/between"
    grep -qx 'many calls' "$tmp/out" || { echo "after it: few calls came" && bad=1; }
done

faketime=$(find /usr/lib -name libfaketime.so.1 2>/dev/null | head -n 1)
[ -n "$faketime" ] || { absent faketime && exit $bad; }
export FAKETIME="@2020-02-20 20:20:20" TZ=UTC
for options in "" path=locked purge_thread=1; do
    for preloads in "$faketime $preload" "$preload $faketime"; do
        beside "beside faketime" "$options" "$preloads" date +%Y-%m-%d
        grep -qx '2020-02-20' "$tmp/out" || { echo "date says: $(cat "$tmp/out")" && bad=1; }
    done
done
exit $bad
