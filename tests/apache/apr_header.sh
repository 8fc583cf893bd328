#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# apr_reap.h, reap.h and hoard.h for modules that load everywhere: in C and C++, in old and new dialects, every
# call is weak with REAP_APR_OPTIONAL, and none without; a module that uses them all loads without the library.
. "${srcdir:-.}/tests/support/script.sh"
libs=$(cd "${top_builddir:-.}/.libs" && pwd)
need_file "$libs/libreap-apr.so" libreap-apr
flags=$(apr-1-config --includes --cppflags 2>/dev/null) || flags=$(pkg-config --cflags apr-1) || { absent apr-1-config; exit 77; }

# calls HEADER PATTERN: the names of the calls that a header declares
calls() {
    sed -e 's|/\*.*\*/||' -e '/\/\*/,/\*\//d' -e '/^#/d' "$srcdir/include/$1" |
        grep -oE "\\b$2\\(" | tr -d '(' | sort -u
}
{ calls reap.h 'reap[A-Z][A-Za-z]*'; calls hoard.h 'hoard_[a-z_]+'; printf 'apr_%s\n' pfree prealloc pool_reap; } >"$tmp/names"
all=$(wc -l <"$tmp/names")
[ "$all" -ge 50 ] || wrong "the headers could not be read"

# A module that has the address of each call, and uses some.
{
    printf '#include <apr_reap.h>\n#include <reap.h>\n#include <hoard.h>\n'
    printf 'typedef void call(void);\nextern call *addresses[];\ncall *addresses[] = {\n'
    sed 's/.*/    (call *)\&&,/' "$tmp/names"
    cat <<'END'
    0};
int use(apr_pool_t *pool, struct reap_stats *stats);
int use(apr_pool_t *pool, struct reap_stats *stats)
{
    char *object = (char *)apr_prealloc_sized(pool, 0, 0, 10);
    object = (char *)apr_prealloc(pool, object, 20);
    apr_pfree(pool, object);
    return apr_reap_loaded() && reapStats(apr_pool_reap(pool), stats) == 0 && reapMalloc(apr_pool_reap(pool), 8);
}
#ifdef __cplusplus
extern "C"
#endif
int count(void);
int count(void)
{
    int there = 0, i;
    for (i = 0; i < (int)(sizeof addresses / sizeof *addresses); i++) there += addresses[i] != 0;
    return there;
}
END
} >"$tmp/module.c"
cat >"$tmp/load.c" <<'END'
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    void *module = dlopen(argv[argc - 1], RTLD_NOW);
    if (!module) return puts(dlerror()), 1;
    printf("%d\n", ((int (*)(void))dlsym(module, "count"))());
    return 0;
}
END
# shellcheck disable=SC2046,SC2086  # flags are words
${CC:-cc} -Wl,--no-as-needed "$tmp/load.c" -o "$tmp/load" $(apr-1-config --link-ld 2>/dev/null || pkg-config --libs apr-1) ||
    exit 99

# undefined KIND: how many of the calls are undefined in that way, weakly (w) or not (U)
undefined() { nm -u "$tmp/module.o" | awk -v kind="$1" '$1 == kind { print $2 }' | grep -cxFf "$tmp/names"; }

# tries COMPILER AND FLAGS
tries() {
    build="$* -Wall -Wextra -Werror -Wno-cast-function-type -fPIC $flags -I$srcdir/include"
    # shellcheck disable=SC2086  # flags are words
    $build -DREAP_APR_OPTIONAL -c "$tmp/module.c" -o "$tmp/module.o" >"$tmp/said" 2>&1 || { wrong "$*"; return; }
    [ "$(undefined w)$(undefined U)" = "${all}0" ] || wrong "$*: $(undefined w) of $all calls are weak"
    ${CC:-cc} -shared "$tmp/module.o" -o "$tmp/module.so" >"$tmp/said" 2>&1 || wrong "$*: not linked"
    there=$("$tmp/load" "$tmp/module.so")
    [ "$there" = 0 ] || wrong "$*: without the library: $there"
    there=$(LD_PRELOAD=$libs/libreap-apr.so LD_LIBRARY_PATH=$libs "$tmp/load" "$tmp/module.so")
    [ "$there" = "$all" ] || wrong "$*: with the library: $there"
    # shellcheck disable=SC2086
    $build -c "$tmp/module.c" -o "$tmp/module.o" >"$tmp/said" 2>&1 || { wrong "$*, not optional"; return; }
    [ "$(undefined U)$(undefined w)" = "${all}0" ] || wrong "$*: $(undefined U) of $all calls are needed"
}
for level in -O0 -O2; do
    for dialect in gnu89 c99 c17; do tries "${CC:-cc}" $level -std=$dialect; done
    lacks "${CXX:-c++}" || tries "${CXX:-c++}" $level -x c++
    lacks clang && continue
    tries clang $level
    tries clang++ $level -x c++
done
exit $bad
