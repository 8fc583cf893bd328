#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Cross-builds for aarch64 in ./aarch64, has the restartable sections looked at, and runs under qemu-user what
# can run there: qemu has no rseq, so that is the locked path, and the sections in check_sections' own area.
#
#     aarch64.sh          # as in make check-system
#     aarch64.sh all      # as in make check-aarch64: the slow ones too
#
# Not for qemu-user 7.2: check_fork (it asserts in a fork with threads running), check_migrate (floods of
# signals), check_world (RLIMIT_AS counts its own memory too), check_ended (20,000 threads), most of
# check_heap.
quick="unit/heap/check_sections unit/base/check_words unit/arena/check_superblock unit/heap/check_bin
    unit/region/check_reap"
slow="unit/os/check_os unit/base/check_lock unit/arena/check_lines unit/arena/check_arena unit/arena/check_large
    unit/hoard/check_hoard unit/hoard/check_chunk unit/hoard/check_misuse fault/check_reap_faults
    unit/region/check_reap_free unit/reap/check_reap_life unit/reap/check_reap_stats
    unit/reap/check_reap_threads unit/hoard/check_lent"
preloaded="preload/preload_errors"

srcdir=$(cd "${srcdir:-.}" && pwd)
build=${top_builddir:-.}/aarch64
host=aarch64-linux-gnu
pkgconfig=/usr/lib/$host/pkgconfig
checks=$quick
[ "${1:-}" != all ] || { checks="$quick $slow"; preloaded="$preloaded preload/preload_early"; }

skip() { echo "skipped: $*"; exit 77; }
[ "$(uname -m)" != aarch64 ] || skip "this is aarch64: make check tests it all"
[ ! -f "$srcdir/config.status" ] || skip "the source directory is configured for a build in it"
for tool in $host-gcc qemu-aarch64 python3; do
    command -v $tool >/dev/null || missing="${missing:-} $tool"
done
[ -f $pkgconfig/check.pc ] || missing="${missing:-} check:arm64"
[ -z "${missing:-}" ] || skip "missing:$missing (Debian: dpkg --add-architecture arm64, and gcc-$host," \
    "libc6-dev-arm64-cross, qemu-user, python3, check:arm64)"

# What this machine's tests are told is not for the other's. Make's own flags would have this make talk to the
# jobs of the one that runs the tests.
unset MAKEFLAGS MFLAGS MAKELEVEL CC CXX CFLAGS CPPFLAGS LDFLAGS APXS APACHE2 OBJDUMP top_builddir \
    PKG_CONFIG_LIBDIR PKG_CONFIG_PATH
programs=
[ "${1:-}" != all ] || programs=" tests/unit/heap/check_heap"
for program in $checks $preloaded; do programs="$programs tests/$program"; done
mkdir -p "$build" && cd "$build" || exit 99
{
    [ -f config.status ] || "$srcdir/configure" --host=$host --enable-werror --disable-static
    make -s -j 2 libreap.la libreap-malloc.la $programs
} >build.log 2>&1 || { tail -n 30 build.log; exit 1; }

bad=0
run() {
    what=$1
    shift
    if timeout 600 "$@" >run.log 2>&1 </dev/null; then
        echo "passed: $what"
    else
        echo "failed, status $?: $what"
        tail -n 20 run.log
        bad=1
    fi
}
run "sections of aarch64" env OBJDUMP=$host-objdump srcdir="$srcdir" top_builddir=. \
    sh "$srcdir/tests/dist/rseq_sections.sh"
grep -q "aarch64, [0-9]* sections" run.log || { echo "failed: no sections of aarch64 were seen"; bad=1; }
for check in $checks; do
    run "$check" env REAP_TEST_STEPS=1000 CK_TIMEOUT_MULTIPLIER=10 qemu-aarch64 tests/$check
done
[ "${1:-}" != all ] || run "check_heap, accounts" \
    env CK_RUN_CASE=accounts_add_up_under_any_load CK_TIMEOUT_MULTIPLIER=10 qemu-aarch64 tests/unit/heap/check_heap
for program in $preloaded; do
    run "$program, preloaded" \
        qemu-aarch64 -E LD_PRELOAD="$PWD/.libs/libreap-malloc.so" -E REAP_OPTIONS=stats=1 tests/$program
    grep -q "^reap: path locked: rseq is not registered" run.log ||
        { echo "failed: $program ran without libreap-malloc, or not as it should"; bad=1; }
done
exit $bad
