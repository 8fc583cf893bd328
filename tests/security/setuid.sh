#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A setuid program takes no option: not harden, not one that is wrong, and it writes no file and no line that an option asks
# for. The same program without the bit takes them.
. "${srcdir:-.}/tests/support/script.sh"
program=$build/tests/security/misuses_reaps
[ "$(id -u)" = 0 ] || skip "only root can make such a program"
need setpriv
ulimit -c 0
chmod 755 "$tmp"
mkdir "$tmp/out" && chmod 777 "$tmp/out"

# as_nobody PROGRAM OPTIONS: commits an overflow, which harden tells
as_nobody() {
    (REAP_OPTIONS=$2 setpriv --reuid 65534 --regid 65534 --clear-groups "$1" write-over-8-loop small) >"$tmp/said" 2>&1
}
cp "$program" "$tmp/plain" && chmod 755 "$tmp/plain"
cp "$program" "$tmp/setuid" && chmod 4755 "$tmp/setuid"
as_nobody "$tmp/plain" '' && grep -q '^missed' "$tmp/said" || { echo "skipped: another user cannot run programs here"; exit 77; }
(cd "$tmp" && setpriv --reuid 65534 --regid 65534 --clear-groups ./setuid none small) >"$tmp/said" 2>&1 || wrong "the setuid program"
grep -q nosuid /proc/self/mountinfo && [ "$(stat -c %m "$tmp")" != / ] && findmnt -no OPTIONS -T "$tmp" | grep -qw nosuid &&
    { echo "skipped: $tmp does not take setuid programs"; exit 77; }

# Without the bit: each option is taken.
for options in harden=1 harden=2; do
    as_nobody "$tmp/plain" "$options" && wrong "$options is not taken without the bit"
    grep -q '^reap: ' "$tmp/said" || wrong "$options tells nothing without the bit"
done
as_nobody "$tmp/plain" "nonsense=1,stats=$tmp/out/plain"
grep -q "^reap: REAP_OPTIONS: .*nonsense" "$tmp/said" && [ -s "$tmp/out/plain" ] || wrong "options are not read without the bit"

# With it: none.
for options in harden=1 harden=2 harden=99 nonsense=1 "stats=1" "stats=$tmp/out/a" leaks=1 bypass=1 \
    "ask=$tmp/out/c" "harden=1,harden=2,,=,"; do
    as_nobody "$tmp/setuid" "$options" || wrong "$options ends a setuid program"
    [ "$(cat "$tmp/said")" = "$(printf 'missed a neighbour%ss bytes were changed' "'")" ] || wrong "$options is taken by a setuid program"
done
rm -f "$tmp/out/plain"
[ -z "$(ls "$tmp/out")" ] || wrong "a setuid program wrote $(ls "$tmp/out")"
exit $bad
