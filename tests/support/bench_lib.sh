# SPDX-License-Identifier: Apache-2.0
# Sourced by tests/doc/bench*.sh: $build is what was built, and $tmp a directory of the test's.
. "${srcdir:-.}/tests/support/script.sh"
need python3

# bench_tree PROGRAM...: $tmp is for bench/run.py a build with these programs of bench/, where its results then lie
bench_tree() {
    mkdir "$tmp/bench"
    ln -s "$build/.libs" "$tmp/.libs"
    for program in "$@"; do ln -s "$build/bench/$program" "$tmp/bench/$program"; done
}
