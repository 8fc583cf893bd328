#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The demo's page, of figures that this test makes: a line has a gap where nobody had an answer, the curve ends before
# the connection does, and what is not to be seen is said. In Chromium nothing is cut off, at any width and in both schemes.
. "${srcdir:-.}/tests/support/script.sh"
need perl

figures() { # NAME START STEP AFTER [MOST]: seconds, requests, KB and the most; the connection ends with request 100000
    awk -v start="$2" -v step="$3" -v after="$4" -v most="${5:-0}" 'BEGIN {
        for (i = 0; i < 100; i++) print i / 10, i * 1000, start + i * step, i == 20 && most ? most : start + i * step
        for (; i < 103; i++) print i / 10, 100000, after, after }' >"$tmp/memory.$1"
}
figures h2-stock 7000 100 8600
figures h2-reaps 11000 0 8100 90000
figures over-stock 4000 3000 4000
figures over-limit 4000 10 4000 200000
# Nobody has an answer from 3 to 5 s on stock pools.
awk 'BEGIN { for (i = 0; i < 80; i++) if (i < 30 || i > 50) print i / 10 + .02, 3 + i % 4, 200; print 2.9, 900, 200 }' >"$tmp/latency.over-stock"
awk 'BEGIN { for (i = 0; i < 80; i++) print i / 10 + .02, 3 + i % 4, 200 }' >"$tmp/latency.over-limit"
echo '2.5 600 0' >"$tmp/downloads.over-stock"
: >"$tmp/downloads.over-limit"
{
    printf '%s\t%s\n' version 'Apache/2.4' machine '2 CPUs' date '2025-11-23' verdict '' requests 100000 clients 8 limit 16 memory 300 \
        at '2 4 6' seconds 8 runs 'median of 3 runs of 2 s' failures 0 each.h2-stock 102.4 each.h2-reaps -1.1 held.over-limit 16384
    for name in over-stock over-limit; do
        printf '%s\t%s\n' highest.$name 301000 crashes.$name 3 ends.$name 'broken off' requests.$name '0 of 2,126' \
            downloads.$name '9 of 30' slowest.$name 900.21
    done
    printf 'case\t%s\t%s\t%s\n' 'stock pools, no free' 13428 13226 'reaps, no free' 14856 13226 'reaps, with apr_pfree' 240 46
    for name in 'static file of 2 KB' 'SSI, two includes' 'index of 1000 entries'; do
        printf 'rate\t%s\t%s\t%s\t%s\t%s\n' "$name" 131590.09 133360.06 4107.5062 4285.6388
    done
    printf '%s\t%s\n' rss.stock 7100 rss.reaps 7604
} >"$tmp/facts"

page=$tmp/page.html
perl "$srcdir/apache_module/demo/reap-demo-page" "$tmp" >"$page" || wrong "no page"

lines() { grep -c "<polyline class=\"$1\"" "$page"; }
[ "$(lines stock)" = 4 ] || wrong "$(lines stock) lines of stock pools: two of memory, and that of answers in two parts"
[ "$(lines reaps)" = 3 ] || wrong "$(lines reaps) lines of reaps"
[ "$(grep -c '<circle class="broken"' "$page")" = 1 ] || wrong "the dot of a download that broke off"
# The first line is the connection's: its last point is the greatest, and not what is left when the connection has ended.
grep -m1 '<polyline class="stock"' "$page" | grep -oE '[0-9.]+,[0-9.]+' |
    awk -F, '{ last = $2; if (!NR || $2 < least || !least) least = $2 } END { exit last != least }' || wrong "the curve ends with a drop"
# What came and went between two looks is in the picture over time, and not in that of the connection.
spread() {
    grep '<polyline class="reaps"' "$page" | sed -n "$1p" | grep -oE '[0-9.]+,[0-9.]+' | awk -F, '
        { if (NR == 1 || $2 < least) least = $2; if ($2 > most) most = $2 } END { print int(most - least) }'
}
{ [ "$(spread 1)" = 0 ] && [ "$(spread 2)" -gt 60 ]; } || wrong "memory varies by $(spread 1) and $(spread 2) on the pictures"
for words in 'pools of the page when it ended</.*16.0 MB' 'begin at 6.8 MB, and reaps at 10.7 MB' 'has ended, stock pools have 8.4 MB, and reaps 7.9 MB' '1.1 bytes fewer' \
    'gaps: nobody had one'; do
    tr '\n' ' ' <"$page" | grep -q "$words" || wrong "the page does not say '$words'"
done
if ! lacks tidy "is the page valid?"; then
    said=$(tidy -q -e "$page" 2>&1)
    [ -z "$said" ] || wrong "tidy says: $said"
fi

for tool in python3 chromium chromedriver; do
    ! lacks $tool "is anything cut off?" || exit $bad
done
python3 -B "$srcdir/tests/doc/page_fits.py" "$page" || bad=1
exit $bad
