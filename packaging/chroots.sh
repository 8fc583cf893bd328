#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds and tests the last commit on fresh Debian systems that lack one thing or another, each a chroot of its own.
# It runs as root, takes packages from Debian's archive by mmdebstrap, and leaves nothing but a directory that keeps
# what it fetched (--work). Within a chroot all but the installing is done by an ordinary user.
set -u

usage() {
    cat <<'USAGE'
usage: packaging/chroots.sh [--work DIR] [--keep] [SYSTEM...]
  --work DIR  where packages and logs are kept for the next time (/var/tmp/reap-chroots)
  --keep      leave the systems that were made, to be looked into
Without a name all of these are tried:
  bare        a C compiler and the autotools: autoreconf, configure, make, make check
  clang       clang is the only compiler: the same with --enable-werror
  no-apache   everything that ./bootstrap --check names, but Apache and APR
  lto         CFLAGS=-flto: make check, make install; programs of -flto; gdb knows the commands
  lto-clang   the same with clang
  hosts       musl, -m32, other CPUs: configure refuses each in one line
  tools       autoreconf and ./bootstrap without one of the tools that they need: one line
  bootstrap   ./bootstrap, --demo and --check on a system that has nothing: what each installs
  packages    Debian's packages: built with their tests, lintian, installed on another fresh system; debian/tests there
  trixie      Debian 13 with its gcc: --enable-werror, make check
  trixie-clang  the same with clang alone
  aarch64     make check-aarch64: built for aarch64, tested under qemu-user
USAGE
}

here=$(cd "$(dirname "$0")/.." && pwd)
work=/var/tmp/reap-chroots
keep=
systems=
all='bare clang no-apache lto lto-clang hosts tools bootstrap packages trixie trixie-clang aarch64'
mirror=${REAP_MIRROR:-http://deb.debian.org/debian}
while [ $# != 0 ]; do
    case $1 in
        --help | -h) usage; exit 0 ;;
        --work) [ $# -gt 1 ] || { echo "chroots: --work wants a directory" >&2; exit 2; }; work=$2; shift ;;
        --keep) keep=yes ;;
        bare | clang | no-apache | lto | lto-clang | hosts | tools | bootstrap | packages | trixie | trixie-clang | aarch64)
            systems="$systems $1" ;;
        *) echo "chroots: unknown argument '$1'; --help tells what there is" >&2; exit 2 ;;
    esac
    shift
done
[ -n "$systems" ] || systems=$all
[ "$(id -u)" = 0 ] || { echo "chroots: only root can make chroots" >&2; exit 2; }
for tool in mmdebstrap git unshare; do
    command -v $tool >/dev/null || { echo "chroots: $tool is not here (Debian: mmdebstrap git util-linux)" >&2; exit 2; }
done
mkdir -p "$work/archives/partial" "$work/logs" && work=$(cd "$work" && pwd) || exit 2

# --- a system ------------------------------------------------------------------------------------------
# The mounts are those of a process namespace: they end with the command, whatever becomes of it.

# base_of SUITE: sets base
base_of() {
    base=$work/base-$1.tar
    [ ! -e "$base" ] || return 0
    echo "chroots: fetching Debian $1"
    mmdebstrap --quiet --format=tar --variant=minbase --include=ca-certificates "$1" "$base.new" "$mirror" &&
        mv "$base.new" "$base" || { echo "chroots: no base system could be made" >&2; exit 2; }
}

