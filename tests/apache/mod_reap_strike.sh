#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# At the moment that memory is short the error log has the largest reaps, and with the heap profile on the largest
# stacks: of a request beyond its limit those below it alone; where a pool gets no memory, a child has grown, or the
# control group is at memory.high or memory.max, those of a whole child. The group is made up, in a directory over
# /sys/fs/cgroup: what it says is seen at the end of a request, or by the first process alone, and told once a minute.
. "${srcdir:-.}/tests/apache/mod_reap_lib.sh"
need_file "$httpd_libs/libreap-profile.so" libreap-profile
all="$httpd_libs/libreap-malloc.so:$reaps:$httpd_libs/libreap-ask.so:$httpd_libs/libreap-profile.so"
export REAP_PROFILE="$tmp/at-exit" REAP_PROFILE_BYTES=4096

start() {
    touch "$dir/htdocs/stay"
    httpd_start "$dir" "$all"
    # Twenty megabytes of another request; some child's, or the only one's.
    curl -sN -o "$dir/stays" "http://127.0.0.1:$httpd_port/runaway?quiet=300&begin&stay=100000" &
    client=$!
    within 60 test -s "$dir/stays"
}
finish() {
    rm -f "$dir/htdocs/stay"
    wait $client
    httpd_end_well
}
stack='child [0-9]+: stack: [0-9]+ bytes in [0-9]+ objects of'

run_limit() {
    reap_prepare "$tmp/$1-limit" "$1" 'ReapStatus On' '<LocationMatch "^/runaway/few">' 'ReapLimitRequest 4M' '</LocationMatch>'
    start
    ask '/runaway/few?below=200'
    broken
    expect 1 "$(logged "$stack runaway-subpool: .*alloc.* < ap_run_handler" 1)" 'the stack of the subpool'
    largest=$(sed -nE 's/.*: stack: ([0-9]+) bytes.*/\1/p' "$dir/error.log" | head -n 1)
    { [ "${largest:-0}" -gt 1900000 ] && [ "$largest" -lt 2300000 ]; } || complain "the largest stack of the request has '$largest' bytes"
    expect 0 "$(grep -E "$stack" "$dir/error.log" | grep -cvE 'objects of (request|runaway-subpool|\(no name\)|[a-z_]+):')" 'stacks of others'
    [ "$(grep -cE "$stack" "$dir/error.log")" -le 10 ] || complain "more than ten stacks"
    ask '/runaway/few?below=200'
    expect 1 "$(grep -cE 'the largest reaps' "$dir/error.log")" 'the largest reaps, once a minute'
    finish
}
broken() { case $result in 18 | 52 | 55 | 56) ;; *) complain "$path: curl ended with $result, status $status" ;; esac; }

run_out() {
    reap_prepare "$tmp/$1-out" "$1" 'ReapStatus On' 'ThreadStackSize 262144'
    ulimit -S -v 1000000
    httpd_start "$dir" "$all"
    ulimit -S -v unlimited
    ask '/runaway?quiet=20000'
    broken
    expect 1 "$(logged "no memory for GET /runaway.quiet=20000 from 127.0.0.1; this child ends" 1)" 'the line'
    expect 1 "$(logged "$stack request: (pool_alloc_slow|libreap-apr.so.*\+0x[0-9a-f]+) < (handler|mod_runaway.so\+0x[0-9a-f]+) < ap_run_handler" 1)" 'the largest stack'
    httpd_stop
}

# What a library keeps of malloc's ends the child.
run_grown() {
    reap_prepare "$tmp/$1-grown" "$1" 'ReapStatus On' 'ReapChildLimit 100M'
    httpd_start "$dir" "$all"
    ask '/runaway?leak=2000'
    expect 1 "$(logged 'over ReapChildLimit 104857600' 1)" 'the line of the child'
    expect 1 "$(logged "$stack malloc for request /runaway: .* < ap_run_handler" 1)" 'the largest stack'
    httpd_end_well
}

apache2=$APACHE2
# events HIGH MAX KILLED: what the kernel would write, in the file that httpd has open.
events() { printf 'low 0\nhigh %03d\nmax %03d\noom 0\noom_kill %03d\noom_group_kill 0\n' "$@" 1<>"$group/memory.events"; }
requests() {
    for _ in 1 2 3 4; do
        ask /page.txt
        sleep 1 # then a child looks again, at the end of its next request
    done
}

look_at_log() {
    expect 1 "$(grep -cE 'the control group was at memory.high 20 times more, at memory.max 3 times, and the kernel killed 1 processes for it; child [0-9]+ has most, [0-9]+ kB' "$dir/error.log")" 'the line'
    child=$(sed -nE 's/.*for it; child ([0-9]+) has most.*/\1/p' "$dir/error.log")
    expect 1 "$(logged "child $child: the largest reaps: (.*, )?request of GET /runaway\?quiet=300" 1)" 'the largest reaps'
    expect 1 "$(logged "child $child: stack: (1[89]|2[01])[0-9]{6} bytes in [0-9]+ objects of request: .*alloc.* < ap_run_handler" 1)" 'the largest stack'
    events 26 3 1
    requests
    expect 1 "$(grep -c 'memory.high' "$dir/error.log")" 'lines of a minute'
}
run_group() {
    group=$tmp/$1-$2-$3-group apache=$tmp/$1-$2-$3-apache
    mkdir "$group"
    events 5 0 0
    cat >"$apache" <<END
#!/bin/sh
exec unshare -m sh -c 'mount --bind $group /sys/fs/cgroup && exec "\$0" "\$@"' $apache2 "\$@"
END
    chmod 755 "$apache"
    reap_prepare "$tmp/$1-$2-$3" "$1" 'ReapStatus On'
    APACHE2=$apache
    start
    requests # the counts from before are known
    expect 0 "$(grep -c 'memory.high' "$dir/error.log")" 'lines of nothing'
    events 25 3 1
    [ "$2" = first ] || requests
    within 60 has 1 "$dir/error.log" 'memory.high' && look_at_log
    teller=$(sed -n 's/.*pid \([0-9]*\):.*control group.*/\1/p' "$dir/error.log")
    case $teller in "$httpd_pid") teller=first ;; ?*) teller=child ;; esac
    finish
}
# The first process looks as well, and may be quicker than a child: not three times.
run_groups() {
    for try in 1 2 3; do
        run_group "$1" "$2" $try
        [ "$teller" != "$2" ] || return
        [ -n "$teller" ] && [ $bad = 0 ] || break
    done
    complain "it is not the $2 that tells, but ${teller:-nobody}"
}

under() {
    mpm=${1%-*} what=${1#*-} mode=$1
    case $what in
        limit) run_limit "$mpm" ;;
        out) run_out "$mpm" ;;
        grown) run_grown "$mpm" ;;
        *) lacks_namespace || run_groups "$mpm" "$what" ;;
    esac
}
lacks_namespace() {
    unshare -m true 2>/dev/null && return 1
    echo "skipped: a mount namespace may not be made here: $mode"
}
at_once under ${1:-event-limit prefork-limit event-out event-grown event-child worker-child prefork-child event-first}
exit $bad
