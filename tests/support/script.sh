# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2034
# Sourced by tests that are scripts, before anything else: needs.sh, and what each of them begins with.
#
#     $srcdir, $build    sources and build, with their whole paths
#     $tmp               a directory of the test's, which goes at its end, once $at_exit has run
#     wrong WHAT...      says what is wrong, and shows $tmp/said, if there is one; a test ends with `exit $bad`
! command -v wrong >/dev/null || return 0 # it was sourced before
srcdir=$(cd "${srcdir:-.}" && pwd)
build=$(cd "${top_builddir:-.}" && pwd)
. "$srcdir/tests/support/needs.sh"

tmp=$(mktemp -d) || exit 99
at_exit=:
trap 'kill $running 2>/dev/null; eval "$at_exit"; rm -rf "$tmp"' EXIT
trap 'exit 99' HUP INT TERM

bad=0
wrong() {
    echo "wrong: $*"
    [ ! -s "$tmp/said" ] || sed 's/^/    /' "$tmp/said"
    bad=1
}

# within SECONDS COMMAND...: waits until it is true, that long at most; false, if it is not then.
within() {
    twentieths=$(($1 * 20))
    shift
    until "$@"; do
        [ $((twentieths -= 1)) -gt 0 ] || return 1
        sleep 0.05
    done
}
# has N FILE PATTERN: the file has that many lines, or more, with the extended regular expression.
has() { [ "$(grep -scE -- "$3" "$2")" -ge "$1" ]; }

# aside FUNCTION WORD...: runs it in the background, with a $tmp of its own. settled waits for all of these, and shows
# what they have said. at_once FUNCTION WORD...: with each word, side by side, for servers and clocks have one wait.
asides=0
running=
aside() {
    asides=$((asides + 1))
    (
        tmp=$tmp/aside-$asides
        mkdir -m 755 "$tmp"
        trap "$at_exit" EXIT
        trap 'exit 99' HUP INT TERM
        "$@"
        exit $bad
    ) >"$tmp/$asides.told" 2>&1 &
    running="$running $!"
}
settled() {
    for each in $running; do wait "$each" || bad=1; done
    running=
    cat "$tmp"/*.told
}
at_once() {
    function=$1
    shift
    for word; do aside "$function" "$word"; done
    settled
}
