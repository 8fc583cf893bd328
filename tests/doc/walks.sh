#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The numbered steps of doc/design/walkthrough.md name functions in the order in which a process enters them: the page's own
# program runs under gdb, with a breakpoint at each function. The library is built without optimization for that, since
# gdb finds an inlined function only where the compiler has left something of it.
. "${srcdir:-.}/tests/support/script.sh"
builddir=${top_builddir:-.}
need gdb gcc
gdb -nx -batch -ex 'python print("python")' 2>&1 | grep -q '^python$' || { absent "gdb with Python"; exit 77; }
page=${WALKS_PAGE:-$srcdir/doc/design/walkthrough.md}

# --- the page --------------------------------------------------------------------------------------
# "part number function module" of each step, whose text is one line.
awk '/^\*\*[a-z_]+\*\*$/ { part = substr($0, 3, length - 4); next }
    /^[0-9]+\. / && part != "" { if (step != "") print step; step = part " " $0; next }
    /^   / && step != "" { step = step $0; next }
    { if (step != "") print step; step = "" }
    /^#/ || /^[A-Z|*]/ { part = "" }
    END { if (step != "") print step }' "$page" >"$tmp/steps"
sed -n 's/^\([a-z_]*\) \([0-9]*\)\. `\([A-Za-z_0-9]*\)` (`\([a-z_0-9]*\.[ch]\)`) .*/\1 \2 \3 \4/p' "$tmp/steps" >"$tmp/named"
[ "$(wc -l <"$tmp/named")" -gt 50 ] || { echo "walkthrough.md has no numbered steps"; exit 99; }
[ "$(wc -l <"$tmp/named")" = "$(wc -l <"$tmp/steps")" ] || wrong "a step does not begin with a function and its module"
awk '{ n = $1 == part ? n + 1 : 1; part = $1 } $2 != n { print "wrong: step " n " of " $1 " has the number " $2; bad = 1 }
    seen[$1, $3]++ { print "wrong: " $1 " has " $3 " twice"; bad = 1 } END { exit bad }' "$tmp/named" || bad=1
# A name of a function behind the first one. A name of one word may be a member's, too.
cat "$srcdir"/lib/*/*.[ch] | grep -oE '^[a-z].*[a-z_0-9]\(' | grep -oE '[A-Za-z_0-9]+\($' | tr -d '(' | sort -u >"$tmp/functions"
sed 's/`[^`]*`//' "$tmp/steps" | grep -oE '`[A-Za-z_0-9]+`' | tr -d '`' | grep '[_A-Z]' | sort -u | comm -12 - "$tmp/functions" >"$tmp/second"
[ ! -s "$tmp/second" ] || wrong "steps name a second function: $(cat "$tmp/second")"

# --- the library and the page's program ------------------------------------------------------------------
# build OBJECT-PREFIX FLAGS SOURCE...: two at a time
build() {
    flags="-O0 -g -std=gnu11 -D_GNU_SOURCE -fPIC -ftls-model=initial-exec -I$builddir -I$srcdir -I$srcdir/lib -I$srcdir/include $1"
    shift
    printf '%s\n' "$@" | FLAGS=$flags OBJECTS=$tmp xargs -P2 -I% sh -c \
        'gcc $FLAGS -c "$1" -o "$OBJECTS/$(basename "$1").o" || exit 255' sh %
}
build -fvisibility=hidden "$srcdir"/lib/base/*.c "$srcdir"/lib/os/*.c "$srcdir"/lib/arena/*.c "$srcdir"/lib/heap/*.c \
    "$srcdir"/lib/hoard/*.c "$srcdir"/lib/region/*.c "$srcdir"/lib/reap/*.c || exit 99
build "-fvisibility=default -fexceptions -fno-builtin" "$srcdir"/lib/libc/*.c || exit 99
gcc -shared -Wl,-z,initfirst -Wl,--version-script="$srcdir/lib/libreap-malloc.map" -o "$tmp/libreap-malloc.so" "$tmp"/*.o \
    -lpthread || exit 99
{ printf '#include <stdlib.h>\n#include "reap.h"\n' && sed -n '/^```c$/,/^```$/ { /^```/d; p }' "$page"; } >"$tmp/walk.c"
link() { gcc -O0 -g -fno-builtin "-I$srcdir/include" -o "$tmp/$1" "$tmp/$1.c" "$tmp/libreap-malloc.so"; }
link walk || exit 99
printf '#include <stdio.h>\n#include "hoard.h"\nint main(void) { struct hoard_stats s; hoard_stats(&s); puts(s.path); }\n' >"$tmp/path.c"
link path || exit 99
case $("$tmp/path") in rseq*) ;; *) skip "no restartable sections here" ;; esac
"$tmp/walk" || { echo "the page's program ends with $?"; exit 1; }

# --- the walk ------------------------------------------------------------------------------------------
while read -r part _ function module; do
    # gdb knows libc's own malloc.c: with our folder it is one file.
    found=$(cd "$srcdir" && ls lib/*/"$module" 2>/dev/null)
    [ -n "$found" ] || { wrong "there is no $module"; found=$module; }
    echo "$part $function $found"
done <"$tmp/named" >"$tmp/walks"
WALKS=$tmp/walks ENTERED=$tmp/entered LIBRARY=$tmp/libreap-malloc.so DEBUGINFOD_URLS='' \
    timeout 120 gdb -nx -readnow -batch -x "$srcdir/tests/doc/walks.py" "$tmp/walk" >"$tmp/log" 2>&1
grep -q 'exited normally' "$tmp/log" || {
    [ -s "$tmp/entered" ] || { cat "$tmp/log"; skip "gdb may not trace here"; }
    wrong "the program did not end: $(tail -3 "$tmp/log")"
}
cut -d' ' -f1,2 "$tmp/walks" >"$tmp/expected"
sort "$tmp/expected" >"$tmp/all" && sort "$tmp/entered" | comm -23 "$tmp/all" - >"$tmp/missing"
while read -r part function; do wrong "$part does not come to $function"; done <"$tmp/missing"
diff "$tmp/expected" "$tmp/entered" >"$tmp/diff" || { wrong "the order is another (< the page, > the process)"; cat "$tmp/diff"; }
echo "$(wc -l <"$tmp/entered") of $(wc -l <"$tmp/expected") steps were met in $(cut -d' ' -f1 "$tmp/expected" | uniq | wc -l) parts"
exit $bad
