# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2154  # variables of reap-demo
# reap-demo's part: what it says of its figures, on the terminal and on a page.

bold() { if [[ -t 1 ]]; then printf '\033[1m%s\033[0m\n' "$*"; else echo "$*"; fi; }

# 13496 as "13,496"
thousands() {
    local n=$1
    while [[ $n =~ ^(-?[0-9]+)([0-9]{3}.*)$ ]]; do n=${BASH_REMATCH[1]},${BASH_REMATCH[2]}; done
    echo "$n"
}

kilobytes() { echo "$(thousands "$1") KB"; }
megabytes() { awk -v kb="$1" 'BEGIN { printf "%.1f MB", kb / 1024 }'; }

row() { printf '  %-40s %15s %16s\n' "$@"; }

# --- one connection ---------------------------------------------------------------------------------

# A figure of memory.NAME: the means after a quarter of the requests and before the end, or the bytes a request
# between these. With the last request the connection ends, and stock pools give its memory back.
connection() {
    awk -v what="$2" -v all="$h2_requests" '
        $2 >= 0.2 * all && $2 <= 0.3 * all { early += $3; early_at += $2; early_n++ }
        $2 >= 0.9 * all && $2 < all { late += $3; late_at += $2; late_n++ }
        END {
            if (!early_n || !late_n) exit 1
            early /= early_n; early_at /= early_n; late /= late_n; late_at /= late_n
            if (what == "early") printf "%d", early
            if (what == "late") printf "%d", late
            if (what == "each") printf "%.1f", (late - early) * 1024 / (late_at - early_at) }' "$dir/memory.$1" ||
        fail "too few figures of $1: fewer than two in a quarter of the time"
}

show_connection() {
    local stock=h2-stock reaps=h2-reaps
    bold "One HTTP/2 connection, $(thousands "$h2_requests") requests: memory (RSS) of the child"
    row '' stock reaps
    row 'after a quarter of them' "$(megabytes "$(connection $stock early)")" "$(megabytes "$(connection $reaps early)")"
    row 'at the end' "$(megabytes "$(connection $stock late)")" "$(megabytes "$(connection $reaps late)")"
    row 'bytes more for each request' "$(connection $stock each)" "$(connection $reaps each)"
}

# --- a request without end --------------------------------------------------------------------------

# How the runaway requests ended.
ends() {
    local at status list=''
    for at in $runaway_at; do
        status=$(cat "$dir/answer.$1.$at")
        [[ ${status:-0} != 0 ]] || status="broken off"
        [[ $list != *"$status" ]] || continue # the same again
        list+=${list:+, }$status
    done
    echo "$list"
}

# "2 of 1,204": requests that failed.
of_all() { echo "$(broken "$1") of $(thousands $(($(broken "$1") + $(answered "$1"))))"; }

show_runaway() {
    local stock=over-stock limit=over-limit
    bold "A page that takes memory without end, at second $runaway_at, while others go on"
    row '' stock "limit of $request_limit MB"
    row 'memory (RSS) at its highest' "$(megabytes "$(highest $stock)")" "$(megabytes "$(highest $limit)")"
    row 'of it in pools of the page when it ended' - "$(megabytes "$(held_beyond $limit)")"
    row 'children that died' "$(crashes $stock)" "$(crashes $limit)"
    row 'how it ended' "$(ends $stock)" "$(ends $limit)"
    row "requests of $clients other clients, failed" "$(of_all latency.$stock)" "$(of_all latency.$limit)"
    row 'downloads of 3 others, broken off' "$(of_all downloads.$stock)" "$(of_all downloads.$limit)"
    row "the others' slowest answer" "$(slowest $stock) ms" "$(slowest $limit) ms"
    echo "  each server may have $memory_of_server MB of data (ulimit -d), as in a small container"
}

# --- the case ---------------------------------------------------------------------------------------

declare -A case_names=([case-stock]="stock pools, no free" [case-kept]="reaps, no free"
    [case-freed]="reaps, with apr_pfree")

show_case() {
    local name stock freed runs
    bold "The case: the 1000th prime (7919) by bignums written in Lua, one request"
    row '' 'growth of child' 'held by request'
    for name in case-stock case-kept case-freed; do
        row "${case_names[$name]}" \
            "$(kilobytes "$(median <"$dir/growth.$name")")" "$(kilobytes $(($(median <"$dir/held.$name") / 1024)))"
    done
    stock=$(median <"$dir/growth.case-stock") freed=$(median <"$dir/growth.case-freed")
    runs="in a fresh child"
    ((repeats == 1)) || runs="median of $repeats fresh children"
    awk -v a="$stock" -v b="$freed" -v runs="$runs" 'BEGIN {
        printf "  RSS at its highest during the request, %s; ", runs
        if (b > 0) printf "with frees 1/%.0f of the growth on stock pools\n", a / b
        else print "with frees no growth" }'
}

# --- rates ------------------------------------------------------------------------------------------

runs_of_rates() { if ((rounds == 1)); then echo "one run"; else echo "median of $rounds runs"; fi; }

show_rates() {
    local i
    bold "The same Apache ($server_version, event MPM), on its own pools and on reaps"
    printf '  %-22s %27s   %27s\n' '' '---- requests per second ---' '------ CPU per request -----'
    printf '  %-22s %10s %10s %6s   %10s %10s %6s\n' '' stock reaps ratio stock reaps ratio
    for i in "${!pages[@]}"; do
        awk -v name="${page_names[i]}" \
            -v a="$(median <"$dir/rate.stock.$i")" -v b="$(median <"$dir/rate.reaps.$i")" \
            -v c="$(median <"$dir/cpu.stock.$i")" -v d="$(median <"$dir/cpu.reaps.$i")" 'BEGIN {
            printf "  %-22s %10.0f %10.0f %6.2f   %7.0f us %7.0f us %6.2f\n", name, a, b, b / a, c, d, d / c }'
    done
    awk -v a="$rss_stock" -v b="$rss_reaps" 'BEGIN {
        printf "  %-22s %7.1f MB %7.1f MB %6.2f\n", "RSS of the child after", a / 1024, b / 1024, b / a }'
    echo "  $(runs_of_rates) of $seconds s with ${load_tool##*/}, 8 connections; $failures failed"
}

