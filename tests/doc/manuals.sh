#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The man pages know every call of the headers, name no page that is missing, format without a warning, and their
# examples run; so do those of README.md and doc/calls.md.
. "${srcdir:-.}/tests/support/script.sh"
libs=${top_builddir:-.}/.libs

# documented HEADER PATTERN AT_LEAST [PAGE]: each call that a header declares has a page of its own name: PAGE if there
# is one for all calls, or a page that leads to the one that describes it; and only that page has the call in its
# synopsis, and in its NAME.
documented() {
    calls=$(sed -e 's|/\*.*\*/||' -e '/\/\*/,/\*\//d' "$srcdir/include/$1" | grep -oE "\\b$2\\(" | tr -d '(' | sort -u)
    [ "$(echo "$calls" | wc -l)" -ge "$3" ] || wrong "$1 could not be read"
    for call in $calls; do
        page=$(sed -n '1s/^\.so man[37]\///p' "$srcdir/doc/$call.3" 2>/dev/null)
        page=${page:-$call.3}
        [ "$page" = "${4:-$page}" ] || wrong "$call.3 does not lead to $4"
        [ "$page" = "$call.3" ] || [ "$(cat "$srcdir/doc/$call.3")" = ".so man${page##*.}/$page" ] || wrong "$call.3 is no link"
        described=$(cd "$srcdir/doc" && grep -l "^\.B.*[ *]$call(" ./*.[37])
        [ "$described" = "./$page" ] || wrong "the synopsis of $call is in '$described', and $call.3 leads to $page"
        sed -n '/^\.SH NAME/,/^\.SH SYN/p' "$srcdir/doc/$page" | grep -qw "$call" || [ -n "$4" ] ||
            wrong "$page does not name $call"
        [ -n "$4" ] || topics="$topics $page"
    done
}
topics=
documented reap.h 'reap[A-Z][A-Za-z]*' 30
documented reap_ask.h 'reap[A-Z][A-Za-z]*' 3
documented hoard.h 'hoard_[a-z_]+' 10 hoard.3
documented apr_reap.h 'apr_(pfree|prealloc|pool_reap|reap_)[a-z_]*' 5 libreap-apr.7

# The pages of reap.h and reap_ask.h are by topic: each is complete, and reap.7 lists it.
# shellcheck disable=SC2086  # words
topics=$(printf '%s\n' $topics REAP_SHARED.3 | sort -u)
[ "$(echo "$topics" | wc -l)" -ge 10 ] || wrong "the pages of reap.h could not be read"
for page in $topics; do
    for part in NAME SYNOPSIS DESCRIPTION 'RETURN VALUE' ERRORS ATTRIBUTES 'SEE ALSO'; do
        [ "$(grep -cx "\.SH $part" "$srcdir/doc/$page")" = 1 ] || wrong "$page has no $part"
    done
    sed -n '/^\.SS Pages/,/^\.SS In a/p' "$srcdir/doc/reap.7" | grep -q "^\.BR ${page%.3} (3)" || wrong "reap.7 does not list $page"
done

# The page that one reads first leads to all programs, libraries and modules.
for page in "$srcdir"/doc/*.[17]; do
    name=$(basename "$page")
    [ "$name" = reap.7 ] || sed -n '/^\.SH SEE ALSO/,$p' "$srcdir/doc/reap.7" | tr -d '\\' | grep -q "^\.BR ${name%.*} (${name##*.})" ||
        wrong "reap.7 does not lead to $name"
done

# The pages of ours that a page names exist.
for page in "$srcdir"/doc/*.[137]; do
    grep -oE '\b(reap|hoard|REAP_SHARED|mod_reap|libreap)[A-Za-z_.\-]* ?\([137]\)' "$page" | tr -d ' ()\\' | sort -u >"$tmp/named"
    while read -r name; do
        file=${name%?}.${name#"${name%?}"}
        [ -e "$srcdir/doc/$file" ] || wrong "$page names $file, which does not exist"
    done <"$tmp/named"
done

# Structures are those of the headers, but for comments.
# structure FILE NAME
structure() { tr '\n' ' ' <"$1" | sed -E 's,/\*([^*]|\*+[^*/])*\*+/,,g; s/ +/ /g' | grep -oE "struct $2 \{[^}]*\}" | head -n 1; }
structures=0
for page in "$srcdir"/doc/*.3; do
    for name in $(sed -n 's/^\(typedef \)*struct \([a-z_]*\) {$/\2/p' "$page"); do
        for header in "$srcdir"/include/*.h; do
            [ -n "$(structure "$header" "$name")" ] || continue
            structures=$((structures + 1))
            [ "$(structure "$header" "$name")" = "$(structure "$page" "$name")" ] || wrong "$page has another struct $name than $header"
        done
    done
done
[ $structures -ge 7 ] || wrong "of structures the pages have $structures"

# `man reap` looks in section 3 before section 7, and opens the page that one should read first.
[ "$(cat "$srcdir/doc/reap.3")" = ".so man7/reap.7" ] || wrong "man reap does not open reap.7"

# reap.7 explains every message of misuse that there is a program for.
programs=${top_builddir:-.}/tests/misuse
for program in objects reaps apart malloc; do "$programs/$program" --messages || wrong "tests/misuse/$program did not run"; done |
    sed 's/,.*//' | sort -u >"$tmp/messages"
