#!/bin/sh
# What the shipped libraries export, need and reserve is what the design promises.
srcdir=${srcdir:-.}
libs=${top_builddir:-.}/.libs
LC_ALL=C
export LC_ALL
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
bad=0
wrong() { echo "wrong: $*"; bad=1; }

# Names that the public headers declare: a function's name is followed by its parameters.
declared() {
    sed -e 's|/\*.*\*/||' -e '/\/\*/,/\*\//d' -e 's|//.*||' "$srcdir/include/reap.h" "$srcdir/include/hoard.h" |
        grep -oE '\b(reap[A-Z][A-Za-z]*|hoard_[a-z_]+)\(' | tr -d '(' | sort -u
}
exported() { nm -D --defined-only "$1" | awk '$2 != "A" { print $3 }' | sort -u; }
# Names that a map lists one by one, not by a pattern.
listed() { sed -n 's/^ *\([A-Za-z_0-9]*\);.*/\1/p' "$1" | sort -u; }

same() {
    if ! diff "$2" "$3" >"$tmp/diff"; then
        wrong "$1: exports differ (< promised, > exported)"
        cat "$tmp/diff"
    fi
}

declared >"$tmp/api"
[ "$(wc -l <"$tmp/api")" -gt 20 ] || wrong "the headers could not be read"

sed 's/$/@@REAP_1/' "$tmp/api" >"$tmp/promised"
exported "$libs/libreap.so" >"$tmp/exported"
same libreap.so "$tmp/promised" "$tmp/exported"

listed "$srcdir/lib/libreap-malloc.map" | sort -u - "$tmp/api" >"$tmp/promised"
exported "$libs/libreap-malloc.so" >"$tmp/exported"
same libreap-malloc.so "$tmp/promised" "$tmp/exported"

for name in libreap libreap-malloc; do
    lib=$libs/$name.so
    tls=$(readelf -lW "$lib" | awk '$1 == "TLS" { print $6 }')
    [ "$((${tls:-0}))" -le 64 ] || wrong "$name: $((tls)) bytes of static TLS, more than 64"
    # Link time only knows libc and the loader: no libstdc++, no libgcc_s, no libpthread.
    needed=$(readelf -dW "$lib" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -vE '^(libc|ld-linux.*)\.so\.[0-9]+$')
    [ -z "$needed" ] || wrong "$name needs $needed"
    readelf -dW "$lib" | grep -q 'FLAGS_1.*NODELETE' || wrong "$name is not -z nodelete"
    readelf -dW "$lib" | grep -q TEXTREL && wrong "$name has text relocations"
    # Nothing inside may call what allocates, or malloc would recurse and libreap would touch it.
    calls=$(nm -D --undefined-only "$lib" | awk '{ sub(/@.*/, "", $2); print $2 }' |
        grep -xE 'malloc|free|calloc|realloc|strdup|fopen|dlsym|pthread_setspecific|__tls_get_addr')
    case $name/$calls in
        */) ;;
        # with bypass=1 a reap's objects are malloc's, and only then
        libreap/free?malloc) ;;
        # dlopen is forwarded to libc's own
        # strdup is called once, to see where it calls malloc from
        libreap-malloc/dlsym | libreap-malloc/dlsym?strdup | libreap-malloc/strdup?dlsym) ;;
        *) wrong "$name calls" $calls ;;
    esac
done
readelf -dW "$libs/libreap-malloc.so" | grep -q 'FLAGS_1.*INITFIRST' || wrong "libreap-malloc is not -z initfirst"
readelf -dW "$libs/libreap.so" | grep -q 'SONAME.*\[libreap\.so\.0\]' || wrong "libreap's soname is not libreap.so.0"
readelf -dW "$libs/libreap-malloc.so" | grep -q 'SONAME.*\[libreap-malloc\.so\]' || wrong "libreap-malloc's soname has a version"
readelf -VW "$libs/libreap-malloc.so" | grep -q "Version definition" && wrong "libreap-malloc defines a version node"
exit $bad
