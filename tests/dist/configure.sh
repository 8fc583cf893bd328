#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# configure without apxs, or with nothing but a compiler: it says in one line what is left out and
# why, makes no rule for it, and leaves the user's CFLAGS alone; a wrong argument stops it.
. "${srcdir:-.}/tests/support/script.sh"
[ ! -e "$srcdir/config.status" ] || { echo "skipped: the source directory itself is configured"; exit 77; }
CONFIG_SHELL=/bin/sh # dash runs it faster than bash does
export CONFIG_SHELL

# configured NAME VARIABLE=VALUE...: in a directory of its own; what it said is in $tmp/NAME.out.
configured() {
    name=$1
    shift
    mkdir "$tmp/$name"
    (cd "$tmp/$name" && env CC="$CC" CFLAGS='-O1 -DUSER' "$@" "$srcdir/configure" --disable-dependency-tracking \
        --cache-file="$tmp/cache" >"$tmp/$name.out" 2>&1) || { wrong "$name fails"; tail -n 5 "$tmp/$name.out"; }
    grep -qx 'CFLAGS = -O1 -DUSER' "$tmp/$name/Makefile" || wrong "$name changes the user's CFLAGS"
}
says() { grep -qE "^ +$2 .*$3" "$tmp/$1.out" || wrong "$1 does not say of $2: $3"; }
# What a plain make would build.
builds() { make -s -n -C "$tmp/$1" all 2>/dev/null | grep -o 'lib[a-z-]*\.la\|mod_[a-z_]*\.la' | sort -u | tr '\n' ' '; }

# What is not in a pkg-config file, and this machine may have.
nowhere='ac_cv_header_mimalloc_h=no ac_cv_header_valgrind_memcheck_h=no ac_cv_path_APXS=no'

configured no_apxs ac_cv_path_APXS=no
says no_apxs "mod_reap " "no: (.*apxs|needs APR)"
says no_apxs mod_reap_lua 'no: (.*apxs|needs APR)'
case $(builds no_apxs) in
    *mod_reap*) wrong "no_apxs builds modules" ;;
    *libreap.la*) ;;
    *) wrong "no_apxs does not build libreap" ;;
esac

# No library but libc is known to pkg-config, and there is no C++.
rm -f "$tmp/cache"
# shellcheck disable=SC2086  # words
configured bare CXX=false CXXCPP=false PKG_CONFIG_LIBDIR=/nowhere $nowhere
says bare libreap-apr 'no: .*apr-1'
says bare 'unit tests' 'no: .*check'
says bare Valgrind 'no: valgrind/memcheck.h not found'
says bare 'C\+\+ tests' no
says bare examples 'but http_server: .*libmicrohttpd'
case $(builds bare) in *libreap-apr* | *mod_*) wrong "bare builds for Apache" ;; esac

# Each optional part, on a machine of this test's own, which has all of them: with --with-X it is taken, with
# --without-X it is left out; where it is not there, --with-X is refused in one line, and plain configure goes on.
mkdir -p "$tmp/all/pc" "$tmp/all/include/valgrind" "$tmp/none/pc"
for module in apr-1:1.7.2 apr-util-1:1.6.3 check:0.15.2 talloc:2.4.0 libxml-2.0:2.9.14 libmicrohttpd:0.9.75 lua:5.4.4 liblz4:1.9.4; do
    name=${module%:*}
    printf 'Name: %s\nDescription: %s\nVersion: %s\nCflags:\nLibs:\n' "$name" "$name" "${module#*:}" >"$tmp/all/pc/$name.pc"
done
for header in httpd.h mimalloc.h valgrind/memcheck.h; do : >"$tmp/all/include/$header"; done
# shellcheck disable=SC2016  # the script's own
printf '#!/bin/sh\n[ "$2" = INCLUDEDIR ] && echo "%s"\n' "$tmp/all/include" >"$tmp/apxs"
chmod +x "$tmp/apxs"

# tries NAME all|none ARGUMENT...: configure on that machine; $tmp/NAME is left to be looked at
tries() {
    name=$1 machine=$2
    shift 2
    known=$nowhere
    [ "$machine" = none ] || known="APXS=$tmp/apxs"
    rm -rf "${tmp:?}/$name" && mkdir "$tmp/$name"
    cp "$tmp/compiler.cache" "$tmp/$name.cache"
    # shellcheck disable=SC2086  # words
    (cd "$tmp/$name" && env $known CC="$CC" CXX=false CPPFLAGS="-I$tmp/$machine/include" PKG_CONFIG_PATH= \
        PKG_CONFIG_LIBDIR="$tmp/$machine/pc" "$srcdir/configure" --disable-dependency-tracking \
        --cache-file="$tmp/$name.cache" "$@" >"$tmp/$name.out" 2>&1)
}
has() { grep -qxF "$2" "$tmp/$1/config.status" "$tmp/$1/config.h"; }
# What of a part shows in what configure wrote.
mark() {
    case $1 in
        valgrind) echo '#define REAP_VALGRIND 1' ;;
        libmicrohttpd) echo 'S["HAVE_MICROHTTPD_TRUE"]=""' ;;
        *) echo "S[\"HAVE_$(echo "$1" | tr a-z A-Z)_TRUE\"]=\"\"" ;;
    esac
}
parts='apr apxs lua lz4 valgrind check talloc libxml2 libmicrohttpd mimalloc'
with=
for part in $parts; do with="$with --with-$part"; done
without=$(echo "$with" | sed 's/--with/--without/g')

