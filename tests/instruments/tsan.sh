#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The backend, and shared reaps on it, under ThreadSanitizer, on the locked path: it does not see what restartable
# sections write. Not as malloc, which it has one of its own for. Figures (hoard_stats) are read without locks, and
# not asked for here.
. "${srcdir:-.}/tests/support/script.sh"
cc=${CC:-cc}

echo 'int main(void) { return 0; }' >"$tmp/try.c"
# shellcheck disable=SC2086  # CC may carry flags
if ! { $cc -fsanitize=thread "$tmp/try.c" -o "$tmp/try" && "$tmp/try"; } >"$tmp/log" 2>&1; then
    echo "skipped: no program runs under ThreadSanitizer here: $(tail -n 1 "$tmp/log")"
    exit 77
fi
sources=$(ls "$srcdir"/lib/*/*.c | grep -v '/lib/libc/')
# shellcheck disable=SC2086
$cc -std=gnu17 -D_GNU_SOURCE -O0 -g -w -fsanitize=thread -fno-strict-aliasing -I"$srcdir" -I"$srcdir/include" -I"$srcdir/lib" \
    "$srcdir/tests/instruments/tsan.c" "$srcdir/tests/instruments/tsan_shared.c" $sources -o "$tmp/tsan" -lpthread || exit 99
# A free looks at the bits of its own object, in whichever part that is: what tsan.supp says of reap_is_object.
export TSAN_OPTIONS="suppressions=$srcdir/tests/fuzz/tsan.supp"
for options in path=locked heaps=thread,topology=0.0:1.1 heaps=roundrobin; do
    REAP_OPTIONS=$options,purge_ms=1,purge_thread=1 "$tmp/tsan" >"$tmp/out" 2>&1
    status=$?
    [ $status = 0 ] && grep -qx 'came to its end' "$tmp/out" && ! grep -q 'WARNING: ThreadSanitizer' "$tmp/out" && continue
    echo "$options: status $status"
    head -n 60 "$tmp/out"
    exit 1
done
