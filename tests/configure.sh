#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# configure without apxs, or with nothing but a compiler: it says in one line what is left out and
# why, makes no rule for it, and leaves the user's CFLAGS alone; a wrong argument stops it.
srcdir=$(cd "${srcdir:-.}" && pwd)
[ ! -e "$srcdir/config.status" ] || { echo "skipped: the source directory itself is configured"; exit 77; }
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
bad=0
wrong() { echo "wrong: $*"; bad=1; }

# configured NAME VARIABLE=VALUE...: in a directory of its own; what it said is in $tmp/NAME.out.
configured() {
    name=$1
    shift
    mkdir "$tmp/$name"
    (cd "$tmp/$name" && env CC="$CC" CFLAGS='-O1 -DUSER' "$@" "$srcdir/configure" --cache-file="$tmp/cache" \
        >"$tmp/$name.out" 2>&1) || { wrong "$name fails"; tail -n 5 "$tmp/$name.out"; }
    grep -qx 'CFLAGS = -O1 -DUSER' "$tmp/$name/Makefile" || wrong "$name changes the user's CFLAGS"
}
says() { grep -qE "^ +$2 .*$3" "$tmp/$1.out" || wrong "$1 does not say of $2: $3"; }
# What a plain make would build.
builds() { make -s -n -C "$tmp/$1" all 2>/dev/null | grep -o 'lib[a-z-]*\.la\|mod_[a-z_]*\.la' | sort -u | tr '\n' ' '; }

configured no_apxs ac_cv_path_APXS=no
says no_apxs mod_reap_lua 'no: (.*apxs|needs APR)'
case $(builds no_apxs) in
    *mod_reap*) wrong "no_apxs builds modules" ;;
    *libreap.la*) ;;
    *) wrong "no_apxs does not build libreap" ;;
esac

# No library but libc is known to pkg-config, and there is no C++.
rm -f "$tmp/cache"
configured bare CXX=false ac_cv_path_APXS=no PKG_CONFIG_LIBDIR=/nowhere ac_cv_header_mimalloc_h=no
says bare libreap-apr 'no: .*apr-1'
says bare 'unit tests' 'no: .*check'
says bare 'C\+\+ tests' no
says bare examples 'but http_server: .*libmicrohttpd'
case $(builds bare) in *libreap-apr* | *mod_*) wrong "bare builds for Apache" ;; esac

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

(cd "$tmp" && "$srcdir/configure" --with-apache-moduledir) >"$tmp/out" 2>&1 && wrong "--with-apache-moduledir without a directory is taken"
grep -q '^configure: error: --with-apache-moduledir needs a directory' "$tmp/out" || wrong "and it does not say why"
exit $bad
