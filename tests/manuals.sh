#!/bin/sh
# The man pages know every call of the headers, format without a warning, and their example runs.
srcdir=${srcdir:-.}
libs=${top_builddir:-.}/.libs
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
bad=0
wrong() { echo "wrong: $*"; bad=1; }

# documented HEADER PATTERN AT_LEAST PAGE: each call that a header declares is in the page's synopsis, and a page
# of its own name leads there.
documented() {
    calls=$(sed -e 's|/\*.*\*/||' -e '/\/\*/,/\*\//d' "$srcdir/include/$1" | grep -oE "\\b$2\\(" | tr -d '(' | sort -u)
    [ "$(echo "$calls" | wc -l)" -ge "$3" ] || wrong "$1 could not be read"
    for call in $calls; do
        grep -q "^\.B.*[ *]$call(" "$srcdir/doc/$4" || wrong "$4 has no synopsis of $call"
        [ "$(cat "$srcdir/doc/$call.3" 2>/dev/null)" = ".so man${4##*.}/$4" ] || wrong "$call.3 does not lead to $4"
    done
}
documented reap.h 'reap[A-Z][A-Za-z]*' 30 reap.3
documented hoard.h 'hoard_[a-z_]+' 10 hoard.3
documented apr_reap.h 'apr_[a-z_]+' 3 libreap-apr.7

# reap.7 explains every message of misuse that there is a program for.
sed -n 's/^ *expect(.*, "\([^",]*\).*/\1/p' "$srcdir"/tests/misuse/*.c | sort -u >"$tmp/messages"
[ "$(wc -l <"$tmp/messages")" -ge 9 ] || wrong "tests/misuse could not be read"
while read -r message; do
    grep -q "^\.B $message" "$srcdir/doc/reap.7" || wrong "reap.7 does not explain '$message'"
done <"$tmp/messages"

# libreap-malloc.7 has every option of the table in options.c, and every probe; and no other.
page=$srcdir/doc/libreap-malloc.7
same_names() {
    [ -n "$2" ] && [ "$2" = "$3" ] && return
    wrong "$1 in libreap-malloc.7 and in the source differ:" $2 "/" $3
}
section() { sed -n "/^\.SH $1/,/^\.SH/p" "$page"; }
same_names options "$(section OPTIONS | sed -n 's/^\.B[RI] \([a-z_]*\)=.*/\1/p' | sort)" \
    "$(sed -n 's/^ *{"\([a-z_]*\)", AT(.*/\1/p' "$srcdir/lib/options.c" | sort)"
same_names probes "$(section PROBES | sed -n 's/^\.BI \([a-z_]*\)(.*/\1/p' | sort)" \
    "$(cat "$srcdir"/lib/*.c | sed -n 's/.*\bPROBE(\([a-z_]*\),.*/\1/p' | sort -u)"

# groff's macros and its terminal device come with man-db's formatter, which may be absent.
if command -v groff >/dev/null && groff -man -Tutf8 -z /dev/null 2>/dev/null; then
    for page in "$srcdir"/doc/*.[37]; do
        case $(head -c 4 "$page") in .so*) continue ;; esac
        said=$(groff -man -Tutf8 -ww -z "$page" 2>&1)
        [ -z "$said" ] || wrong "$page: $said"
    done
fi
if command -v mandoc >/dev/null; then
    for page in "$srcdir"/doc/reap.[37]; do
        mandoc -Tlint -W warning "$page" || wrong "$page"
    done
fi

# The first example of reap.7, as it stands.
sed -n '/^\.EX/,/^\.EE/p;/^\.EE/q' "$srcdir/doc/reap.7" | sed '/^\.E[XE]/d; s/\\e/\\/g' >"$tmp/example.c"
# shellcheck disable=SC2086  # CC may carry flags
if ${CC:-cc} -Wall -Wextra -Werror -I"$srcdir/include" "$tmp/example.c" -o "$tmp/example" "$libs/libreap.so" \
    -Wl,-rpath,"$(cd "$libs" && pwd)"; then
    "$tmp/example" >"$tmp/said" || wrong "the example ends with $?"
    [ "$(grep -c '^request [012]$' "$tmp/said")" = 3 ] || wrong "the example says something else"
    grep -q 'chunks' "$tmp/said" || wrong "the example reports nothing"
else
    wrong "the example does not compile"
fi
exit $bad
