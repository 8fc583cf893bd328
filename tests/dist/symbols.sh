#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What the shipped libraries export, need and reserve is what the design promises.
. "${srcdir:-.}/tests/support/script.sh"
libs=${top_builddir:-.}/.libs
LC_ALL=C
export LC_ALL

# Names that public headers declare: a function's name is followed by its parameters.
declared() {
    (cd "$srcdir/include" && sed -e 's|/\*.*\*/||' -e '/\/\*/,/\*\//d' -e 's|//.*||' "$@") |
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

declared reap.h hoard.h >"$tmp/api"
[ "$(wc -l <"$tmp/api")" -gt 20 ] || wrong "the headers could not be read"

sed 's/$/@@REAP_1/' "$tmp/api" >"$tmp/promised"
exported "$libs/libreap.so" >"$tmp/exported"
same libreap.so "$tmp/promised" "$tmp/exported"

listed "$srcdir/lib/libreap-malloc.map" | sort -u - "$tmp/api" >"$tmp/promised"
exported "$libs/libreap-malloc.so" >"$tmp/exported"
same libreap-malloc.so "$tmp/promised" "$tmp/exported"

declared reap_ask.h | sed 's/$/@@REAP_ASK_1/' >"$tmp/promised"
exported "$libs/libreap-ask.so" >"$tmp/exported"
same libreap-ask.so "$tmp/promised" "$tmp/exported"

# Debian's packages name each call, and the version in which it came.
packaged() { # PACKAGE LIBRARY VERSION-NODE
    sed -n "s/^ \([A-Za-z_0-9]*@$3\) [0-9.]*\$/\1/p" "$srcdir/debian/$1.symbols" | grep -vx "$3@$3" | sort -u >"$tmp/promised"
    exported "$libs/$2.so" | sed '/@/!s/$/@Base/; s/@@/@/' | sort -u >"$tmp/exported"
    same "debian/$1.symbols" "$tmp/promised" "$tmp/exported"
}
packaged libreap0 libreap REAP_1
packaged libreap-malloc0 libreap-malloc Base
packaged libreap-ask0 libreap-ask REAP_ASK_1
[ ! -e "$libs/libreap-apr.so" ] || packaged libreap-apr0 libreap-apr Base

# Valgrind has names for what is in .text alone, and for one section of that name.
for library in "$libs"/libreap*.so; do
    readelf -SW "$library" | sed -n 's/^ *\[ *[0-9]*\] \([^ ]*\) .* AX .*/\1/p' | grep -vE '^\.(init|fini|plt.*)$' >"$tmp/code"
    echo .text | diff - "$tmp/code" >"$tmp/diff" || { wrong "$library: sections of code"; cat "$tmp/diff"; }
done

# What of libc the libraries may call: nothing that allocates, or malloc would recurse and libreap would touch it;
# and no cancellation point (pthreads(7)), or a thread would end in the midst of malloc, with locks held.
cat >"$tmp/allowed" <<'LIST'
# memory and strings, in registers
bcmp
memchr
memcmp
memcpy
memmove
memset
strcmp
strcspn
strlen
strncmp
strnlen
strrchr
strstr
wcslen libreap-malloc
# a call of the kernel's and no more, none of them a cancellation point; syscall() is no cancellation point, whatever it calls
clock_gettime
fstat
getpid
gettid
madvise
mmap
mprotect
mremap
munmap
sched_getcpu
sched_yield
syscall
# words of libc's, read
__errno_location
__environ
environ
__libc_single_threaded
program_invocation_short_name
__progname
strerrordesc_np
__libc_stack_end
__rseq_offset
__rseq_size
getauxval
getrandom
sysconf libreap-malloc
stderr libreap-malloc
# at start and end: they may allocate, for libc, and come back to a malloc that is ready for them
__cxa_atexit
__cxa_finalize
__register_atfork
pthread_once
# the charges of a thread, by the program's own calls; the second may allocate
pthread_getspecific
pthread_setspecific
pthread_key_create
# which modules there are; ld.so's locks only
_dl_find_object
dl_iterate_phdr
dlsym libreap-malloc
# robust mutexes tell which threads have ended; never waited for, so no cancellation
pthread_mutex_consistent
pthread_mutex_init
pthread_mutex_trylock
pthread_mutex_unlock
pthread_mutexattr_destroy
pthread_mutexattr_init
pthread_mutexattr_setrobust
# threads of the library's, whose own sleep is a cancellation point and whose id nobody has
clock_nanosleep
pthread_attr_destroy
pthread_attr_init
pthread_attr_setdetachstate
pthread_attr_setstacksize
pthread_create
pthread_setname_np
pthread_sigmask
sigfillset
# whose link a file's name is; no cancellation points
geteuid
lstat
# the end
__assert_fail
abort
__stack_chk_fail
# reports to a stream of the program's: no lock is held, or cancellation is off
fprintf
fwrite
pthread_setcancelstate
vsnprintf
# with bypass=1 a reap's objects are malloc's, and only then
aligned_alloc libreap
free libreap
malloc libreap
# what is forwarded: the program's own call
ferror libreap-malloc
fork libreap-malloc
LIST

most=72
grep -qs '^#define REAP_DEBUG 1' "${top_builddir:-.}/config.h" && most=136 # with the locks that a thread holds
for name in libreap libreap-malloc; do
    lib=$libs/$name.so
    tls=$(readelf -lW "$lib" | awk '$1 == "TLS" { print $6 }')
    [ "$((${tls:-0}))" -le $most ] || wrong "$name: $((tls)) bytes of static TLS, more than $most"
    # Link time only knows libc and the loader: no libstdc++, no libgcc_s, no libpthread.
    needed=$(readelf -dW "$lib" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -vE '^(libc|ld-linux.*)\.so\.[0-9]+$')
    [ -z "$needed" ] || wrong "$name needs $needed"
    readelf -dW "$lib" | grep -q 'FLAGS_1.*NODELETE' || wrong "$name is not -z nodelete"
    readelf -dW "$lib" | grep -q TEXTREL && wrong "$name has text relocations"
    # And that little of libc, each name for a reason.
    nm -D --undefined-only "$lib" | awk '$1 != "w" { sub(/@.*/, "", $2); print $2 }' |
        sed 's/^__\(.*\)_chk$/\1/' | sort -u >"$tmp/needed"
    awk -v lib=$name '!/^ *(#|$)/ && (NF == 1 || $2 == lib) { print $1 }' "$tmp/allowed" | sort -u >"$tmp/may"
    others=$(comm -23 "$tmp/needed" "$tmp/may" | tr '\n' ' ')
    [ -z "$others" ] || wrong "$name calls what the list of its libc symbols has not: $others"
done
# What answers from outside stands on the public calls, of whichever library comes first, and stays.
needed=$(readelf -dW "$libs/libreap-ask.so" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | sort | tr '\n' ' ')
[ "$needed" = "libc.so.6 libreap.so.0 " ] || wrong "libreap-ask needs $needed"
readelf -lW "$libs/libreap-ask.so" | grep -q '^ *TLS' && wrong "libreap-ask has thread-local storage"
readelf -dW "$libs/libreap-ask.so" | grep -q 'FLAGS_1.*NODELETE' || wrong "libreap-ask is not -z nodelete"
readelf -dW "$libs/libreap-malloc.so" | grep -q 'FLAGS_1.*INITFIRST' || wrong "libreap-malloc is not -z initfirst"
for library in libreap libreap-malloc libreap-ask libreap-apr; do
    [ $library = libreap-apr ] && lacks_file "$libs/$library.so" $library && continue
    readelf -dW "$libs/$library.so" | grep -qF "[$library.so.0]" || wrong "$library's soname is not $library.so.0"
done
# What a map exports it names, so that no name of the inside gets out by looking like a call.
for map in lib/libreap.map lib/libreap-malloc.map tools/ask/libreap-ask.map apache_module/libreap-apr/libreap-apr.map; do
    sed '/local:/,$d; s/#.*//; s,/\*.*\*/,,' "$srcdir/$map" | grep '[*?[]' && wrong "$map exports by a pattern"
done
readelf -VW "$libs/libreap-malloc.so" | grep -q "Version definition" && wrong "libreap-malloc defines a version node"
exit $bad
