# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# Sourced by tests, for what a machine may lack. Each test, and each part of one, that cannot run has a line
# "skipped: WHY"; where a package would mend it, "skipped: no PROGRAM (Debian: PACKAGE)". ./bootstrap --check fails by the
# second kind, where it installs PACKAGE itself. tests/dist/bootstrap.sh holds that no test asks for programs otherwise.
#
#     skip WHY...           ends the test
#     need PROGRAM...       ends it, unless they are here
#     need_file FILE WHAT   ends it, unless what was built or installed is here
#     lacks PROGRAM [PART]  says that the part is skipped, and is true, if it is not here
#     lacks_file FILE WHAT [PART]
skip() { echo "skipped: $*"; exit 77; }
absent() { echo "skipped: no $1 (Debian: $(package_of "$1"))${2:+: $2}"; }
need() { for wanted; do ! lacks "$wanted" || exit 77; done; }
need_file() { ! lacks_file "$@" || exit 77; }
lacks_file() { [ ! -e "$1" ] && shift && absent "$@"; }
lacks() { ! command -v "${1%% *}" >/dev/null && absent "$@"; } # a compiler may carry flags

package_of() {
    case ${1##*/} in
        ab | rotatelogs) echo apache2-utils ;;
        abidw | abidiff) echo abigail-tools ;;
        apache2 | "Apache's modules") echo apache2-bin ;;
        apache2ctl) echo apache2 ;;
        apr-1-config | apr-1.pc | libreap-apr | apxs | mod_reap | mod_runaway | input_query) echo apache2-dev ;;
        libreap-trace | input_trace) echo liblz4-dev ;;
        chromedriver) echo chromium-driver ;;
        dh) echo debhelper ;;
        dpkg-buildpackage) echo dpkg-dev ;;
        h2load) echo nghttp2-client ;;
        "gdb with Python") echo gdb ;;
        http_server | libmicrohttpd) echo libmicrohttpd-dev ;;
        libreap-profile) echo zlib1g-dev ;;
        libxml2) echo libxml2-dev ;;
        mod_reap_lua) echo liblua5.4-dev ;;
        mod_php8.2) echo libapache2-mod-php8.2 ;;
        "Check programs") echo check ;;
        "groff with macros") echo groff-base ;;
        nm | objcopy | objdump | readelf) echo binutils ;;
        php8.2) echo php8.2-cli ;;
        postgres) echo postgresql ;;
        qemu-*) echo qemu-user ;;
        redis-*) echo redis-tools ;;
        probes) echo systemtap-sdt-dev ;;
        setpriv | prlimit | setarch | unshare) echo util-linux ;;
        sha256sum) echo coreutils ;;
        *++* | no) echo g++ ;;
        clang-format) echo clang-format ;;
        clang*) echo clang ;;
        *gcc* | cc) echo gcc ;;
        *) echo "${1##*/}" ;;
    esac
}
