#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Each command of README.md, of its pages and of the examples in manual pages is run here, or is named here with the test that
# runs it and what the test has of it: for what needs root, a server or a fresh system. Options and switches that they name are those of the
# code, targets of make and pages of man are there, links lead somewhere. README is read in one sitting.
. "${srcdir:-.}/tests/support/needs.sh"
libs=$(cd "${top_builddir:-.}/.libs" && pwd) && build=$(dirname "$libs") || exit 99
cd "${srcdir:-.}" || exit 99
here=$PWD
pages="README.md doc/building.md doc/finding.md doc/calls.md doc/alternatives.md doc/figures.md"
tmp=$(mktemp -d) && bad=0 || exit 99
trap 'rm -rf "$tmp"' EXIT
wrong() { echo "wrong: $*"; bad=1; }

# --- the commands, and the tests that run those which are not run here: COMMAND => FILE => what it has of it ----------
# shellcheck disable=SC2016  # as they stand
commands='./bootstrap => packaging/chroots.sh => for mode in "" --demo --check
./bootstrap --demo => packaging/chroots.sh => for mode in "" --demo --check
./bootstrap --check => packaging/chroots.sh => for mode in "" --demo --check
./bootstrap --packages configure => tests/dist/bootstrap.sh => bootstrap --packages
cc example.c $(pkg-config --cflags --libs reap) => tests/dist/install.sh => $(pkg-config --cflags --libs reap)
pkg-config reap-ask => tests/dist/install.sh => pkg-config --cflags --libs reap-ask
pkg-config --libs reap-malloc => tests/dist/install.sh => pkg-config --libs reap-malloc
mkdir build && cd build => packaging/chroots.sh => mkdir build && cd build && ../configure
../configure --prefix=/usr/local => packaging/chroots.sh => mkdir build && cd build && ../configure
make && make check && sudo make install && sudo ldconfig => packaging/chroots.sh => /build install && ldconfig
PREFIX=$HOME/reap => tests/dist/install.sh => PREFIX=$tmp/elsewhere
export PKG_CONFIG_PATH=$PREFIX/lib/pkgconfig LD_LIBRARY_PATH=$PREFIX/lib MANPATH=$PREFIX/share/man: PATH=$PREFIX/bin:$PATH => tests/dist/install.sh => doc/building.md
dpkg-buildpackage -us -uc -b => packaging/chroots.sh => dpkg-buildpackage -b -us -uc
apt install ./libreap0_*.deb ./libreap-ask0_*.deb ./libreap-apr0_*.deb ./libapache2-mod-reap_*.deb => packaging/chroots.sh => installs "/packages/*.deb"
a2enmod reap => debian/tests/apr => a2enmod -q reap
a2enmod reap_lua => debian/tests/apr => a2enmod -q reap reap_lua
echo '\''export LD_PRELOAD=libreap-apr.so.0'\'' >>/etc/apache2/envvars => debian/tests/apr => >>/etc/apache2/envvars
apachectl configtest && systemctl restart apache2 => tests/apache/deploy.sh => ctl configtest
systemctl edit NAME => tests/doc/readme.sh => s/^Environment=
go tool pprof -top -sample_index=alloc_space heap.pb.gz => tests/profile/heap_profile.sh => heap_profile.py
export LD_PRELOAD=/usr/local/lib/libreap-malloc.so:/usr/local/lib/libreap-ask.so => tests/preload/reap-ask.sh => libreap-ask.so
REAP_OPTIONS=ask=@reap.%p program & => tests/preload/reap-ask.sh => REAP_OPTIONS=ask=
reap-ask 4711 usage => tests/preload/reap-ask.sh => "$ask" "$process" usage
reap-ask 4711 tags => tests/preload/reap-ask.sh => "$ask" "$pid" $question
reap-ask 4711 json | jq '\''[.reaps[] | select(.path | index("0x20")) | .bytes] | add'\'' => tests/preload/reap-ask.sh => jq "$program"
reap-ask 4711 profile on => tests/profile/heap_profile.sh => profile on
reap-ask 4711 profile pprof >heap.pb.gz && go tool pprof -http :8080 heap.pb.gz => tests/profile/heap_profile.sh => profile pprof
reap-ask 4711 profile flames >heap.svg => tests/profile/heap_profile.sh => profile flames
REAP_TRACE=$PWD/t,stacks=8 LD_PRELOAD=libreap-trace.so perl script.pl => debian/tests/preload => LD_PRELOAD=libreap-trace.so REAP_TRACE=
reap-analyse --page --output t.html t => tests/trace/read.sh => --page --output
export REAP_TRACE=$PWD/t,stacks=8 => tests/trace/drag.sh => REAP_TRACE=
qemu-x86_64 -E LD_PRELOAD=libreap-trace.so -plugin libreap-uses.so,to=uses program => tests/trace/drag.sh => -plugin "$libs/libreap-uses.so,to=
reap-analyse --uses uses t => tests/trace/drag.sh => --uses "$2"
valgrind --tool=lackey --trace-mem=yes --log-file=uses --trace-children=yes env REAP_TRACE=$PWD/t%p,stacks=8 LD_PRELOAD=libreap-trace.so program => tests/trace/drag.sh => valgrind --tool=lackey --trace-mem=yes
reap-analyse --uses uses t4711 => tests/trace/drag.sh => --uses "$tmp/fuses
bpftrace -e '\''usdt:/usr/local/lib/libreap-malloc.so:reap:slow_malloc { @[arg2] = count(); }'\'' -p PID => tests/instruments/probes.sh => readelf -nW "$build/.libs/$lib.so"
gdb -ex '\''break -probe-stap reap:arena_map'\'' -ex run --args env LD_PRELOAD=libreap-malloc.so program => tests/instruments/probes.sh => break -probe-stap reap:
reap-ask PROCESS tree => tests/preload/reap-ask.sh => tree
reap-ask PROCESS profile on => tests/profile/heap_profile.sh => profile on'

