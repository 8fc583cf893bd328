#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What `make install` puts down serves a developer: README's example compiles and runs by pkg-config,
# shared and static, in C and C++; and everything has gone where configure was told.
. "${srcdir:-.}/tests/support/install-lib.sh"

variable() { sed -n "s/^$1=//p" "$top_builddir/lib/reap.pc"; }
prefix=$(variable prefix)
PKG_CONFIG_SYSROOT_DIR=$tmp/root
PKG_CONFIG_LIBDIR=$tmp/root$prefix/lib/pkgconfig
export PKG_CONFIG_SYSROOT_DIR PKG_CONFIG_LIBDIR
lib=$tmp/root$prefix/lib

for file in lib/libreap.so lib/libreap.so.0 lib/libreap.a lib/libreap-malloc.so lib/libreap-malloc.so.0 lib/libreap-ask.so \
    lib/libreap-ask.so.0 lib/libreap-ask.a bin/reap-ask include/reap.h include/reap_ask.h include/reap.hpp include/hoard.h \
    share/man/man7/reap.7 share/reap/reap-gdb.py; do
    [ -e "$tmp/root$prefix/$file" ] || wrong "$file is not installed"
done

# Pages name the directories of their installation, and describe what is there.
other=/opt/reap
make -s -C "$top_builddir" install-data prefix=$other DESTDIR="$tmp/other" >"$tmp/log" 2>&1 || { cat "$tmp/log"; exit 1; }
pages=$tmp/other$other/share/man
grep -rl /usr/local "$pages" && wrong "these pages have /usr/local, installed below $other"
grep -q "LD_PRELOAD=$other/lib/libreap-malloc.so" "$pages/man7/libreap-malloc.7" || wrong "no preload from $other"
for name in mod_reap mod_reap_lua; do
    module=$(find "$tmp/root" -name $name.so)
    page=$(find "$tmp/root" -name $name.7)
    [ "${module:+there}" = "${page:+there}" ] || wrong "of $name and its page one is installed: $module$page"
done

# gdb knows the commands: by the line of reap(7), and by itself, if it was there when configure looked for one.
auto_load=$(find "$tmp/root" -path '*/auto-load' -type d)
for library in libreap.so libreap-malloc.so; do
    [ -f "$auto_load$prefix/lib/$(basename "$(realpath "$lib/$library")")-gdb.py" ] ||
        wrong "$library has no commands of gdb's below $auto_load"
done
configured() { grep -q "$1" "$top_builddir/config.log"; }
if command -v gdb >/dev/null && configured '^reap_cv_gdb_data=./' && ! configured '\$ .*--with[a-z]*-gdb-auto-load'; then
    data=$(gdb -nx -batch -ex 'show data-directory' | sed 's/^.*"\(.*\)".*/\1/')
    [ "$auto_load" = "$tmp/root$data/auto-load" ] || wrong "gdb looks below $data, its commands are in $auto_load"