# within COMMAND: a line of shell in the system, as root; with alone=--net it has a network of its own
alone=
within() {
    # shellcheck disable=SC2016,SC2086  # the inner shell's; one word or none
    unshare --mount --pid $alone --fork sh -c '
        root=$1 archives=$2
        [ -z "$4" ] || ip link set lo up || exit 99
        mount --make-rprivate / && mount -t proc proc "$root/proc" && mount --rbind /sys "$root/sys" &&
            mount --rbind /dev "$root/dev" && mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm" &&
            mount --bind "$archives" "$root/var/cache/apt/archives" || exit 99
        exec chroot "$root" /usr/bin/env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
            HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive sh -c "$3"' \
        sh "$root" "$work/archives" "$1" "$alone" </dev/null
}
# user COMMAND: the same as an ordinary user, in a clone
user() { within "su builder -s /bin/sh -c 'cd /home/builder/reap && $(echo "$1" | sed "s/'/'\\\\''/g")'"; }
# system PACKAGE...: a new one with these
system() {
    root=$work/root-$name
    rm -rf "$root" && mkdir "$root" && tar -x -C "$root" -f "$base" || exit 2
    cp /etc/resolv.conf "$root/etc/resolv.conf"
    printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d" && chmod 755 "$root/usr/sbin/policy-rc.d" # starts no server
    echo 'APT::Keep-Downloaded-Packages "1";' >"$root/etc/apt/apt.conf.d/01keep"
    within "useradd -m builder"
    [ $# = 0 ] || installs "$@" || { wrong "packages: $*"; return 1; }
    git clone -q --no-hardlinks "$here" "$root/home/builder/reap" && within "chown -R builder: /home/builder" ||
        { wrong "no clone of the tree"; return 1; }
}
installs() {
    within "apt-get -q update && apt-get -q -y --no-install-recommends install $*" >"$log.apt" 2>&1 ||
        { tail -n 5 "$log.apt"; return 1; }
}

bad=0
wrong() { echo "FAILED: $name: $*"; bad=1; }
# step WHAT COMMAND: a line of shell by the user, of which only the failure is shown
step() {
    echo "--- $1" >>"$log"
    user "$2" >>"$log" 2>&1 || { wrong "$1; the log is $log"; tail -n 15 "$log"; return 1; }
}
# tested [LIMIT]: make check passes, and what it skips says why
tested() {
    step "make check" "make -s -C build -j$(nproc) check VERBOSE=1 || exit 1" || return
    sums=$root/home/builder/reap/build/test-suite.log
    echo "$name: $(sed -n 's/^# \(PASS\|SKIP\|FAIL\|ERROR\): */\1 /p' "$sums" | tr '\n' ' ')"
    for skip in $(grep -l '^:test-result: SKIP' -r "$root/home/builder/reap/build" --include='*.trs'); do
        reason=$(grep -h '.' "${skip%.trs}.log" | grep -v '^SKIP ' | tail -n 1)
        [ -n "$reason" ] && echo "    skipped $(basename "${skip%.trs}"): $reason" || wrong "$skip does not say why"
    done
}
configured() { step "autoreconf" "autoreconf -i" && step "configure $1" "mkdir build && cd build && ../configure $1"; }
no_warnings() { ! grep -n 'warning:' "$log" || wrong "there are warnings"; }

# --- the systems ---------------------------------------------------------------------------------------

autotools='autoconf automake autoconf-archive libtool pkg-config'

bare() {
    system gcc libc6-dev make $autotools || return
    configured --enable-werror && step make "make -s -C build -j$(nproc)" && no_warnings && tested
}

clang() {
    system clang make $autotools || return
    within "! command -v gcc" >/dev/null || wrong "there is a gcc"
    configured "--enable-werror CC=clang" && step make "make -s -C build -j$(nproc)" && no_warnings && tested
}

no_apache() {
    # shellcheck disable=SC2046  # words
    system $(sh "$here/bootstrap" --packages check | tr ' ' '\n' | grep -v '^apache2') || return
    configured --enable-werror && step make "make -s -C build -j$(nproc)" && no_warnings && tested
}

# lto COMPILER PACKAGE
lto() {
    system "$2" make gdb man-db $autotools || return
    configured "--enable-werror CC=$1 CFLAGS=\"-O2 -g -flto\"" && step make "make -s -C build -j$(nproc)" && no_warnings &&
        tested
    within "make -s -C /home/builder/reap/build install && ldconfig" >>"$log" 2>&1 ||
        { wrong "make install"; tail -n 5 "$log"; return; }
    # shellcheck disable=SC2016  # the inner shell's
    step "programs" '
        mkdir ../used && cd ../used
        sed -n "/^\`\`\`c\$/,/^\`\`\`\$/{/^\`\`\`/!p}" ../reap/README.md >example.c
        sed "s/^int main/int cpu = 1, options = 2, ambient_reap = 3;\nint main/" example.c >names.c
        for program in example names; do
            '"$1"' -O2 -flto $program.c -o $program-shared $(pkg-config --cflags --libs reap)
            '"$1"' -O2 -flto $program.c -o $program-malloc $(pkg-config --cflags --libs reap-malloc)
            '"$1"' -O2 -flto $program.c -o $program-archive $(pkg-config --cflags reap) /usr/local/lib/libreap.a
            '"$1"' -O2 -flto -static $program.c -o $program-static $(pkg-config --static --cflags --libs reap)
            for kind in shared malloc archive static; do
                [ "$(./$program-$kind)" = "client 7" ] || { echo "$program-$kind answers otherwise"; exit 1; }
            done
        done
        LD_PRELOAD=/usr/local/lib/libreap-malloc.so REAP_OPTIONS=stats=1 ./example-shared 2>&1 | grep -qi "hoard\|reap:"
        for kind in shared malloc; do
            gdb -nx -batch -ex "break puts" -ex run -ex reap ./example-$kind >gdb.log 2>&1
            grep -q "0x[0-9a-f]*: .* objects" gdb.log || { cat gdb.log; exit 1; }
        done
        man -w 7 reap && man -w libreap-malloc'
}

# refused WHAT ARGUMENTS: configure stops, and says why in one line
refused() {
    user "rm -rf build && mkdir build && cd build && ../configure $2" >"$log.one" 2>&1 && wrong "$1: configure goes on"
    cat "$log.one" >>"$log"
    line=$(grep '^configure: error:' "$log.one")
    case $line in *"reap needs Linux on x86-64 or aarch64, with glibc 2.35"*) ;; *) wrong "$1: '$line'" ;; esac
    # The error is the last line, and no test before it wrote to the terminal.
    [ "$(tail -n 1 "$log.one")" = "$line" ] || { wrong "$1: more lines"; tail -n 3 "$log.one"; }
    echo "    $1: $line"
}

