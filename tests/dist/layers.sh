#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The folders of lib/ are its layers, lowest first in the table of lib/README.md. A file includes headers by path,
# of its own folder and of lower ones; an object file needs no symbol of a higher folder; and no two object files of
# the library need each other. A file's name is there once, and no folder has more than 20 modules. A file calls no file
# behind it in its folder (tests/tools/file_order.py). Files of tools and apache_module include public headers, and
# those of their own folder, only. All of these have what stands in tools/common, which includes nothing of ours but
# itself.
. "${srcdir:-.}/tests/support/script.sh"
top_builddir=${top_builddir:-.}
need python3
most=20

sed -n 's,^| `\([a-z]*\)/` |.*,\1,p' "$srcdir/lib/README.md" >"$tmp/order"
[ -s "$tmp/order" ] || { echo "lib/README.md has no table of folders"; exit 99; }
for dir in "$srcdir"/lib/*/; do
    name=$(basename "$dir")
    grep -qx "$name" "$tmp/order" || wrong "lib/$name is not in the table of lib/README.md"
    n=$(ls "$dir" | sed -n 's/\.[ch]$//p' | sort -u | wc -l)
    [ "$n" -le $most ] || wrong "lib/$name has $n modules"
done
same=$(cd "$srcdir/lib" && ls */*.[ch] | sed 's,.*/,,' | sort | uniq -d)
[ -z "$same" ] || wrong "more than one file has the name of: $same"

(cd "$srcdir" && grep -E '^ *# *include *[<"][a-z0-9_/]*\.h[>"]' lib/*/*.[ch] tools/*/*.[ch] apache_module/*/*.[ch] /dev/null) |
    sed 's,: *# *include *.\(.*\).$, \1,' >"$tmp/includes"
(cd "$srcdir" && ls lib/*/*.h include/*.h) >"$tmp/headers"
awk '
function folder(path) { sub(/^lib\//, "", path); sub(/\/.*/, "", path); return path }
function beside(path) { sub(/[^\/]*$/, "", path); return path }
function wrong(what) { print what; bad = 1 }
FILENAME ~ /order$/ { rank[$1] = ++ranks; next }
FILENAME ~ /headers$/ { name = $1; sub(/.*\//, "", name); sub(/^(lib|include)\//, ""); ours[$1] = 1; base[name] = $1; next }
/^tools\/common\// { alone++; if (($2 in ours || $2 in base) && $2 !~ /^tools\/common\//) wrong($1 " includes " $2 ", and is to stand alone"); next }
/^(tools|apache_module)\// { outside++; if ($2 in ours && $2 ~ /\//) wrong($1 " includes " $2 ", which is no public header")
    if ($1 ~ /^tools/ && $2 ~ /^tools/ && $2 !~ "^tools/common/" && $2 !~ "^" beside($1)) wrong($1 " includes " $2 ", of another tool"); next }
$2 ~ /\// && $2 in ours { edges++; if (rank[folder($2)] > rank[folder($1)]) wrong($1 " includes " $2 ", of a higher layer") }
$2 !~ /\// && !($2 in ours) && $2 in base { wrong($1 " includes " $2 " without its folder: " base[$2]) }
END { print edges + 0 " includes by path"; exit bad || !edges || !outside || !alone }' "$tmp/order" "$tmp/headers" "$tmp/includes" || bad=1

for folder in $(cat "$tmp/order"); do
    [ "$folder" = libc ] && continue # its names are those of libc
    for source in "$srcdir/lib/$folder"/*.c; do
        module=$(basename "$source" .c)
        for object in "$top_builddir/lib/$folder/.libs/$module.o" "$top_builddir/lib/$folder/$module.o"; do
            [ -e "$object" ] && ${NM:-nm} -gP "$object" | sed "s,^,$folder/$module ," && break
        done || wrong "no object file of lib/$folder/$module.c"
    done
done >"$tmp/symbols"
awk 'NR == FNR { if ($3 ~ /^[TDBRVWC]$/) home[$2] = $1; next } $3 == "U" && $2 in home && home[$2] != $1 { print $1, home[$2], $2 }' \
    "$tmp/symbols" "$tmp/symbols" >"$tmp/needs"
[ -s "$tmp/needs" ] || wrong "no object files"
awk 'NR == FNR { rank[$1] = NR; next }
{ a = $1; b = $2; sub(/\/.*/, "", a); sub(/\/.*/, "", b) }
rank[b] > rank[a] { print $1 " needs " $3 " of " $2 ", of a higher layer"; bad = 1 }
END { exit bad }' "$tmp/order" "$tmp/needs" || bad=1
awk '{ print $1, $2 }' "$tmp/needs" | sort -u >"$tmp/edges"
tsort "$tmp/edges" >/dev/null 2>"$tmp/cycles" || { wrong "object files need each other:"; sed 's/^tsort: //' "$tmp/cycles"; }
mkdir -p "$tmp/lib/heap"
printf '* `heap/`: `low`,\n  `high`\n' >"$tmp/lib/README.md"
printf 'int low(void)\n{\n    return high();\n}\nstatic int take(void) { return 0; }\n' >"$tmp/lib/heap/low.c"
printf '#include "heap/low.h"\nint high(void) { return 0; }\nstatic int take(void) { return 0; }\n' >"$tmp/lib/heap/high.c"
python3 -B "$srcdir/tests/tools/file_order.py" "$tmp" >"$tmp/said" && wrong "a call upwards in a folder is not seen"
grep -q '^heap/low.c uses high of high' "$tmp/said" && grep -q '^take is a function of heap/high, heap/low$' "$tmp/said" ||
    { wrong "wrong about two files:"; cat "$tmp/said"; }
python3 -B "$srcdir/tests/tools/file_order.py" "$srcdir" || bad=1
echo "$(wc -l <"$tmp/edges") needs among $(cut -d' ' -f1 "$tmp/symbols" | sort -u | wc -l) object files"
exit $bad