[ "$(wc -l <"$tmp/messages")" -ge 15 ] || wrong "tests/misuse could not be read"
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
    "$(sed -n 's/^ *{"\([a-z_]*\)", AT(.*/\1/p' "$srcdir/lib/base/options.c" | sort)"
same_names probes "$(section PROBES | sed -n 's/^\.BI \([a-z_]*\)(.*/\1/p' | sort)" \
    "$(cat "$srcdir"/lib/*/*.c | sed -n 's/.*\bPROBE(\([a-z_]*\),.*/\1/p' | sort -u)"

# groff's macros and its terminal device come with man-db's formatter, which may be absent.
if groff -man -Tutf8 -z /dev/null 2>/dev/null; then
    for page in "$srcdir"/doc/*.[137]; do
        case $(head -c 4 "$page") in .so*) continue ;; esac
        said=$(groff -man -Tutf8 -ww -z "$page" 2>&1)
        [ -z "$said" ] || wrong "$page: $said"
    done
else
    absent "groff with macros" "whether pages format"
fi
if ! lacks mandoc "its warnings"; then
    for page in reap.7 $topics reap-ask.1; do
        mandoc -Tlint -W warning "$srcdir/doc/$page" || wrong "$page"
    done
fi

# built_as LANGUAGE COMPILER FLAGS...: the program in $tmp/example.LANGUAGE, as a user would build it
built_as() {
    language=$1
    shift
    rm -f "$tmp/example"
    # shellcheck disable=SC2068  # compilers may carry flags
    $@ -Wall -Wextra -Werror -I"$srcdir/include" "$tmp/example.$language" -o "$tmp/example" "$libs/libreap-ask.so" \
        "$libs/libreap.so" -Wl,-rpath,"$(cd "$libs" && pwd)"
}
says() { [ "$(grep -c "$1" "$tmp/said")" = "$2" ] || wrong "$name does not say $1 $2 times"; }

# The first example of reap.7, the programs of the other pages, and the examples of README.md and doc/calls.md, as they stand.
example_of() { sed -n '/^\.EX/,/^\.EE/p;/^\.EE/q' | sed '/^\.E[XE]/d; s/\\e/\\/g'; }
run_example() {
    name="the example of $1"
    shift
    if "$@"; then
        "$tmp/example" >"$tmp/said" || wrong "$name ends with $?"
    else
        wrong "$name does not compile"
    fi
}
example_of <"$srcdir/doc/reap.7" >"$tmp/example.c"
run_example reap.7 built_as c "${CC:-cc}"
says '^request [012]$' 3
says 'chunks' 1
programs=0
for page in $topics; do
    sed -n '/^\.SH EXAMPLES/,$p' "$srcdir/doc/$page" | example_of | sed 's/\\-/-/g' >"$tmp/example.c"
    grep -q '^#include <reap\(_ask\)*\.h>' "$tmp/example.c" || continue
    run_example "$page" built_as c "${CC:-cc}" </dev/null
    programs=$((programs + 1))
done
[ "$programs" -ge 10 ] || wrong "the pages of reap.h have $programs programs"
sed -n '/^```c$/,/^```$/p' "$srcdir/README.md" | sed '/^```/d' >"$tmp/example.c"
run_example README.md built_as c "${CC:-cc}"
says '^client 7$' 1
# The lines of libreap-apr.7 are those of a handler.
if pkg-config --exists apr-1 2>/dev/null; then
    sed -n '/^#define REAP_APR_OPTIONAL/,/^\.fi/p' "$srcdir/doc/libreap-apr.7" >"$tmp/lines"
    {
        grep '^#' "$tmp/lines"
        echo 'struct request { apr_pool_t *pool; };'
        echo 'static size_t example(struct request *r, char *buffer, apr_size_t size) { struct reap_stats stats = {0};'
        grep -v '^[#.\]' "$tmp/lines"
        echo 'return stats.live_objects; } int main(void) { return example != NULL ? 0 : 1; }'
    } >"$tmp/example.c"
    # shellcheck disable=SC2046  # words
    ${CC:-cc} -Wall -Werror -Wno-address -fsyntax-only -I"$srcdir/include" $(pkg-config --cflags apr-1) "$tmp/example.c" ||
        wrong "libreap-apr.7's example"
else
    absent apr-1.pc "the example of libreap-apr.7"
fi
if ! lacks "${CXX:-c++}" "examples in C++"; then
    sed -n '/^\.SH EXAMPLES/,$p' "$srcdir/doc/reap.hpp.3" | example_of >"$tmp/example.cc"
    run_example reap.hpp.3 built_as cc "${CXX:-c++}" -std=c++17
    says '^client 7$' 1
    {
        printf '#include <map>\n#include <reap.hpp>\n#include <string>\n'
        echo 'struct Session { explicit Session(const char *name) : name(name) {} std::string name; };'
        echo 'int main() { reap::resource connection;'
        sed -n '/^```c++$/,/^```$/p' "$srcdir/doc/calls.md" | sed '/^```/d'
        echo 'headers["Host"] = "example"; return session->name != "client 7" || headers.size() != 1; }'
    } >"$tmp/example.cc"
    run_example doc/calls.md built_as cc "${CXX:-c++}" -std=c++17
fi
exit $bad
