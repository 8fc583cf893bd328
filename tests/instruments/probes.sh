#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The USDT probes are in both libraries, all of them, each with its arguments and of the provider reap; and a
# tracer (gdb) that stops at one finds there what the page says. Those of libreap-profile have semaphores, and what they
# say of sampled objects agrees; a tracer that goes leaves the program as it was, and one that is killed, a program that
# goes on.
. "${srcdir:-.}/tests/support/script.sh"
grep -q '^#define REAP_PROBES 1' "$build/config.h" || { absent probes; exit 77; }

sed -n 's/^\.BI \([a-z_]*\)(\(.*\)/\1 \2/p' "$srcdir/doc/libreap-malloc.7" |
    awk '{ name = $1; $1 = ""; print name, gsub(/,/, "") + 1 }' | sort >"$tmp/promised"
[ "$(wc -l <"$tmp/promised")" -gt 10 ] || wrong "the page could not be read"
for lib in libreap libreap-malloc; do
    readelf -nW "$build/.libs/$lib.so" | awk '
        /Provider:/ { provider = $NF }
        $1 == "Name:" { name = $2 }
        $1 == "Arguments:" { if (provider == "reap") print name, NF - 1 }' | sort -u >"$tmp/probes"
    diff "$tmp/promised" "$tmp/probes" >"$tmp/diff" || { wrong "$lib.so: (< promised, > there)"; cat "$tmp/diff"; }
done

# in_gdb WHAT ARGUMENT...: what it says goes to $tmp/gdb. False: there is none, or it may not trace.
in_gdb() {
    what=$1
    shift
    ! lacks gdb "$what in gdb" || return
    gdb -q -nx -batch "$@" >"$tmp/gdb" 2>&1 </dev/null
    ! grep -E 'Could not (trace|attach)|ptrace: ' "$tmp/gdb" || { echo "skipped: gdb may not trace here: $what in gdb"; return 1; }
}

# print_at PROBE FORMAT: gdb's commands that print a probe's name and arguments, whenever it is passed.
print_at() {
    printf 'break -probe-stap %s\ncommands\nsilent\nprintf "%s %s\\n"' "$1" "${1#*:}" "$2"
    # shellcheck disable=SC2016  # a name of gdb's
    seq -s '' -f ', $_probe_arg%g' 0 "$(echo "$2" | wc -w | xargs expr -1 +)"
    printf 'continue\nend\n'
}

# misuses twice: the one misuse, seen from outside, and nothing on the fast path.
if in_gdb reap:misuse -ex "set environment LD_PRELOAD $build/.libs/libreap-malloc.so" \
    -ex 'set startup-with-shell off' -ex 'set breakpoint pending on' -ex 'break -probe-stap reap:misuse' \
    -ex run -ex 'printf "seen %s: %s\n", $_probe_arg0, $_probe_arg2' -ex kill \
    --args "$build/tests/security/misuses" twice small; then
    grep -q '^seen free: freed twice' "$tmp/gdb" || { wrong "gdb does not see reap:misuse"; tail "$tmp/gdb"; }
fi

profile=$build/.libs/libreap-profile.so
if [ -e "$profile" ]; then
    sed -n 's/^\.BI \([a-z_]*:[a-z_]*\)(\(.*\)/\1 \2/p' "$srcdir/doc/libreap-profile.7" |
        awk '{ name = $1; $1 = ""; print name, gsub(/,/, "") + 1 }' | sort >"$tmp/promised"
    readelf -nW "$profile" | awk '
        /Provider:/ { provider = $NF }
        $1 == "Name:" { name = $2 }
        /Semaphore: 0x0*$/ { name = name " without a semaphore" }
        $1 == "Arguments:" { print provider ":" name, NF - 1 }' | sort -u >"$tmp/probes"
    diff "$tmp/promised" "$tmp/probes" >"$tmp/said" || wrong "libreap-profile.so: (< promised, > there)"
    printf '\n\n' >"$tmp/lines"
    cat >"$tmp/commands" <<END
set exec-wrapper env LD_PRELOAD="$build/.libs/libreap-malloc.so $profile" REAP_PROFILE=$tmp/at-exit REAP_PROFILE_BYTES=65536
tbreak use_freed
run freed <$tmp/lines
$(print_at otel_memory:alloc '%p %lu %lu')
$(print_at otel_memory:free %p)
$(print_at reap:sampled '%p %lu %s')
tbreak exit
continue
delete
printf "semaphores %d %d %d\\n", *(short *)&otel_memory_alloc_semaphore, *(short *)&otel_memory_free_semaphore, *(short *)&reap_sampled_semaphore
continue
END
    if in_gdb "probes of sampled objects" -x "$tmp/commands" "$build/tests/profile/profiled"; then
        python3 - "$tmp/gdb" <<'PYTHON' || wrong "sampled objects, as gdb sees them"
import math, re, sys
text = open(sys.argv[1]).read()
live, allocs, names, weight = {}, [], [], 0
for word, at, rest in re.findall(r"^(alloc|free|sampled) (0x[0-9a-f]+) ?(.*)$", text, re.M):
    if word == "alloc":
        size, part = map(int, rest.split())
        assert part >= size and part >= 60000 and at not in live, (at, size, part)
        weight += part
        live[at] = size
        allocs.append((at, str(size)))
    elif word == "free":
        assert live.pop(at, None), "freed, and was not sampled"
    else:
        size, name = rest.split(" ", 1)
        names.append((at, size))
        assert name == "freed" or size != "208", name
byte = int(re.search(r"^freed \d+ \d+ \d+ (\d+) ", text, re.M)[1])
print(f"{len(allocs)} sampled, {len(live)} live, a weight of {weight} for {byte} bytes")
assert allocs == names and len(allocs) > 300 and 30 < len(live) < len(allocs) / 2
assert abs(weight - byte) < 5.5 * math.sqrt(byte * 66000) + byte / 100
assert "\nsemaphores 0 0 0\n" in text and "exited normally" in text
PYTHON
    fi

    # Its semaphores stay up, and the next tracer finds them so.
    semaphores='*(short *)&otel_memory_alloc_semaphore, *(short *)&otel_memory_free_semaphore, *(short *)&reap_sampled_semaphore'
    mkfifo "$tmp/input"
    env LD_PRELOAD="$build/.libs/libreap-malloc.so $profile" REAP_PROFILE="$tmp/killed" REAP_PROFILE_BYTES=1024 \
        "$build/tests/profile/profiled" freed <"$tmp/input" >"$tmp/out" &
    exec 9>"$tmp/input"
    within 60 test -s "$tmp/out"
    pid=$(cat "$tmp/out")
    set -- -p "$pid"
    for each in otel_memory_alloc otel_memory_free reap_sampled; do set -- "$@" -ex "set var *(short *)&${each}_semaphore = 1"; done
    # shellcheck disable=SC2016  # gdb's shell
    if in_gdb "a tracer that is killed" "$@" -ex 'shell kill -9 $PPID'; then
        echo >&9
        within 60 has 1 "$tmp/out" '^freed '
        in_gdb "the next tracer" -p "$pid" -ex "printf \"semaphores %d %d %d\\n\", $semaphores"
        grep -q '^semaphores 1 1 1$' "$tmp/gdb" || { wrong "the semaphores of a tracer that was killed"; tail "$tmp/gdb"; }
        echo >&9
        wait $! || wrong "a tracer is killed, and the program with it"
        gzip -t <"$tmp/killed" || wrong "no profile after a tracer that was killed"
    fi
    exec 9>&-
fi
exit $bad
