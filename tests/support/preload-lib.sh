# SPDX-License-Identifier: Apache-2.0
# Sourced by tests/preload/*.sh: runs a piece of work without libreap-malloc and then with it
# preloaded, on every path of the backend, and compares what came out.
#
#     . "${srcdir:-.}/tests/support/preload-lib.sh"
#     need git
#     work() { git ...; }       # prints its answers; starts in an empty directory of its own
#     compare_work
#
# REAP_PRELOAD names another library to preload: the tests themselves can be tested so.
. "${srcdir:-.}/tests/support/script.sh"
set -u
LC_ALL=C
export LC_ALL
preload=$(realpath "${REAP_PRELOAD:-$build/.libs/libreap-malloc.so}")
[ -f "$preload" ] || { echo "no $preload"; exit 99; }
chmod 755 "$tmp"

# The paths, each with the options that choose it.
paths="default cpu locked"
options_of() {
    case $1 in
        default) echo ;;
        cpu) echo heaps=cpu ;;
        locked) echo path=locked ;;
        unregistered) echo ;; # glibc is asked not to register rseq: the locked path, found out
    esac
}

# under PATH COMMAND...: with the library preloaded, on that path. In a subshell, if in one.
under() {
    REAP_OPTIONS=$(options_of "$1")
    LD_PRELOAD=$preload
    export REAP_OPTIONS LD_PRELOAD
    [ "$1" != unregistered ] || export GLIBC_TUNABLES=glibc.pthread.rseq=0
    shift
    "$@"
}

# run NAME COMMAND...: in an empty directory, output and exit status to $tmp/NAME.out.
run() {
    name=$1
    shift
    mkdir "$tmp/$name"
    (cd "$tmp/$name" && "$@" && echo "status 0" || echo "status $?") >"$tmp/$name.out" 2>"$tmp/$name.err"
}

# Ours speaks on standard error ("reap: ..."), and so does ld.so when it cannot preload.
compare_work() {
    run stock work
    if ! grep -qx 'status 0' "$tmp/stock.out"; then
        echo "the work fails without the library:"
        cat "$tmp/stock.out" "$tmp/stock.err"
        exit 99
    fi
    for path in $paths; do
        run "$path" under "$path" work
        if diff "$tmp/stock.out" "$tmp/$path.out" >"$tmp/diff" && ! grep -E '^(reap: |ERROR: ld.so)' "$tmp/$path.err"; then
            echo "$path: $(wc -l <"$tmp/stock.out") lines alike"
        else
            echo "$path: differs (< without the library, > with it)"
            cat "$tmp/diff"
            tail -n 20 "$tmp/$path.err"
            bad=1
        fi
    done
    exit $bad
}
