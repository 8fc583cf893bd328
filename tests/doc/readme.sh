#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Each command of README.md and of its pages is run here, or is named here with the test that runs it and what the test
# has of it: for what needs root, a server or a fresh system. Options and switches that they name are those of the
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
reap-ask PROCESS tree => tests/preload/reap-ask.sh => tree
reap-ask PROCESS profile on => tests/profile/heap_profile.sh => profile on'

# Lines that are indented, without what is a comment or a drop-in of systemd; then what begins like a command between
# backquotes, which may go on in the next line.
for page in $pages; do
    sed '/^```/,/^```/d' "$page" >"$tmp/page"
    sed -n 's/^    \([^#[]\)/\1/p' "$tmp/page" | sed 's/  *# .*//; s/^Environment=\(.*\)/\1 program/'
    tr '\n' ' ' <"$tmp/page" | tr '`' '\n' | sed -n 'n; p' | grep -E '^(\.\.?/[a-z-]+( |$)|(apachectl|apt|a2[a-z]*|autoreconf|cc|dpkg-[a-z]*|go|gdb|make|man|pkg-config|reap-ask|reap-analyse|sudo|systemctl) )'
done | sort -u >"$tmp/found"
printf '%s\n' "$commands" | tee "$tmp/named" | sed 's/ => .*//' >"$tmp/names"
while IFS= read -r command; do
    grep -qxF -- "$command" "$tmp/names" && continue
    case $command in
        make\ [a-z]*) target=${command#make } && grep -qE "^([a-z-]+ )*${target%% *}( [a-z-]+)*:" "$build/Makefile" || wrong "no target: $command" ;;
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
