#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Programs as they are, with libreap-malloc preloaded, in which the n-th system call fails, for every n until none
# does (fault_run.c): each path in turn, and with REAP_TEST_WORLD set all of them.
. "${srcdir:-.}/tests/support/preload-lib.sh"

quiet=munmap,mremap,madvise,membarrier,openat,sched_getaffinity
fill="$build/tests/preload/cgroup_memory 48 fill" # by four threads, each block NULL with ENOMEM or there
# runs PATH CALLS WHICH STEP PROGRAM...
runs() {
    path=$1
    shift
    REAP_OPTIONS=$(options_of "$path") FAULT_PRELOAD=$preload "$build/tests/fault/fault_run" "$@" >"$tmp/out" 2>&1
    status=$?
    [ $status != 77 ] || { echo "skipped: no filter of system calls: $(cat "$tmp/out")"; exit 77; }
    echo "$path: $(tail -n 1 "$tmp/out")"
    if [ $status != 0 ]; then
        tail -n 20 "$tmp/out"
        bad=1
    fi
}

# A process that waits for its child's output finds all of it, whatever fails beside memory.
cat >"$tmp/work.sh" <<'END'
answer=$(i=0; while [ $i -lt 300 ]; do echo "line $i"; i=$((i + 1)); done | sort | tail -n 1)
[ "$answer" = "line 99" ]
END

step=1
[ -n "${REAP_TEST_WORLD:-}" ] || { paths=default step=3; }
[ -z "${REAP_TEST_SHORT:-}" ] || step=8
for path in $paths; do
    runs "$path" mmap one "$step" $fill
    runs "$path" mmap on "$step" $fill
    runs "$path" $quiet one $((step * 3)) $fill
    runs "$path" all on $((step * 5)) $fill
    runs "$path" $quiet on 5 sh "$tmp/work.sh"
    ! lacks python3 "$path, calls that fail in it" || continue
    runs "$path" $quiet one $((step * 10)) python3 -c 'assert len([str(i) for i in range(100000)]) == 100000'
    runs "$path" mmap crash "$step" python3 -c 'assert len([str(i) for i in range(100000)]) == 100000'
done
exit $bad
