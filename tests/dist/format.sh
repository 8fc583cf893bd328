#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The sources are as clang-format 14 (Debian 12's) writes them by .clang-format. What it must leave alone, tables of
# constants, stands between `clang-format off` and `on`.
srcdir=${srcdir:-.}
. "${srcdir:-.}/tests/support/needs.sh"
need clang-format
case $(clang-format --version) in *' version 14.'*) ;; *) skip "another version than 14: $(clang-format --version)" ;; esac
cd "$srcdir" || exit 99
[ -f .clang-format ] || skip "no .clang-format: not a checkout"
# Not what is generated into the sources' directory, if it is the build's, too.
sources=$(find lib include tools apache_module tests bench doc \( -name '*.c' -o -name '*.h' -o -name '*.cc' \) \
    ! -path '*/mutants-*' ! -path '*/build*/*')
[ "$(echo "$sources" | wc -l)" -gt 300 ] || { echo "only $(echo "$sources" | wc -l) sources were found"; exit 1; }
# shellcheck disable=SC2086  # names without spaces
found=$(clang-format -n $sources 2>&1 | grep 'warning:' | cut -d: -f1 | sort | uniq -c)
[ -z "$found" ] || { echo "not as .clang-format has it (clang-format -i mends that):"; echo "$found"; exit 1; }
