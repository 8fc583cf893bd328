#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds the library's sources and the random driver (tests/fuzz) into one program: tests/fuzz/fuzz_build.sh KIND OUT, where
# KIND is plain, debug, delays, ubsan, asan, tsan or libfuzzer. 77: not to be had here.
srcdir=$(cd "${srcdir:-.}" && pwd)
kind=$1 out=$2
seen= # of the library alone
own= # of the driver alone: the library tells AddressSanitizer what is an object, and is not to be checked itself
cc=${CC:-cc}
flags='-std=gnu17 -D_GNU_SOURCE -O2 -g -w -fno-strict-aliasing -fno-builtin -ftls-model=initial-exec'
main=$srcdir/tests/fuzz/main.c
malloc="$srcdir/lib/libc/malloc.c $srcdir/lib/libc/libc_calls.c"
case $kind in
plain) ;;
debug) flags="$flags -DREAP_DEBUG=1" ;; # the library's assertions
delays) seen='-finstrument-functions' ;;
ubsan) flags="$flags -fsanitize=undefined -fno-sanitize-recover=undefined" ;;
asan) own='-fsanitize=address' malloc='' ;;
tsan) flags="$flags -fsanitize=thread" malloc='' ;;
libfuzzer)
    cc=${CLANG:-clang} malloc='' main=$srcdir/tests/fuzz/libfuzzer.c
    flags="$flags -fsanitize=fuzzer -DFUZZ_SANITIZED=1" ;;
*) echo "usage: $0 plain|debug|delays|ubsan|asan|tsan|libfuzzer OUT" >&2; exit 2 ;;
esac
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
echo 'int LLVMFuzzerTestOneInput(const unsigned char *d, unsigned long n) { return d && n ? 0 : 0; }' >"$tmp/try.c"
[ "$kind" = libfuzzer ] || echo 'int main(void) { return 0; }' >"$tmp/try.c"
# shellcheck disable=SC2086  # these are lists of words
$cc $flags $own "$tmp/try.c" -o "$tmp/try" >/dev/null 2>&1 || { echo "$kind: not here"; exit 77; }
core=$(ls "$srcdir"/lib/*/*.c | grep -v '/lib/libc/')
parts=$(ls "$srcdir"/tests/fuzz/*.c | grep -v -e '/main\.c$' -e '/libfuzzer\.c$' -e '/delays\.c$')
[ "$kind" = delays ] && parts="$parts $srcdir/tests/fuzz/delays.c"
# shellcheck disable=SC2086
(cd "$tmp" && $cc $flags $seen -c -I"$srcdir" -I"$srcdir/include" -I"$srcdir/lib" $core) || exit 99
# shellcheck disable=SC2086
$cc $flags $own -I"$srcdir" -I"$srcdir/include" -I"$srcdir/lib" "$tmp"/*.o $malloc $parts "$main" -o "$out" -lpthread
