#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Documents name files and functions that exist. A file is looked up by its path, or by its name alone; a function, a
# member or a test of the pages for developers by a search in the sources, and in walkthrough.md by one in the modules
# of its row. A model for spin is held to lib/ by what its comments name: "f, g (file.c)" says that f and g are in there.
# A rename that forgets a document or a model fails here, and a function that goes.
. "${srcdir:-.}/tests/support/script.sh"
cd "$srcdir" || exit 99

documents="README.md CONTRIBUTING.md SECURITY.md NEWS $(find lib bench tests doc -name '*.md')"
pages=$(find doc -name '*.[37]')
developers="lib/README.md $(find doc/design -name '*.md')"
# Headers of others.
others='pthread.h stdio.h string.h apr_pools.h apr_allocator.h sys/sdt.h valgrind/memcheck.h'

find . -name .git -prune -o -name build -prune -o -name autom4te.cache -prune -o -type f -print | sed 's,^\./,,' >"$tmp/files"
sed 's,.*/,,' "$tmp/files" | cat "$tmp/files" - | sort -u >"$tmp/known"
[ "$(grep -c '\.c$' "$tmp/known")" -gt 100 ] || { echo "no sources in $srcdir"; exit 99; }

# What stands between backquotes, as "document word".
# shellcheck disable=SC2086  # names of files of ours have no blanks
quoted() { grep -oE '`[^` ]+`' /dev/null "$@" | sed 's/`//g; s/:/ /'; }

# --- files: of documents between backquotes, of manual pages by their ending --------------------
# shellcheck disable=SC2086
{
    quoted $documents | grep -E '(\.(c|h|hpp|cc|sh|py|am|md|ac|map|spec|txt)|/)$' | grep -vE '[*]|[A-Z]+\.(c|txt)$'
    grep -oE '[A-Za-z0-9_/-]+\.(c|h|hpp|py)\b' /dev/null $pages | sed 's/:/ /' | grep -vE ' (program\.c|/)'
} | sort -u | while read -r document name; do
    case " $others " in *" $name "*) continue ;; esac
    grep -qxF -- "$name" "$tmp/known" || [ -e "$name" ] || [ -e "$(dirname "$document")/$name" ] ||
        echo "$document names $name, which does not exist"
done >"$tmp/missing"

# --- names of functions, members, options and tests, in the pages for developers ----------------
# shellcheck disable=SC2086
cat $(grep -E '^(lib|include|tests|tools|apache_module|bench)/.*\.(c|h|hpp|cc|sh|am|py)$|^configure.ac$' "$tmp/files") |
    grep -oE '[A-Za-z_][A-Za-z0-9_-]*' | sort -u >"$tmp/words"
sed -n 's,.*/\([a-z0-9_-]*\)\.[a-z]*$,\1,p' "$tmp/files" | sort -u >>"$tmp/words"
# shellcheck disable=SC2086
quoted $developers | sed 's/()$//' | grep -E ' [a-z][a-z0-9]*(_[a-z0-9_]+|[A-Z][A-Za-z]+)$' | sort -u >"$tmp/names"
[ -s "$tmp/names" ] || { echo "the pages for developers name no function"; exit 99; }
while read -r document name; do
    grep -qxF -- "$name" "$tmp/words" || echo "$document names $name, which is nowhere in the sources"
done <"$tmp/names" >>"$tmp/missing"

# --- models: files, functions, and which file has them -------------------------------------------
# shellcheck disable=SC2046,SC2013
cat $(grep -E '^(lib|include)/.*\.(c|h|S)$' "$tmp/files") | grep -oE '[A-Za-z_][A-Za-z0-9_]*' | sort -u >"$tmp/of_lib"
sed -n 's,^lib/.*/\([a-z0-9_]*\)\.[ch]$,\1,p' "$tmp/files" >>"$tmp/of_lib"
for model in $(grep '\.pml$' "$tmp/files"); do
    # Without the model's own name of a step, which stands first in a line of two columns.
    sed -nE 's/^ \* (.*)/\1/p; s,.*/\*(.*),\1,p' "$model" | grep -v '^fault' | sed -E 's/^ +[^ ]+( [^ ]+)*  +//' >"$tmp/comments"
    grep -oE '[A-Za-z0-9_/-]+\.(c|h|S|md)\b' "$tmp/comments" | while read -r name; do
        grep -qxF -- "$name" "$tmp/known" || echo "$model names $name, which does not exist"
    done
    grep -owE '[a-z][a-z0-9]*(_[a-z0-9_]+|[A-Z][A-Za-z]+)' "$tmp/comments" | tee -a "$tmp/names_of_models" | while read -r name; do
        grep -qxF -- "$name" "$tmp/of_lib" || echo "$model names $name, which is nowhere in lib/"
    done
    grep -oE '[A-Za-z0-9_]+((, | and )[A-Za-z0-9_]+)* \([a-z0-9_]+\.[ch]\)' "$tmp/comments" | while read -r line; do
        file=$(echo "$line" | sed 's/.*(\(.*\))/\1/')
        path=$(grep -E "^(lib|include)/(.*/)?$file\$" "$tmp/files")
        for name in $(echo "$line" | sed 's/ (.*//; s/ and / /g; s/,//g'); do
            grep -qw -- "$name" "${path:-/dev/null}" || echo "$model: $name is not in $file"
        done
    done
done >>"$tmp/missing"
[ -s "$tmp/names_of_models" ] || { echo "the models name no function"; exit 99; }

# --- rows of walkthrough.md: | step | functions | modules | ------------------------------------------
grep -E '^\| [0-9]+ \|' doc/design/walkthrough.md >"$tmp/rows"
[ -s "$tmp/rows" ] || { echo "walkthrough.md has no rows"; exit 99; }
while IFS='|' read -r _ step functions modules _; do
    paths=
    for module in $(echo "$modules" | tr -d '`,'); do
        paths="$paths $(grep -E "^(lib|include)/(.*/)?$module\$" "$tmp/files")"
    done
    # shellcheck disable=SC2086
    for name in $(echo "$functions" | grep -oE '`[a-z][A-Za-z0-9]*(_[a-z0-9_]+|[A-Z][A-Za-z]+)' | tr -d '`'); do
        grep -qw -- "$name" $paths /dev/null || echo "walkthrough.md, step$step: $name is not in$modules"
    done
done <"$tmp/rows" >>"$tmp/missing"

if [ -s "$tmp/missing" ]; then
    cat "$tmp/missing"
    bad=1
fi
echo "$(wc -l <"$tmp/names") names of functions and members, $(wc -l <"$tmp/names_of_models") in models"
exit $bad
