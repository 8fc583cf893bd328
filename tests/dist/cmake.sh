#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A project of CMake's finds what `make install` puts down, by find_package(reap): each target builds a program that
# runs, from a directory other than the configured one too; a version or a part that is not there is refused.
. "${srcdir:-.}/tests/support/script.sh"
need cmake
. "$srcdir/tests/support/install-lib.sh"
package=$(find "$tmp/root" -name reap-config.cmake)
[ -n "$package" ] || { echo "wrong: reap-config.cmake is not installed"; exit 1; }
lib=$(dirname "$(dirname "$(dirname "$package")")")
version=$(sed -n 's/^Version: //p' "$lib/pkgconfig/reap.pc")

mkdir "$tmp/project" && cp "$tmp/example.c" "$tmp/pools.c" "$tmp/project"
cat >"$tmp/project/asked.c" <<'C'
#include <reap.h>
#include <reap_ask.h>
int main(void)
{
    void *reap;
    reapCreate(&reap, NULL);
    printf("client %d\n", reapListen("@reap.%p") == 0 ? 7 : 0);
    reapDestroy(&reap);
    return 0;
}
C
cat >"$tmp/project/CMakeLists.txt" <<'CMAKE'
cmake_minimum_required(VERSION 3.13)
project(example C)
find_package(reap ${ASK_VERSION} REQUIRED COMPONENTS ${ASK_PARTS})
foreach(part reap static malloc)
    add_executable(by_${part} example.c)
    target_link_libraries(by_${part} PRIVATE reap::${part})
endforeach()
add_executable(by_ask asked.c)
target_link_libraries(by_ask PRIVATE reap::reap reap::ask)
add_executable(by_ask_malloc asked.c)
target_link_libraries(by_ask_malloc PRIVATE reap::malloc reap::ask)
find_package(PkgConfig)
if(TARGET reap::apr AND PKG_CONFIG_FOUND)
    pkg_check_modules(apr REQUIRED IMPORTED_TARGET apr-1)
    add_executable(by_apr pools.c)
    target_link_libraries(by_apr PRIVATE reap::reap reap::apr PkgConfig::apr)
endif()
CMAKE

# configured NAME VARIABLE...: what cmake says of the project, in a directory of its own. It takes CC by itself.
configured() {
    name=$1
    shift
    cmake -S "$tmp/project" -B "$tmp/$name" "$@" >"$tmp/$name.log" 2>&1
}
# builds NAME LIBDIR: the programs answer, of the libraries in LIBDIR
builds() {
    configured "$1" -Dreap_DIR="$2/cmake/reap" -DASK_VERSION="$version" "-DASK_PARTS=reap;static;malloc;ask" &&
        cmake --build "$tmp/$1" >>"$tmp/$1.log" 2>&1 || { wrong "$1 does not build"; tail -n 20 "$tmp/$1.log"; return; }
    ! readelf -dW "$tmp/$1/by_ask_malloc" | grep 'NEEDED.*\[libreap\.so' || wrong "$1: reap::ask brings libreap beside libreap-malloc"
    for part in reap static malloc ask ask_malloc apr; do
        [ $part = apr ] && lacks_file "$tmp/$1/by_apr" libreap-apr "$1" && continue
        [ -e "$tmp/$1/by_$part" ] || wrong "$1: no by_$part"
        answer=$(LD_LIBRARY_PATH=$2 "$tmp/$1/by_$part") # what reap::ask needs is no library of the program's
        [ "$answer" = "client 7" ] || wrong "$1: by_$part answers '$answer'"
    done
    if [ -e "$2/libreap-apr.so" ] && command -v pkg-config >/dev/null && [ ! -e "$tmp/$1/by_apr" ]; then
        wrong "$1: libreap-apr is there, reap::apr is not"
    fi
}
builds staged "$lib"
# Moved to another prefix: the package file knows the headers by its own place.
prefix=$(sed -n 's/^prefix=//p' "$lib/pkgconfig/reap.pc")
mkdir "$tmp/moved" && mv "$tmp/root$prefix" "$tmp/moved/there"
lib=$tmp/moved/there${lib#"$tmp/root$prefix"}
builds moved "$lib"
case $(grep '_INCLUDE_DIRECTORIES\|isystem' -r "$tmp/moved/by_reap" "$tmp/moved/CMakeFiles/by_reap.dir" 2>/dev/null) in
    *"$tmp/moved/there"*) ;;
    *) wrong "moved: the headers are not those beside the libraries" ;;
esac

refuses() {
    what=$1 says=$2
    shift 2
    rm -rf "$tmp/refused"
    configured refused -Dreap_DIR="$lib/cmake/reap" "$@" && wrong "$what is taken"
    tr -s ' \n' ' ' <"$tmp/refused.log" | grep -q "$says" || { wrong "$what: no word of it"; cat "$tmp/refused.log"; }
}
refuses "a newer version" 'version: '"$version" -DASK_VERSION=99.0
refuses "an unknown part" 'installed without unheard_of' -DASK_PARTS=unheard_of
rm "$lib/libreap.so"
refuses "a package without its library" 'no libreap.so in' -DASK_PARTS=
exit $bad