# Lines that are indented, without what is a comment or a drop-in of systemd; then what begins like a command between
# backquotes, which may go on in the next line.
for page in $pages; do
    sed '/^```/,/^```/d' "$page" >"$tmp/page"
    sed -n 's/^    \([^#[]\)/\1/p' "$tmp/page" | sed 's/  *# .*//; s/^Environment=\(.*\)/\1 program/'
    tr '\n' ' ' <"$tmp/page" | tr '`' '\n' | sed -n 'n; p' | grep -E '^(\.\.?/[a-z-]+( |$)|(apachectl|apt|a2[a-z]*|autoreconf|cc|dpkg-[a-z]*|go|gdb|make|man|pkg-config|reap-ask|reap-analyse|sudo|systemctl) )'
done >"$tmp/pages"
# Of manual pages: what follows a dollar sign, and the lines of EXAMPLES, unless these are a program (manuals.sh).
for page in doc/*.[17]; do
    sed -n '/^\.EX/,/^\.EE/s/^\$ //p' "$page"
    grep -q '^#include' "$page" || sed -n '/^\.SH EXAMPLES/,/^\.fi/p' "$page" | sed '1,/^\.nf/d' | sed -e ':a' -e '/\\e$/{N;s/\\e\n *//;ba' -e '}' | grep -v '^[.#]'
done | sed 's/\\-/-/g; s/\\f.//g; /^$/d' | cat "$tmp/pages" - | sort -u >"$tmp/found"
printf '%s\n' "$commands" | tee "$tmp/named" | sed 's/ => .*//' >"$tmp/names"
while IFS= read -r command; do
    grep -qxF -- "$command" "$tmp/names" && continue
    case $command in
        make\ [a-z]*) target=${command#make } && grep -qE "^([a-z-]+ )*${target%% *}( [a-z-]+)*:|_targets = .*${target%% *}( |$)" "$build/Makefile" || wrong "no target: $command" ;;
        man\ *) ls "doc/${command#man }".[137] >/dev/null 2>&1 || wrong "no page: $command" ;;
        *LD_PRELOAD=*program | reap-analyse\ t) echo "$command" >>"$tmp/run" ;;
        *) wrong "neither run here nor named with the test that runs it: $command" ;;
    esac
done <"$tmp/found"
while IFS= read -r line; do
    words=${line##* => } file=${line% => *} && file=${file##* => } command=${line%% => *}
    grep -qxF -- "$command" "$tmp/found" || wrong "no page has it any more: $command"
    grep -qF -- "$words" "$file" || wrong "$file does not run it: $command"
done <"$tmp/named"
# --- those that run here: the program shows what is mapped into it -------------------------------------------------------
cd "$tmp" || exit 99
PATH=$build/tools/trace:$PATH
while IFS= read -r command; do
    library=$(echo "$command" | grep -o 'libreap-[a-z]*\.so' | tail -n 1)
    [ -n "$library" ] && ! lacks_file "$libs/$library" "${library%.so}" "$command" || continue
    eval "$(echo "$command" | sed "s,/usr/local/lib,$libs,g; s,program$,cat /proc/self/maps,")" >out 2>said || wrong "status $?: $command"
    grep -q "/$library" out && [ ! -s said ] || { wrong "$command:"; cat said; }
    case $library in *profile*) [ -s heap.pb.gz ] ;; *trace*) reap-analyse t | grep -q '^objects' ;; esac || wrong "no result: $command"
done <run
[ "$(wc -l <run)" = 4 ] || wrong "these are to run here:" "$(cat run)"
REAP_OPTIONS=help LD_PRELOAD=$libs/libreap-malloc.so cat /dev/null 2>help
cd "$here" || exit 99
# --- options, switches, links, length --------------------------------------------------------------------------------------
cat $pages | grep -oE '(`|REAP_OPTIONS=)[a-z_]+=([^a-z_ ]|[A-Z0-9]|`)' | sed 's/.*[`S]=*\([a-z_]*\)=.*/\1/' | sort -u >"$tmp/options"
[ "$(wc -l <"$tmp/options")" -ge 7 ] || wrong "the pages name no options"
while read -r option; do grep -q "^reap:   $option=" "$tmp/help" || wrong "no such option: $option"; done <"$tmp/options"
sed -n 's/^REAP_ARG_WITH(\[\([a-z0-9]*\)\].*/`\1`/p; s/^ *\[AS_HELP_STRING(\[\(--[a-z-]*\)[],=].*/`\1/p; s/^AC_ARG_WITH(\[apxs\].*/`apxs`/p' configure.ac >"$tmp/switches"
[ "$(wc -l <"$tmp/switches")" -ge 15 ] || wrong "configure.ac has no switches"
while read -r switch; do grep -qF -- "$switch" doc/building.md || wrong "doc/building.md does not name $switch"; done <"$tmp/switches"
for page in $pages; do
    for link in $(grep -oE '\]\([^)]*\)' "$page" | tr -d '()]'); do
        [ -e "$(dirname "$page")/$link" ] || wrong "$page: no $link"
    done
done
[ "$(wc -l <README.md)" -le 170 ] || wrong "README.md has $(wc -l <README.md) lines: what can go to a page of its own?"
echo "$(wc -l <"$tmp/found") commands, $(wc -l <"$tmp/run") run here, $(wc -l <"$tmp/options") options"
exit $bad
