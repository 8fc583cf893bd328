# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2154  # variables of reap-demo
# reap-demo's part: requests a second, CPU time and memory under the same load.

# load NAME PATH: sets rate, cpu (us per request) and failed. In the background, so that a signal is heard at once.
load() {
    local url=http://127.0.0.1:${server_port[$1]}$2 out=$dir/load child=${server_child[$1]} before requests
    before=$(ticks "$child")
    case $load_tool in
        */wrk) timeout 60 "$load_tool" -t1 -c8 -d"${seconds}s" "$url" >"$out" 2>&1 & ;;
        */ab) timeout 60 "$load_tool" -q -k -c8 -t"$seconds" -n10000000 "$url" >"$out" 2>&1 & ;;
    esac
    load_pid=$!
    wait "$load_pid" || fail "${load_tool##*/} failed on $url: $(tail -n 1 "$out")"
    load_pid=''
    rate=$(awk '/^Requests\/sec:|^Requests per second:/ { for (i = 1; i <= NF; i++) if ($i + 0 > 0) { print $i; exit } }' "$out")
    failed=$(awk '/Non-2xx|Failed requests:/ { n += $NF }
        /Socket errors:/ { gsub(",", ""); n += $4 + $6 + $8 + $10 } END { print n + 0 }' "$out")
    requests=$(awk '/ requests in / { print $1 } /^Complete requests:/ { print $3 }' "$out")
    ((requests > 0)) || fail "no answer from $url: $(trouble "$1" | tail -n 1)"
    cpu=$(awk -v ticks=$(($(ticks "$child") - before)) -v hz="$(getconf CLK_TCK)" -v n="$requests" \
        'BEGIN { print ticks * 1e6 / hz / n }')
}

pages=(/page.html /ssi.shtml /index/)
page_names=("static file of 2 KB" "SSI, two includes" "index of 1000 entries")

compare_answers() {
    local page
    for page in "${pages[@]}"; do
        get stock "$page" >"$dir/answer.stock" || fail "no answer from stock pools to $page"
        get reaps "$page" >"$dir/answer.reaps" || fail "no answer from reaps to $page"
        cmp -s "$dir/answer.stock" "$dir/answer.reaps" || fail "the answers to $page differ"
    done
}

# One after the other and again, each time the other one first, so that what else the machine does
# meets both.
run_load() {
    local round i pools order
    failures=0
    for ((round = 1; round <= rounds; round++)); do
        ((round == 1 || SECONDS < 150)) || { rounds=$((round - 1)); break; } # a slow machine: fewer rounds
        for i in "${!pages[@]}"; do
            order=(stock reaps)
            ((round % 2)) || order=(reaps stock)
            for pools in "${order[@]}"; do
                progress "round $round of $rounds: ${page_names[i]} on $pools"
                load "$pools" "${pages[i]}"
                echo "$rate" >>"$dir/rate.$pools.$i"
                echo "$cpu" >>"$dir/cpu.$pools.$i"
                failures=$((failures + failed))
                ((failed == 0)) || echo "$failed failed: ${page_names[i]} on $pools" >>"$dir/failures"
            done
        done
    done
}