hosts() {
    system gcc libc6-dev make $autotools musl-tools || return
    step autoreconf "autoreconf -i" || return
    refused musl CC=musl-gcc
    refused "-m32 without its libraries" '"CC=gcc -m32"'
    installs gcc-multilib || { wrong "gcc-multilib"; return; }
    refused -m32 '"CC=gcc -m32"'
    refused "-m32 in CFLAGS" 'CFLAGS="-O2 -m32"'
    refused -mx32 'CFLAGS="-O2 -mx32"'
    # The cross compilers and gcc-multilib exclude each other.
    installs gcc-multilib- gcc-riscv64-linux-gnu libc6-dev-riscv64-cross gcc-s390x-linux-gnu libc6-dev-s390x-cross \
        gcc-arm-linux-gnueabihf libc6-dev-armhf-cross || { wrong "cross compilers"; return; }
    for host in riscv64-linux-gnu s390x-linux-gnu arm-linux-gnueabihf; do refused $host --host=$host; done
}

# Without one of them: the word for it, of autoreconf and of bootstrap, where no package can be installed.
tools() {
    system gcc libc6-dev make $autotools || return
    for tool in autoconf-archive pkg-config libtool automake autoconf; do
        # pkg-config is a name of pkgconf's, and libtoolize is not in what depends on libtool.
        packages=$tool
        [ $tool != pkg-config ] || packages="pkg-config pkgconf pkgconf-bin"
        within "dpkg -r --force-depends $packages && dpkg --configure -a" >>"$log" 2>&1
        user "rm -rf autom4te.cache configure aclocal.m4 Makefile.in; autoreconf -i" >"$log.one" 2>&1 &&
            wrong "autoreconf does not miss $tool"
        cat "$log.one" >>"$log"
        line=$(grep -m 1 -i 'install\|not found\|no such file' "$log.one")
        case $line in *"$tool"* | *aclocal* | *autoreconf*) echo "    autoreconf without $tool: $line" ;;
            *) wrong "autoreconf without $tool"; head -n 5 "$log.one" ;;
        esac
        user ./bootstrap >"$log.one" 2>&1 && wrong "bootstrap does not miss $tool"
        [ "$(wc -l <"$log.one")" = 1 ] && grep -q "missing, and only root can install them: .*$tool" "$log.one" ||
            { wrong "bootstrap without $tool"; head -n 5 "$log.one"; }
        within "apt-get -q -y --no-install-recommends install $tool" >>"$log" 2>&1 || { wrong "$tool is not back"; return; }
    done
    step "autoreconf with all of them" "autoreconf -i"
}