# --- was the machine busy? --------------------------------------------------------------------------

# Clock ticks so far: of all programs, of the demo's, stolen by the hypervisor, and all there were.
cpu_ticks() {
    local own stat
    stat=$(<"/proc/$$/stat")
    read -ra stat <<<"${stat##*)}"
    own=$((stat[11] + stat[12] + stat[13] + stat[14]))
    awk -v own=$own '/^cpu / { print $2 + $3 + $4, own, $9, $2 + $3 + $4 + $5 + $6 + $7 + $8 + $9 }' /proc/stat
}

# The widest ratio of two rounds of the same load.
widest_spread() {
    local file
    for file in "$dir"/rate.*; do
        sort -n "$file" | awk '{ v[NR] = $1 } END { print v[NR] / v[1] }'
    done | sort -n | tail -n 1
}

# Sets verdict: empty, or in what way the machine was too busy. Called when all servers have ended.
judge_machine() {
    # shellcheck disable=SC2046,SC2086  # words
    verdict=$(awk -v spread="$(widest_spread)" 'BEGIN {
        others = 100 * (ARGV[5] - ARGV[1] - (ARGV[6] - ARGV[2])) / (ARGV[8] - ARGV[4])
        stolen = 100 * (ARGV[7] - ARGV[3]) / (ARGV[8] - ARGV[4])
        if (others >= 10) out = out sprintf(", other programs took %.0f %% of its CPUs", others)
        if (stolen >= 3) out = out sprintf(", its host took %.0f %% away", stolen)
        if (spread > 1.25) out = out sprintf(", rounds of one load differ by up to %.0f %%", 100 * (spread - 1))
        print substr(out, 3) }' $ticks_before $(cpu_ticks))
    [[ -z $verdict ]] || verdict="The machine was too busy for exact figures of speed: $verdict."
}

# --- failures ---------------------------------------------------------------------------------------

# Any crash or misuse of these is the demo's failure; the stock server of the runaway is meant to crash.
show_failures() {
    local name pattern
    [[ ! -s $dir/failures ]] || sed 's/^/reap-demo: /' "$dir/failures" >&2
    for name in h2-stock h2-reaps stock reaps over-limit; do
        pattern='exit signal|:(emerg|alert|crit|error)\]|(^|\] )reap: '
        [[ $name != over-limit ]] || pattern='exit signal|(^|\] )reap: '
        trouble $name "$pattern" >"$dir/trouble" || continue
        failures=$((failures + 1))
        sed "s/^/reap-demo: the $name server: /" "$dir/trouble" | head -n 5 | tee -a "$dir/reason" >&2
    done
}

# What the limit is for: if it fails its purpose, so does the demo.
judge_runaway() {
    [[ $(broken latency.over-limit) == 0 ]] || fail "with a limit, others' requests failed: $(of_all latency.over-limit)"
    [[ $(broken downloads.over-limit) == 0 ]] || fail "with a limit, downloads broke off: $(of_all downloads.over-limit)"
    [[ $(crashes over-limit) == 0 ]] || fail "with a limit, a child crashed"
}

# --- the page ---------------------------------------------------------------------------------------

# Names and values for reap-demo-page, a tab between.
write_facts() {
    local name i
    {
        printf '%s\t%s\n' version "$server_version" machine "$(machine)" date "$(date '+%Y-%m-%d %H:%M')" \
            verdict "$verdict" requests "$h2_requests" clients "$clients" limit "$request_limit" \
            memory "$memory_of_server" at "$runaway_at" seconds "$runaway_seconds" runs "$(runs_of_rates) of $seconds s" failures "$failures"
        for name in h2-stock h2-reaps; do
            printf '%s\t%s\n' "each.$name" "$(connection $name each)" "late.$name" "$(connection $name late)"
        done
        for name in over-stock over-limit; do
            printf '%s\t%s\n' "highest.$name" "$(highest $name)" "crashes.$name" "$(crashes $name)" \
                "ends.$name" "$(ends $name)" "requests.$name" "$(of_all latency.$name)" \
                "downloads.$name" "$(of_all downloads.$name)" "slowest.$name" "$(slowest $name)"
        done
        printf 'held.over-limit\t%s\n' "$(held_beyond over-limit)"
        for name in case-stock case-kept case-freed; do
            printf 'case\t%s\t%s\t%s\n' "${case_names[$name]}" "$(median <"$dir/growth.$name")" \
                "$(($(median <"$dir/held.$name") / 1024))"
        done
        for i in "${!pages[@]}"; do
            printf 'rate\t%s\t%s\t%s\t%s\t%s\n' "${page_names[i]}" "$(median <"$dir/rate.stock.$i")" \
                "$(median <"$dir/rate.reaps.$i")" "$(median <"$dir/cpu.stock.$i")" "$(median <"$dir/cpu.reaps.$i")"
        done
        printf '%s\t%s\n' rss.stock "$rss_stock" rss.reaps "$rss_reaps"
    } >"$dir/facts"
}

machine() {
    local model
    model=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)
    echo "$(nproc) CPUs${model:+ ($model)}, Linux $(uname -r)"
}

# write_page: on the file that was opened before root's rights were dropped.
write_page() { "$here/reap-demo-page" "$dir" >&"$page_fd"; }
