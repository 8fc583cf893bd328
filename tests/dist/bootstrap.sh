#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# ./bootstrap --demo and --check in any order, in a tree whose configure, tests and packages are this test's own: a part
# that was not there is configured anew, and a test that was skipped for want of a package that --check installs has
# failed. Then the tests themselves: what they ask for by needs.sh is of a package that is known.
. "${srcdir:-.}/tests/support/script.sh"
unset MAKEFLAGS MFLAGS MAKELEVEL CHECK_DEBUG

# --- a tree and a Debian --------------------------------------------------------------------------------
tree=$tmp/tree
mkdir -p "$tree/apache_module/demo" "$tmp/bin" "$tmp/debian" "$tmp/results"
cp "$srcdir/bootstrap" "$tree/" || exit 99
: >"$tree/configure.ac" && : >"$tree/Makefile.am"
printf '#!/bin/sh\necho "the demo ran"\n' >"$tree/apache_module/demo/reap-demo"
# What is in absent/ is not installed; apt-get installs all, unless there is no network.
cat >"$tmp/debian/dpkg-query" <<'END'
#!/bin/sh
for package; do
    case $package in -*) continue ;; esac
    [ -e "$FAKE/absent/$package" ] || echo "$package installed"
done
END
cat >"$tmp/debian/apt-get" <<'END'
#!/bin/sh
[ ! -e "$FAKE/no-network" ] || exit 100
case $* in *" install "*) rm -f "$FAKE"/absent/* ;; *download*) exit 1 ;; esac
END
printf '#!/bin/sh\necho 0\n' >"$tmp/debian/id"
# Each part is there with its package; a switch makes one that is not there an error.
cat >"$tree/configure" <<'END'
#!/bin/sh
echo "$*" >>"$FAKE/configured"
says() { [ ! -e "$FAKE/absent/$1" ] && echo "S[\"$2_TRUE\"]=\"\"" || echo "S[\"$2_TRUE\"]=\"#\""; }
case " $* " in *" --with-check "*) [ ! -e "$FAKE/absent/check" ] || { echo "configure: error: --with-check: no check"; exit 1; } ;; esac
{
    echo '#!/bin/sh'
    printf "cat <<'ARGUMENTS'\n"
    for argument; do printf "'%s' " "$argument"; done
    printf '\nARGUMENTS\nexit\n'
    for part in APR APXS LUA ZLIB LZ4 LIBXML2 MICROHTTPD CXX17 ASAN WATCH; do echo "S[\"HAVE_${part}_TRUE\"]=\"\""; done
    says check HAVE_CHECK
    printf '%s\n' 'S["APACHE2"]="/a"' 'S["VALGRIND"]="/v"' 'D["REAP_VALGRIND"]=" 1"' 'D["REAP_PROBES"]=" 1"'
} >config.status
chmod +x config.status
left=0
[ ! -e "$FAKE/absent/check" ] || left=2
cat >Makefile <<MAKE
all check-programs:
check:
	@\$\$FAKE/run test-suite.log one two
check-system:
	@\$\$FAKE/run test-suite-system.log three
check-debug:
	@\$\$FAKE/run test-suite.log debug
test-count:
	@:; echo 2 1 1 $left
MAKE
END
# run LOG TEST...: a test's log is results/TEST, if there is one; its first line is the result, if it is not PASS.
cat >"$tmp/run" <<'END'
#!/bin/sh
log=$1 bad=0
shift
: >"$log"
mkdir -p tests
for test; do
    result=PASS
    read -r first <"$FAKE/results/$test" && case $first in SKIP | FAIL) result=$first ;; esac
    cp "$FAKE/results/$test" "tests/$test.log"
    echo ":test-result: $result" >"tests/$test.trs"
    echo "$result: tests/$test"
    echo "# $result: 1" >>"$log"
    [ $result != FAIL ] || bad=1
done
exit $bad
END
chmod +x "$tree/configure" "$tree/apache_module/demo/reap-demo" "$tmp/run" "$tmp"/debian/*
FAKE=$tmp
export FAKE

fresh() {
    rm -rf "$tree/build" "$tree/build-debug" "$tmp/absent" "$tmp/no-network" && mkdir "$tmp/absent"
    : >"$tmp/configured"
    for test in one two three debug; do echo fine >"$tmp/results/$test"; done
    touch "$tree/Makefile.in" "$tree/configure"
}
boots() { (cd "$tree" && PATH=$tmp/debian:$PATH ./bootstrap "$@") >"$tmp/said" 2>&1; }
says() { grep -qE -- "$1" "$tmp/said" || wrong "$what: not said: $1"; }
# configured N: so often it was configured
configured() { [ "$(wc -l <"$tmp/configured")" = "$1" ] || wrong "$what: configured $(wc -l <"$tmp/configured") times, not $1"; }
last_says() { [ "$(tail -n 1 "$tmp/said")" = "$1" ] || wrong "$what: the last line is not '$1'"; }
passes() { boots "$@" || wrong "$what: ./bootstrap $* fails"; }
fails() { ! boots "$@" || wrong "$what: ./bootstrap $* passes"; }

what="alone, twice"
fresh
passes --check
says '^3 of 3 tests ran, in [0-9]+ min [0-9]+ s$'
last_says '3 passed, 0 failed, 0 skipped'
for switch in apr apxs lua zlib lz4 valgrind check libxml2 libmicrohttpd; do
    grep -q -- "--with-$switch\b" "$tmp/configured" || wrong "$what: configure is not asked for $switch"
done
passes --check
configured 1

what="--demo, --check, twice each, where the demo's configure finds no Check"
fresh
: >"$tmp/absent/check"
passes --demo
grep -q -- '--with-check' "$tmp/configured" && wrong "$what: the demo wants Check"
says 'the demo ran'
passes --demo
configured 1
passes --check
configured 2
last_says '3 passed, 0 failed, 0 skipped'
passes --demo
passes --check
configured 2

what="--check, --demo"
fresh
passes --check
passes --demo
configured 1

what="configured by hand, without a part that came later"
fresh
: >"$tmp/absent/check"
mkdir "$tree/build" && (cd "$tree/build" && ../configure --enable-werror 'CC=ccache gcc')
rm "$tmp/absent/check"
passes --check
configured 2
grep -q "^--enable-werror CC=ccache gcc --with-apr .*--with-check" "$tmp/configured" || wrong "$what: its arguments are gone"

what="after a git pull"
fresh
passes --check
touch "$tree/Makefile.in" "$tree/configure"
passes --check
configured 2
passes --check
configured 2

what="a package that came in the same run"
: >"$tmp/absent/gdb"
passes --check
configured 3

what="Check is not there, and apt-get does not bring it"
for before in "" --demo; do
    fresh
    [ -z "$before" ] || passes $before
    : >"$tmp/absent/check" && : >"$tmp/no-network"
    fails --check
    says '^bootstrap: missing, and apt-get could not install them: check$'
    ! grep -q ' passed' "$tmp/said" || wrong "$what: there is a sum"
done

what="the package is there, the library is not"
fresh
: >"$tmp/absent/check"
mv "$tmp/debian/dpkg-query" "$tmp/debian/dpkg-query.real"
printf '#!/bin/sh\nfor package; do echo "$package installed"; done\n' >"$tmp/debian/dpkg-query" && chmod +x "$tmp/debian/dpkg-query"
fails --check
says '^configure: error: --with-check'
says '^bootstrap: ./build could not be configured'
mv "$tmp/debian/dpkg-query.real" "$tmp/debian/dpkg-query"

what="not Debian: what is there serves, and the sum says of how many"
fresh
: >"$tmp/absent/check"
for tool in sh make sed grep sort find mkdir rm mv cat touch date nproc dirname cut wc uniq mktemp chmod tail cp env head tr; do
    ln -sf "$(command -v $tool)" "$tmp/bin/$tool"
done
ln -sf "$tmp/debian/id" "$tmp/bin/id"
(cd "$tree" && PATH=$tmp/bin ./bootstrap --check) >"$tmp/said" 2>&1 || wrong "$what: fails"
says '^bootstrap: not a Debian system'
says '^3 of 5 tests ran'

what="a test that was skipped"
for line in 'no wrk (Debian: wrk)' 'no gdb (Debian: gdb): its commands' 'it says (so) (Debian: apache2)' \
    'two (Debian: curl, tidy)' ''; do
    fresh
    printf 'SKIP\n%s\n' "${line:+skipped: $line}" >"$tmp/results/two"
    fails --check
    says "^skipped: tests/two: ${line%% *}"
    last_says '2 passed, 1 failed, 0 skipped'
    says '^2 of 3 tests ran'
    [ -n "$line" ] || continue
    # A part of a test that passed.
    printf 'fine\nskipped: %s\n' "$line" >"$tmp/results/two"
    fails --check
    last_says '2 passed, 1 failed, 0 skipped'
done
for line in 'fewer than 4 CPUs here: test_more' 'no clang (Debian: clang)' 'no (Debian: check:arm64, qemu-user)'; do
    fresh
    printf 'SKIP\nskipped: %s\n' "$line" >"$tmp/results/three"
    passes --check
    last_says '2 passed, 0 failed, 1 skipped'
    says '^2 of 3 tests ran'
    says "^skipped: tests/three: ${line%% *}"
done

what="a test that is gone"
fresh
passes --check
printf 'skipped: no wrk (Debian: wrk)\n' >"$tree/build/tests/gone.log"
echo ':test-result: PASS' >"$tree/build/tests/gone.trs"
passes --check

what="a test that fails"
fresh
printf 'FAIL\nthe reason\n' >"$tmp/results/three"
fails --check
says '^failed: build/tests/three'
says '^    the reason'
last_says '2 passed, 1 failed, 0 skipped'

what="the debug build"
fresh
CHECK_DEBUG=1 boots --check || wrong "$what fails"
grep -q -- '^--enable-debug --enable-werror .*--with-check' "$tmp/configured" || wrong "$what: configured otherwise"
echo FAIL >"$tmp/results/debug"
CHECK_DEBUG=1 boots --check && wrong "$what: its failure passes"
last_says '3 passed, 1 failed, 0 skipped'

# --- what the tests ask for -----------------------------------------------------------------------------
# Programs are looked for by needs.sh, but where one is used under another's name, or is one of several.
cd "$srcdir" || exit 99
. tests/support/needs.sh
: >"$tmp/said"
others=$(grep -lr 'command -v' tests --include='*.sh' | grep -vE 'support/(needs|script|httpd_lib)|dist/(aarch64|cmake|bootstrap|install)|apache/(deploy|example_httpd)\.|doc/demo\.|trace/drag|preload/preload-(small|redis)|inputs/inputs_fuzz')
[ -z "$others" ] || wrong "these look for programs without tests/support/needs.sh:" $others
grep -rnE "skipped: (no|not) |skip \"no " tests --include='*.sh' --include='*.py' |
    grep -vE '\(Debian|here|support/needs.sh|dist/(bootstrap|aarch64)|no root|no user namespaces|rseq|no /proc|control group|memory controller|checkout|filter of system|no \$core|full disk' >"$tmp/said" &&
    wrong "these name no package"
installs=" $(sh bootstrap --packages check) apache2 coreutils clang memcached nginx postgresql libapache2-mod-php8.2 "
asked=$(grep -rhE '^ *((if )?(! )?(need|lacks)|.*\{ absent|absent) [a-z"]' tests --include='*.sh' | grep -v '^ *#' |
    sed 's/^.*\b\(need\|lacks\|absent\) //; s/[|;&}].*//; s/^"\([^"$]*\)".*/=\1/; s/^\([^= ]*\) ".*/\1/' | grep -v '\$')
[ "$(printf '%s\n' "$asked" | wc -l)" -gt 25 ] || wrong "what the tests ask for could not be read"
printf '%s\n' "$asked" | sed '/^=/!s/ /\n/g' | sed 's/^=//' | sort -u | while read -r name; do
    for package in $(package_of "$name"); do
        case $installs in *" $package "*) ;; *) echo "$name: $package" ;; esac
    done
done >"$tmp/said"
[ ! -s "$tmp/said" ] || wrong "no package is known of these"
exit $bad
