#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# doc/papers.md lists each table and figure of the papers once, says of each row where it is or why not, and what it
# names is there: files, targets of make, workloads, options, parts of the report. named_files.sh looks at files, too.
. "${srcdir:-.}/tests/support/script.sh"
cd "$srcdir" || exit 99
wrong() { echo "doc/papers.md: $1"; bad=1; }
page=${PAPERS-doc/papers.md}

# --- each table and figure ------------------------------------------------------------------------
# "section|first column|last column" of each row below a heading "in the ...".
awk -F ' [|] |^[|] | [|]$' '
    /^## / { section = substr($0, 4); rows = 0 }
    /^[|] in the / { rows = 1; next }
    /^[|]---/ { next }
    /^[|] / && rows { print section "|" $2 "|" $4 "|" NF }' "$page" >"$tmp/rows"
[ "$(wc -l <"$tmp/rows")" -gt 100 ] || { echo "doc/papers.md has no rows"; exit 99; }

# listed PAPER KIND NUMBER...: as often as they stand there, which is once
listed() {
    section="$1: $2s" kind=$2
    shift 2
    for number; do
        n=$(grep -cF "$section|$kind $number|" "$tmp/rows")
        [ "$n" = 1 ] || wrong "$section has $kind $number $n times"
    done
    n=$(grep -c "^$section|$kind " "$tmp/rows")
    [ "$n" = $# ] || wrong "$section has $n and not $#"
}
listed Thesis table 3.1 3.2 3.3 3.4 3.5 4.1 4.2 4.3 4.4 5.1 5.2 5.3 5.4 7.1 7.2 7.3 7.4 7.5 7.6
listed Thesis figure 4.1 4.2 4.3 4.4 4.5 4.6 4.7 4.8 4.9 4.10 4.11 4.12 5.1 5.2 5.3 5.4 6.1 6.2 6.3 6.4 \
    7.1 7.2 7.3 7.4 7.5 7.6 7.7 7.8
listed Hoard table 1 2 3 4 5 6
listed Hoard figure 1 2 3 4
listed SMT table 1 2 3 4
listed SMT figure 1 2 3 4 5

# --- where it is, or why not --------------------------------------------------------------------
while IFS='|' read -r section what where fields; do
    [ "$fields" = 5 ] || wrong "$section: $what has not three columns"
    case $where in
        "no: "?* | *'`'*'`'* | above | "the "*", above" | *"'s "*", below" | "as "*) ;;
        *) wrong "$section: $what is neither here nor told why not: $where" ;;
    esac
done <"$tmp/rows"

# --- what is named ------------------------------------------------------------------------------
grep -oE '`[^`]+`' "$page" | tr -d '`' | sort -u >"$tmp/named"
find . -name .git -prune -o -path './build*' -prune -o -type f -print | sed 's,^\.,,' >"$tmp/files"
targets=$(cat Makefile.am */*.am tests/*/*.am | grep -oE '^[a-z][a-z-]*:|bench-[a-z]+' | tr -d ':')
while read -r word rest; do
    case $word in
        *.[ch] | *.sh | *.py | *.md) grep -qE "/$word\$" "$tmp/files" || wrong "there is no $word" ;;
        make) echo "$targets" | grep -qx -- "$rest" || wrong "there is no make $rest" ;;
        bench/threads | bench/pool_* | bench/server)
            grep -qF "{\"$rest\", " bench/*.c bench/*.h || wrong "there is no workload $word $rest"
            [ -e "$word.c" ] || wrong "there is no $word.c" ;;
        --*) grep -qF "\"$word\"" bench/run.py || wrong "run.py has no $word" ;;
        LD_PRELOAD=* | no:) ;;
        [a-z]*=*)
            value=${word#*=}
            for text in "${word%%=*}" "${value%%:*}"; do
                case $text in [0-9]* | FILE) continue ;; esac
                grep -qE "[\"|]$text[:|\"]" lib/base/options.c || wrong "there is no option $word"
            done ;;
        */*) [ -e "$word" ] || wrong "there is no $word" ;;
        reap[A-Z]* | apr_* | hoard_*) grep -qw -- "$word" include/*.h || wrong "no header has $word" ;;
    esac
done <"$tmp/named"
grep -o '"[A-Z][^"]*"' "$page" | sort -u | while read -r title; do
    grep -qF -- "$title" bench/reporting/papers.py || echo "the report has no part $title"
done >"$tmp/titles"
[ ! -s "$tmp/titles" ] || wrong "$(cat "$tmp/titles")"
echo "$(wc -l <"$tmp/rows") rows, $(wc -l <"$tmp/named") names, $(grep -c '|no: ' "$tmp/rows") not here"
exit $bad
