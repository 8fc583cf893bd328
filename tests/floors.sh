#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Holds the includes in lib/ and apache_module/ to the table of floors in lib/README.md.
srcdir=${srcdir:-.}

# Every `#include` of a header of ours, as "file header"; system headers are no concern of floors.
includes() {
    for file in "$srcdir"/lib/*.[ch] "$srcdir"/apache_module/*.[ch]; do
        [ -e "$file" ] || continue
        echo "${file#"$srcdir"/} -"
        sed -n "s|^ *# *include *[<\"]\([a-z0-9_]*\.h\)[>\"].*|${file#"$srcdir"/} \1|p" "$file"
    done
}

includes | awk '
function module(path) { sub(/.*\//, "", path); sub(/\.[ch]$/, "", path); return path }
function public(header) { return header ~ /^(reap|hoard)\.h$/ }   # declarations only
function wrong(what) { print what; bad++ }

# the table: | floor | files | what |
FNR == NR {
    if (split($0, cell, "|") < 4 || cell[2] !~ /^ *[0-9]+ *$/) next
    gsub(/\([^)]*\)/, "", cell[3])
    n = split(cell[3], names, ",")
    for (i = 1; i <= n; i++) { gsub(/[` ]/, "", names[i]); floor[names[i]] = cell[2] + 0; at[names[i]] = ++rows }
    next
}

$1 ~ /^apache_module/ {
    if (module($2) in floor && $2 !~ /^(reap|hoard|apr_reap)\.h$/) wrong($1 " includes " $2 ", which is no public header")
    next
}

{ me = module($1); it = module($2) }
!(me in floor) { if ($2 == "-") wrong($1 " is not in the table of lib/README.md"); next }
$2 == "-" { files++; next }
it in floor && it != me && (floor[it] > floor[me] || (floor[it] == floor[me] && at[it] > at[me] && !public($2))) {
    wrong($1 " (floor " floor[me] ") includes " $2 " (floor " floor[it] ")")
}
{ edges++ }

END {
    if (!rows) wrong("lib/README.md has no table of floors")
    print files " files in lib/, " edges + 0 " includes, " bad + 0 " against the table"
    exit bad > 0
}' "$srcdir/lib/README.md" -