fi
line=$(sed -n 's/^source \(.*reap-gdb.py\)$/\1/p' "$pages/man7/reap.7")
[ -f "$tmp/other$line" ] || wrong "reap(7) has 'source $line', which is not installed"
if command -v gdb >/dev/null && gdb -nx -batch -ex 'python print("python")' 2>&1 | grep -q '^python$'; then
    shows() { gdb -nx -batch "$@" -ex 'help reap-of' 2>&1 | grep -qi 'pointer'; }
    shows -ex "source $tmp/other$line" || wrong "gdb has no command reap-of after 'source $line'"
    # Scripts lie in the scripts' directory below the library's own path.
    mkdir -p "$tmp/scripts$lib" && cp "$auto_load$prefix/lib"/*-gdb.py "$tmp/scripts$lib"
    for library in libreap.so libreap-malloc.so; do
        shows -iex "set auto-load scripts-directory $tmp/scripts" -iex "set auto-load safe-path $tmp" "$lib/$library" ||
            wrong "gdb does not load the commands with $library"
    done
    gdb -nx -batch -ex 'show auto-load scripts-directory' -ex 'show data-directory' >"$tmp/log"
    grep -qF '$datadir/auto-load' "$tmp/log" || wrong "gdb does not look in its data directory: $(cat "$tmp/log")"
else
    absent "gdb with Python" "its commands"
fi

# The archives bring no names but the calls.
for archive in libreap.a libreap-ask.a; do
    others=$(nm -g --defined-only "$lib/$archive" | awk 'NF == 3 { print $3 }' | grep -vE '^(reap[A-Z]|hoard_)[A-Za-z_]*$')
    [ -z "$others" ] || wrong "$archive defines" $others
done

try() {
    name=$1
    shift
    "$@" -o "$tmp/$name" >"$tmp/log" 2>&1 || { wrong "$name: $*"; cat "$tmp/log"; return; }
    answer=$(LD_LIBRARY_PATH=$lib "$tmp/$name")
    [ "$answer" = "client 7" ] || wrong "$name answers '$answer'"
}
# Below another prefix it needs the line of doc/building.md.
(
    unset PKG_CONFIG_SYSROOT_DIR PKG_CONFIG_LIBDIR
    # shellcheck disable=SC2034  # the line has it
    PREFIX=$tmp/elsewhere
    cp -a "$tmp/root$prefix" "$PREFIX" && sed -i "s,^prefix=.*,prefix=$PREFIX," "$PREFIX/lib/pkgconfig/"*.pc
    eval "$(grep -E '^ +export PKG_CONFIG_PATH=' "$srcdir/doc/building.md")"
    # shellcheck disable=SC2046  # words
    $CC "$tmp/example.c" $(pkg-config --cflags --libs reap) -o "$tmp/example_there" && [ "$("$tmp/example_there")" = "client 7" ] &&
        [ "$(command -v reap-ask)" = "$PREFIX/bin/reap-ask" ] && { ! command -v man >/dev/null || man -w reapMalloc | grep -q "^$PREFIX"; }
) || wrong "with another prefix the variables of doc/building.md do not do"

strict='-Wall -Wextra -pedantic -Werror'
# shellcheck disable=SC2046,SC2086  # flags are words
{
    try shared $CC $strict "$tmp/example.c" $(pkg-config --cflags --libs reap)
    try c99 $CC -std=c99 $strict "$tmp/example.c" $(pkg-config --cflags --libs reap)
    try with_malloc $CC $strict "$tmp/example.c" $(pkg-config --cflags --libs reap-malloc)
    try static $CC $strict "$tmp/example.c" $(pkg-config --cflags reap) "$lib/libreap.a"
    try all_static $CC -static $strict "$tmp/example.c" $(pkg-config --cflags reap) "$lib/libreap.a"
    # C++ wants the casts that C does not.
    sed 's/= reap\([MP]\)/= (char *) reap\1/' "$tmp/example.c" >"$tmp/example.cc"
    lacks "${CXX:-c++}" "a program in C++" ||
        try cxx $CXX $strict "$tmp/example.cc" $(pkg-config --cflags --libs reap)
}
# A program that can be asked: with the shared libraries, with both archives.
cat >"$tmp/asked.c" <<'C'
#include <reap_ask.h>
#include <stdio.h>
#include <unistd.h>
static void tell(FILE *out, const char *args, void *arg) { fprintf(out, "client %s%s\n", args, (const char *)arg); }
int main(void)
{
    static char none[] = "";
    char byte;
    if (reapAnswer("who", tell, none) != 0 || reapListen("@reap.%p") != 0) return 1;
    printf("%d\n", (int)getpid());
    fflush(stdout);
    return read(0, &byte, 1) != 0;
}
C
try_asked() {
    name=$1
    shift
    # libreap-ask needs libreap, which the linker finds where ld.so will.
    LD_LIBRARY_PATH=$lib "$@" -o "$tmp/$name" >"$tmp/log" 2>&1 || { wrong "$name: $*"; cat "$tmp/log"; return; }
    mkfifo "$tmp/$name.in" "$tmp/$name.out"
    LD_LIBRARY_PATH=$lib "$tmp/$name" <"$tmp/$name.in" >"$tmp/$name.out" &
    exec 7>"$tmp/$name.in"
    read -r pid <"$tmp/$name.out"
    answer=$("$tmp/root$prefix/bin/reap-ask" "$pid" who 7)
    exec 7>&-
    wait
    [ "$answer" = "client 7" ] || wrong "$name answers reap-ask '$answer'"
}
# shellcheck disable=SC2046,SC2086
{
    try_asked asked $CC $strict "$tmp/asked.c" $(pkg-config --cflags --libs reap-ask)
    try_asked asked_malloc $CC $strict "$tmp/asked.c" $(pkg-config --cflags --libs reap-malloc reap-ask)
    try_asked asked_static $CC -static $strict "$tmp/asked.c" $(pkg-config --static --cflags --libs reap-ask)
}
# Each stands beside reap and beside reap-malloc, and brings neither: a program is linked to one of the two.
alone() { case " $* " in *" -lreap "*) wrong "flags beside reap-malloc bring libreap, too: $*" ;; esac; }
# shellcheck disable=SC2046
alone $(pkg-config --libs reap-malloc reap-ask)
# Packages of the system's are not below our root.
system_pkg_config() { env -u PKG_CONFIG_LIBDIR -u PKG_CONFIG_SYSROOT_DIR pkg-config "$@"; }
beside_ours() { echo "$PKG_CONFIG_LIBDIR:$(system_pkg_config --variable=pcfiledir "$1")"; }
# With APR: reap-apr's flags and libapr's own, which are not below our root.
if ! lacks_file "$lib/libreap-apr.so" libreap-apr; then
    flags=$(PKG_CONFIG_LIBDIR=$(beside_ours apr-1) pkg-config --cflags --libs reap-apr) || wrong "pkg-config does not know reap-apr"
    case $flags in *-lreap-apr*-lapr-1*) ;; *) wrong "reap-apr does not stand before libapr: $flags" ;; esac
    # shellcheck disable=SC2086
    alone -lreap-malloc $flags
    # shellcheck disable=SC2046,SC2086
    try apr $CC -Wall -Werror "$tmp/pools.c" $flags $(pkg-config --libs reap) $(system_pkg_config --cflags --libs apr-1)
fi
# Each example compiles as its first comment says.
cp -r "$tmp/root$prefix/share/doc/reap/examples" "$tmp/examples" || wrong "the examples are not installed"
# shellcheck disable=SC2086
cc() { $CC $strict "$@"; }
for example in http_server huge_pages phases sandbox; do
    if [ $example = http_server ]; then
        system_pkg_config --exists libmicrohttpd || { absent libmicrohttpd http_server; continue; }
        PKG_CONFIG_LIBDIR=$(beside_ours libmicrohttpd)
    fi
    lines=$(sed -n 's/^ \*     \(.*\bcc .*\)/\1/p' "$tmp/examples/$example.c")
    (cd "$tmp/examples" && eval "$lines" && [ -x $example ]) >"$tmp/log" 2>&1 ||
        { wrong "$example: $lines"; cat "$tmp/log"; }
done
# A header stands alone.
for header in reap.h hoard.h reap_ask.h; do
    # shellcheck disable=SC2086,SC2046
    echo "#include <$header>" | $CC $strict -fsyntax-only -x c $(pkg-config --cflags reap) - ||
        wrong "$header does not compile alone"
done
# And so does the one for C++, if the compiler has what it is for; with its man page's example.
if echo '#include <memory_resource>' | ${CXX:-false} -std=c++17 -fsyntax-only -x c++ - 2>/dev/null; then
    sed -n '/^\.EX/,/^\.EE/p;/^\.EE/q' "$srcdir/doc/reap.hpp.3" | sed '/^\.E[XE]/d; s/\\e/\\/g' >"$tmp/pmr.cc"
    # shellcheck disable=SC2046,SC2086
    try pmr $CXX -std=c++17 $strict "$tmp/pmr.cc" $(pkg-config --cflags --libs reap)
else
    absent "${CXX:-c++}" "reap.hpp, which wants C++17"
fi
exit $bad
