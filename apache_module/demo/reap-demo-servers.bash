# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2154  # variables of reap-demo
# reap-demo's part: Apache servers, one child each, on 127.0.0.1.

declare -A server_pid server_port server_child # by name
load_pid=''

in_use() {
    grep -qi "$(printf ':%04X ' "$1")" /proc/net/tcp /proc/net/tcp6 2>/dev/null
}

# Below those that connections get by themselves, and those of tests that run side by side.
free_port() {
    local port
    for _ in {1..100}; do
        port=$((2000 + RANDOM % 2000))
        in_use $port || { echo $port; return; }
    done
    fail "no free port"
}

# configure NAME MPM FREE MODULES: one child in both MPMs, so that its memory is all of the server's.
configure() {
    local name=$1 mpm=$2 free=$3 module workers='StartServers 1
ServerLimit 1'
    case $mpm in
        prefork) workers+=$'\nMinSpareServers 1\nMaxRequestWorkers 1' ;;
        event) workers+=$'\nThreadsPerChild 16\nMaxRequestWorkers 16\nMinSpareThreads 1\nMaxSpareThreads 16' ;;
    esac
    {
        for module in mpm_$mpm authz_core mime dir filter include autoindex $4; do
            echo "LoadModule ${module}_module $httpd_modules/mod_$module.so"
        done
        cat <<CONFIGURATION
LoadModule reap_lua_module $dir/lib/mod_reap_lua.so
$workers
ServerRoot $dir/$name
ServerName localhost
Listen 127.0.0.1:${server_port[$name]}
PidFile $dir/$name/pid
DefaultRuntimeDir $dir/$name
Mutex file:$dir/$name default
ErrorLog $dir/$name/error.log
MaxKeepAliveRequests 0
Timeout 20
DocumentRoot $dir/site
TypesConfig $dir/types
<Directory $dir/site>
    Require all granted
    Options Indexes Includes
    IndexOptions FancyIndexing HTMLTable NameWidth=*
    AddOutputFilter INCLUDES .shtml
    AddHandler reap-lua .lua
</Directory>
ReapLuaFree $free
ReapLuaReport on
CONFIGURATION
    } >"$dir/$name/httpd.conf"
}

# start NAME stock|reaps MPM FREE [MODULES [LINES]]: LINES go to its configuration, and server_memory, if set,
# is the limit of its data in KB.
start() {
    local name=$1 pools=$2 preload=() left
    [[ $pools == stock ]] || preload=(LD_PRELOAD="$dir/lib/${adaptor##*/}" LD_LIBRARY_PATH="$dir/lib")
    mkdir -p "$dir/$name"
    for left in {4..0}; do
        server_port[$name]=$(free_port) || exit 1
        configure "$name" "$3" "$4" "${5-}"
        echo "${6-}" >>"$dir/$name/httpd.conf"
        launch "$name" "${preload[@]}" &
        server_pid[$name]=$!
        answers "$name" && break
        ((left)) && grep -q AH00072 "$dir/$name/output" && continue # somebody else has the port since
        fail "apache2 did not start: $(cat "$dir/$name/output" "$dir/$name/error.log" 2>/dev/null | tail -n 1)"
    done
    child=$(pgrep -P "${server_pid[$name]}") || fail "the server has no child"
    server_child[$name]=$child
    if [[ $pools == reaps ]]; then
        grep -q libreap-apr "/proc/$child/maps" || fail "the server runs without libreap-apr"
    fi
}

# launch NAME VARIABLE=VALUE...: becomes the server.
launch() {
    local name=$1
    shift
    [[ -z ${server_memory-} ]] || ulimit -d "$server_memory"
    exec setsid env "$@" "$apache2" -f "$dir/$name/httpd.conf" -DFOREGROUND >"$dir/$name/output" 2>&1
}

answers() {
    local name=$1
    for _ in {1..100}; do
        get "$name" /page.html >/dev/null 2>&1 && return
        kill -0 "${server_pid[$name]}" 2>/dev/null || return 1
        sleep 0.1
    done
    return 1
}

# Gracefully, for some seconds: by TERM a stock event child crashes now and then, as it closes sockets that
# its threads are done with.
stop() {
    local pid=${server_pid[$1]}
    kill -WINCH "$pid" 2>/dev/null
    for _ in {1..50}; do
        kill -0 "$pid" 2>/dev/null || break
        sleep 0.1
    done
    kill "$pid" 2>/dev/null
    wait "$pid" 2>/dev/null
    unset "server_pid[$1]"
}

# What a server's log holds of a pattern; without one, of crashes and misuse.
trouble() {
    grep -hE "${2-exit signal|:(emerg|alert|crit|error)\]|(^|\] )reap: }" "$dir/$1/error.log" "$dir/$1/output" 2>/dev/null
}

# get NAME PATH: the body of the answer, when it is 200.
get() {
    local status socket
    exec {socket}<>"/dev/tcp/127.0.0.1/${server_port[$1]}" || return
    printf 'GET %s HTTP/1.0\r\nHost: localhost\r\n\r\n' "$2" >&$socket
    read -r _ status _ <&$socket
    [[ $status == 200 ]] && sed '1,/^\r$/d' <&$socket
    local result=$?
    exec {socket}>&-
    return $result
}

# Resident memory in KB, exactly where /proc allows that: the counters behind ps may be 250 KB off.
resident() {
    local name value
    if { : <"/proc/$1/smaps_rollup"; } 2>/dev/null; then
        while read -r name value _; do [[ $name == Rss: ]] && echo "$value" && return; done <"/proc/$1/smaps_rollup"
    else
        read -r _ value _ <"/proc/$1/statm" && echo $((value * 4))
    fi
}

# CPU time of a process so far, in clock ticks.
ticks() {
    local stat
    stat=$(<"/proc/$1/stat")
    read -ra stat <<<"${stat##*)}" # the name before it may hold blanks
    echo $((stat[11] + stat[12]))
}

median() { sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }

# A pause without a process of its own: nothing ever comes out of this pipe.
exec {silence}<> <(:)
pause() { read -r -t "$1" <&"$silence"; }
