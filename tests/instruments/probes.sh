#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The USDT probes are in both libraries, all of them, each with its arguments and of the provider reap; and a
# tracer (gdb) that stops at one finds there what the page says. Those of libreap-profile have semaphores, and what they
# say of sampled objects agrees; a tracer that goes leaves the program as it was.
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

# misuses twice: the one misuse, seen from outside, and nothing on the fast path.
if ! lacks gdb "reap:misuse in gdb"; then
    gdb -q -nx -batch -ex "set environment LD_PRELOAD $build/.libs/libreap-malloc.so" \
        -ex 'set startup-with-shell off' -ex 'set breakpoint pending on' -ex 'break -probe-stap reap:misuse' \
        -ex run -ex 'printf "seen %s: %s\n", $_probe_arg0, $_probe_arg2' -ex kill \
        --args "$build/tests/security/misuses" twice small >"$tmp/gdb" 2>&1 </dev/null
    if grep -qE 'Could not trace|ptrace: ' "$tmp/gdb"; then
        echo "skipped: gdb may not trace here: reap:misuse in gdb"
    else
        grep -q '^seen free: freed twice' "$tmp/gdb" || { wrong "gdb does not see reap:misuse"; tail "$tmp/gdb"; }
    fi
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
    if ! lacks gdb "probes of sampled objects in gdb"; then
        printf '\n\n' >"$tmp/lines"
        cat >"$tmp/commands" <<END
set exec-wrapper env LD_PRELOAD="$build/.libs/libreap-malloc.so $profile" REAP_PROFILE=$tmp/at-exit REAP_PROFILE_BYTES=65536
tbreak use_freed
run freed <$tmp/lines
break -probe-stap otel_memory:alloc
commands
silent
printf "alloc %p %lu %lu\\n", \$_probe_arg0, \$_probe_arg1, \$_probe_arg2
continue
end
break -probe-stap otel_memory:free
commands
silent
printf "free %p\\n", \$_probe_arg0
continue
end
break -probe-stap reap:sampled
commands
silent
printf "sampled %p %lu %s\\n", \$_probe_arg0, \$_probe_arg1, \$_probe_arg2
continue
end
tbreak exit
continue
delete
printf "semaphores %d %d %d\\n", *(short *)&otel_memory_alloc_semaphore, *(short *)&otel_memory_free_semaphore, *(short *)&reap_sampled_semaphore
continue
END
        gdb -q -nx -batch -x "$tmp/commands" "$build/tests/profile/profiled" >"$tmp/said" 2>&1 </dev/null
        if grep -qE 'Could not trace|ptrace: ' "$tmp/said"; then
            echo "skipped: gdb may not trace here: probes of sampled objects in gdb"
        else
            python3 - "$tmp/said" <<'PYTHON' || wrong "sampled objects, as gdb sees them"
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
    fi
fi
exit $bad