# What there is, in packages and MB.
measure() {
    within "dpkg-query -W -f='\${Installed-Size}\\n'" |
        awk -v before="${1-0 0}" '{ kb += $1 } END { split(before, b, " "); print NR - b[1], int(kb / 1024 - b[2]) }'
}
bootstrap() {
    for mode in "" --demo --check; do
        system || return
        empty=$(measure)
        within "cd /home/builder/reap && sed -i 's/^    \(demo\|check\)) build;.*/    \1) ;;/' bootstrap &&
            git config --global safe.directory '*' 2>/dev/null; ./bootstrap $mode" >>"$log" 2>&1 ||
            { wrong "bootstrap $mode"; tail -n 3 "$log"; }
        [ -e "$root/home/builder/reap/configure" ] || wrong "bootstrap $mode wrote no configure"
        echo "    ./bootstrap $mode installs (packages, MB): $(measure "$empty")"
    done
}

# Built by the user, with the tests; installed without what they recommend, where nothing else of ours is.
packages() {
    system dpkg-dev lintian || return
    within "apt-get -q -y --no-install-recommends build-dep /home/builder/reap" >>"$log.apt" 2>&1 ||
        { wrong "what debian/control wants"; tail -n 5 "$log.apt"; return; }
    step dpkg-buildpackage "dpkg-buildpackage -b -us -uc" && step lintian "lintian --fail-on error,warning ../*.changes" ||
        return
    tests=$(sed -n 's/^# TOTAL: *//p' "$root/home/builder/reap/debian/build/test-suite.log")
    debs=$work/packages
    rm -rf "$debs" && mkdir "$debs" && mv "$root"/home/builder/*.deb "$debs/" && rm "$debs"/*-dbgsym_* ||
        { wrong "no packages were built"; return; }
    system || return
    mkdir "$root/packages" && cp "$debs"/*.deb "$root/packages/" || { wrong "no packages to install"; return; }
    installs "/packages/*.deb" || { wrong "the packages are not installed"; return; }
    wanted=$(sed -n 's/^Depends: *//p' "$here/debian/tests/control" | tr ', ' '\n\n' | grep -v reap | sort -u | tr '\n' ' ')
    installs "$wanted" || { wrong "packages: $wanted"; return; }
    alone=--net
    for test in build preload apr; do
        within "cd /tmp && sh /home/builder/reap/debian/tests/$test" >>"$log" 2>&1 ||
            { wrong "debian/tests/$test; the log is $log"; tail -n 15 "$log"; }
    done
    alone=
    within "apt-get -q -y purge 'libreap*' reap-tools 'libapache2-mod-reap*'" >>"$log" 2>&1 || wrong "they do not go"
    left=$(within "find /usr /etc /var -name '*reap*' -not -path '/var/log/*' -not -path '/var/www/*' \
        -not -name 'reap-test*' -not -name 'e2scrub_reap*'")
    [ -z "$left" ] || wrong "what is left of them:" $left
    echo "    $(ls "$debs" | wc -l) packages, $tests tests at their build"
}

# trixie COMPILER PACKAGE...
trixie() {
    compiler=$1
    shift
    system "$@" make check liblz4-dev zlib1g-dev libapr1-dev libaprutil1-dev apache2-dev apache2-bin liblua5.4-dev \
        libxml2-dev libmicrohttpd-dev systemtap-sdt-dev valgrind gdb git python3 curl perl media-types mandoc groff-base \
        procps $autotools || return
    configured "--enable-werror CC=$compiler" && step make "make -s -C build -j$(nproc)" && no_warnings && tested
}

aarch64() {
    system gcc libc6-dev make gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user python3 $autotools || return
    within "dpkg --add-architecture arm64"
    installs check:arm64 || { wrong "check:arm64"; return; }
    configured "" && step "make check-aarch64" "make -s -C build check-aarch64" || return
    echo "$name: $(grep -c '^passed: ' "$log") passed"
}

for name in $systems; do
    log=$work/logs/$name
    : >"$log"
    began=$(date +%s)
    source_commit=$(git -C "$here" rev-parse --short HEAD) || exit 2
    before=$bad
    bad=0
    case $name in
        trixie*) base_of trixie ;;
        *) base_of bookworm ;;
    esac
    case $name in
        trixie) trixie gcc gcc g++ libc6-dev ;;
        trixie-clang) trixie clang clang ;;
        no-apache) no_apache ;;
        lto) lto gcc gcc ;;
        lto-clang) lto clang clang ;;
        *) $name ;;
    esac
    [ $bad != 0 ] || echo "passed: $name, commit $source_commit, $(($(date +%s) - began)) s"
    bad=$((bad + before))
    [ -n "$keep" ] || rm -rf "$work/root-$name"
done
[ $bad = 0 ]
