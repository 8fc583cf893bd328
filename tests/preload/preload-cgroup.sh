#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# In a control group with little memory: with memory_limit=refuse malloc says ENOMEM and recovers; by default
# what is unused goes back before the kernel would kill. That it would is seen with memory_limit=ignore. Who wants
# more than there is is killed by the kernel, or told no, and ends in no other way.
. "${srcdir:-.}/tests/support/preload-lib.sh"
mib=64

# A group of our own.
mount=/sys/fs/cgroup
group=$mount/reap-test-$$
if [ -e "$mount/memory.max" ] || grep -qs memory "$mount/cgroup.subtree_control" && mkdir "$group" 2>/dev/null; then
    at_exit='rmdir "$group"'
    echo $((mib << 20)) 2>/dev/null >"$group/memory.max" || { echo "skipped: no memory controller in $mount"; exit 77; }
    [ ! -e "$group/memory.swap.max" ] || echo 0 >"$group/memory.swap.max"
else
    echo "skipped: no control group of version 2 can be made below $mount"
    exit 77
fi

# inside OPTIONS WHAT: the program there; its status.
inside() {
    (
        echo 0 >"$group/cgroup.procs" || exit 98
        options=$(options_of "$path")
        REAP_OPTIONS=${options:+$options,}purge_ms=3600000,$1 LD_PRELOAD=$preload
        export REAP_OPTIONS LD_PRELOAD
        exec "$top_builddir/tests/preload/cgroup_memory" $mib "$2"
    ) >"$tmp/out" 2>&1
}

expect() {
    wanted=$1
    shift
    inside "$@"
    status=$?
    if [ $status = "$wanted" ]; then
        echo "$path: $* ends with $status"
    else
        echo "$path: $* ends with $status, not $wanted"
        head -n 20 "$tmp/out"
        bad=1
    fi
}
# Killed by the kernel is 137.
expect_end() {
    inside "$@"
    status=$?
    echo "$path: $* ends with $status"
    case $status in
    0) grep -q 'came to its end' "$tmp/out" && return ;;
    137) [ ! -s "$tmp/out" ] && return ;;
    esac
    head -n 20 "$tmp/out"
    bad=1
}
for path in $paths; do
    expect 0 memory_limit=refuse refuse
    expect 0 memory_limit=purge reuse
    expect 0 memory_limit=refuse fill
    expect_end memory_limit=purge fill
    expect_end memory_limit=ignore fill
done
expect 137 memory_limit=ignore reuse
exit $bad