# What was found of the compiler serves all of them; what was not found of a machine serves none.
grep -vE 'mimalloc|valgrind|httpd|APXS|PKG|_cv_env_' "$tmp/cache" >"$tmp/compiler.cache"
# shellcheck disable=SC2086  # words
tries with_all all $with || { wrong "with all of them"; tail -n 3 "$tmp/with_all.out"; }
# shellcheck disable=SC2086
tries without_all all $without || { wrong "without all of them"; tail -n 3 "$tmp/without_all.out"; }
for part in $parts; do
    has with_all "$(mark $part)" || wrong "--with-$part does not take it"
    ! has without_all "$(mark $part)" || wrong "--without-$part takes it"
    ! has bare "$(mark $part)" || wrong "$part is taken where it is not"
done
# A tarball is the same, whatever was left out where it was made.
for all in with_all without_all; do make -s --no-print-directory -C "$tmp/$all" distributed 2>/dev/null | sort -u >"$tmp/$all.files"; done
[ "$(wc -l <"$tmp/with_all.files")" -gt 500 ] && diff "$tmp/with_all.files" "$tmp/without_all.files" >"$tmp/out" ||
    { wrong "these are not distributed without all parts:"; cat "$tmp/out"; }
# One of each kind: a library, a program, what needs others, a header.
for part in apr apxs lua valgrind; do
    tries asked none --with-$part && wrong "--with-$part is taken where it is not there"
    [ "$(grep -c "^configure: error: --with-$part: ." "$tmp/asked.out")" = 1 ] ||
        { wrong "--with-$part: no word of it"; tail -n 3 "$tmp/asked.out"; }
done
tries value all --with-talloc=/opt && wrong "--with-talloc=/opt is taken"
grep -q '^configure: error: --with-talloc takes no value: /opt' "$tmp/value.out" || wrong "and it does not say why"
tries program all --with-apxs=/nowhere/apxs && wrong "--with-apxs=/nowhere/apxs is taken"
grep -q '^configure: error: --with-apxs: /nowhere/apxs is no program' "$tmp/program.out" || wrong "and it does not say why"
for part in libreap-apr mod_reap_lua libreap-trace 'unit tests' Valgrind; do says without_all "$part" 'no: asked for'; done
says without_all 'pools in make bench' 'reap, obstack$'

# What the libraries are not made for is said in one line: 32 bits, another libc (which features.h tells), and what
# else defines neither.
refuses() {
    what=$1 says=$2
    shift 2
    mkdir "$tmp/refused" && (cd "$tmp/refused" && "$srcdir/configure" "$@") >"$tmp/out" 2>&1 && wrong "$what is taken"
    grep -q "^configure: error: .*$says.*: reap needs Linux on x86-64 or aarch64, with glibc 2.35" "$tmp/out" ||
        { wrong "$what: no word of it"; tail -n 3 "$tmp/out"; }
    rm -rf "$tmp/refused"
}
mkdir -p "$tmp/musl"
printf '#include_next <features.h>\n#undef __GLIBC__\n' >"$tmp/musl/features.h"
refuses "another libc" 'a libc other than glibc' CC="$CC" CPPFLAGS="-I$tmp/musl" CXX=false
refuses "32 bits" 'neither x86-64 nor aarch64' CC="$CC" CPPFLAGS=-U__LP64__ CXX=false
# A compiler without libraries of 32 bits would say no more than that it makes no programs.
refuses "-m32" 'compiles for 32 bits' CC="$CC -m32" CXX=false
refuses "-m32 in CFLAGS" 'compiles for 32 bits' CC="$CC" CFLAGS='-O1 -m32' CXX=false
# The header is what libc's own ask for then.
mkdir -p "$tmp/cpu/gnu" && : >"$tmp/cpu/gnu/stubs-32.h"
refuses "another CPU" 'neither x86-64 nor aarch64' CC="$CC" CXX=false \
    CPPFLAGS="-I$tmp/cpu -U__x86_64__ -U__aarch64__ -D__riscv"

(cd "$tmp" && "$srcdir/configure" --with-apache-moduledir) >"$tmp/out" 2>&1 && wrong "--with-apache-moduledir without a directory is taken"
grep -q '^configure: error: --with-apache-moduledir needs a directory' "$tmp/out" || wrong "and it does not say why"
exit $bad
